// The state machine of the roulette's page, with its recorded effects.
import { initialState, step } from '../../app/strangers/state.js';
import { PageMachine } from './page-machine.mjs';

export const alice = { matchId: 'm1', mode: 'video', partner: { name: 'Alice', interests: ['chess'] }, textChat: true };

export class Machine extends PageMachine {
  constructor({ guest = false, ...form } = {}) {
    super(step, initialState({ form: { name: 'Robin', interests: ['chess'], mode: 'video', agreed: true, ...form }, guest }));
  }

  /** Brings the state machine to a search with a connection and the camera on. */
  searching() {
    return this.tell('connected', { resumed: false, hidesAddress: false }).tell('start').tell('mediaOn', { camera: true }).tell('waiting');
  }

  matched(match = alice) {
    return this.searching().tell('matched', match);
  }
}
