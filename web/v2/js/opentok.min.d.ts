// Types of the global `OT`, which the classic script defines.

import type { OpenTok } from './opentok.esm.js';

declare global {
  const OT: OpenTok;
}
