// The browser SDK. `OT` mirrors OpenTok's API. `Client`, `Roulette`, `People`, `Calls` and `Rooms` exist only in Confab.

export { Calls } from './people/calls.js';
export { Client } from './signaling/client.js';
export { ConfabError } from './errors.js';
export { OT } from './ot.js';
export { People } from './people/people.js';
export { disablePush, enablePush, pushState } from './people/push.js';
export { layOut } from './rooms/layout.js';
export { Rooms } from './rooms/rooms.js';
export { Roulette } from './roulette/roulette.js';
