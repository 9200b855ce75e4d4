// A page's state machine that records its effects, so that a test reads as a sequence of events.
import { initialState, step } from '../../app/strangers/state.js';

export const alice = { matchId: 'm1', mode: 'video', partner: { name: 'Alice', interests: ['chess'] }, textChat: true };

export class Machine {
  now = 1_000_000;
  /** The effects of the most recent event. */
  effects = [];
  /** All effects so far. */
  done = [];

  constructor({ guest = false, ...form } = {}) {
    this.state = initialState({ form: { name: 'Robin', interests: ['chess'], mode: 'video', agreed: true, ...form }, guest });
  }

  tell(type, members = {}) {
    const before = JSON.stringify(this.state);
    const from = this.state;
    [this.state, this.effects] = step(from, { type, ...members }, this.now);
    if (JSON.stringify(from) !== before) throw new Error(`${type} changed the state it was given`);
    this.done.push(...this.effects);
    return this;
  }

  wants(what) {
    return this.effects.filter((effect) => effect.do === what);
  }

  wait(milliseconds) {
    this.now += milliseconds;
    return this;
  }

  /** Brings the state machine to a search with a connection and the camera on. */
  searching() {
    return this.tell('connected', { resumed: false, hidesAddress: false }).tell('start').tell('mediaOn', { camera: true }).tell('waiting');
  }

  matched(match = alice) {
    return this.searching().tell('matched', match);
  }
}
