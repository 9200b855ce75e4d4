// The state machine of the page `/room/<name>`, with its recorded effects.
import { initialState, step } from '../../app/room/state.js';
import { usual } from '../../app/room/settings.js';
import { PageMachine } from './page-machine.mjs';

export const options = { media: 'routed', capacity: 25, locked: false, lobby: false, password: false, chat: true, share: 'all', persistent: false };
export const person = (connectionId, displayName, members = {}) => ({ connectionId, displayName, role: 'guest', state: 'connected', since: 1, ...members });
export const me = person('me', 'Robin');
export const ann = person('ann', 'Ann', { role: 'host' });
export const bob = person('bob', 'Bob');

/** A stream of another person. */
export const stream = (connectionId, members = {}) => ({
  streamId: `stream-${connectionId}`, connectionId, isScreen: false, hasAudio: true, hasVideo: true, aspect: 4 / 3, isLive: true, isSilent: false, ...members,
});

export class RoomMachine extends PageMachine {
  constructor({ kept = {}, ...arrival } = {}) {
    super(step, initialState({
      address: 'garden', kept: { name: 'Robin', layout: 'auto', corner: 'bottomRight', keys: true, settings: usual, ...kept }, ...arrival,
    }));
  }

  tell(type, members = {}) {
    super.tell(type, members);
    if ((this.state.room !== null) !== (this.state.place.is === 'in')) throw new Error(`after ${type} there is a room outside of the room, or none in it`);
    return this;
  }

  /** Brings the state machine to the moment when the server was asked. */
  joining() {
    return this.tell('connected', { resumed: false }).tell('join').tell('mediaOn', { camera: true });
  }

  /** Brings the state machine into the room, with Ann, who is the host. */
  inside({ role = 'guest', people = [ann, me], chat = [], changes = {}, hostsMayRecord = false } = {}) {
    const room = { name: 'Garden', me: 'me', role, options: { ...options, ...changes }, people, away: false, hostsMayRecord };
    return this.joining().tell('joined', { room, chat });
  }

  host(members = {}) {
    return this.inside({ role: 'host', people: [{ ...me, role: 'host' }, bob], ...members });
  }
}
