// The classic script: defines the global `OT`.

import { makeOT } from './ot.js';

const { currentScript } = document;
/** @type {any} */ (globalThis).OT = makeOT(currentScript instanceof HTMLScriptElement ? currentScript.src : undefined);
