// The browser SDK. `OT` mirrors OpenTok's; `Client` and `Roulette` are ours.

export { Client } from './client.js';
export { ConfabError } from './errors.js';
export { OT } from './ot.js';
export { Roulette } from './roulette.js';
