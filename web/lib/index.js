// The browser SDK. `OT` mirrors OpenTok's; `Client`, `Roulette`, `People` and `Calls` are ours.

export { Calls } from './calls.js';
export { Client } from './client.js';
export { ConfabError } from './errors.js';
export { OT } from './ot.js';
export { People } from './people.js';
export { disablePush, enablePush, pushState } from './push.js';
export { Roulette } from './roulette.js';
