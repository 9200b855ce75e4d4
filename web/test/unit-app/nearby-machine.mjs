// The state machine of the page `/nearby`, with its recorded effects.
import { initialState, step } from '../../app/nearby/state.js';
import { PageMachine } from './page-machine.mjs';

export const ann = { personId: 'a'.repeat(32), name: 'Ann', online: true };
export const bob = { personId: 'b'.repeat(32), name: 'Bob', online: true };
export const me = { personId: 'e'.repeat(32), name: 'Robin', visible: true, doNotDisturb: false, ringable: 'everyone', hasPosition: false };
export const kept = {
  entered: false, position: true, unit: 'mi', radius: 200, visible: true, doNotDisturb: false, ringable: 'everyone', push: false, blockedNames: [],
};

export class NearbyMachine extends PageMachine {
  constructor({ form = {}, guest = false, arrival, ...settings } = {}) {
    super(step, initialState({ form: { name: 'Robin', agreed: true, ...form }, kept: { ...kept, ...settings }, guest, arrival }));
  }

  /** Brings the state machine online, with a connection and a location. */
  here() {
    return this.tell('connected', { resumed: false }).tell('enter').tell('self', { me }).tell('position', { is: 'on' });
  }

  /** Changes the call: adds `members` to its previous members. */
  call(members) {
    const known = this.state.calls.find(({ line }) => line === (members.line ?? 1));
    return this.tell('callNews', {
      call: { line: 1, id: 'c1', person: ann, direction: 'outgoing', video: true, withVideo: false, waiting: false, state: 'placing', devices: null, away: false, ...known, ...members },
    });
  }

  /** Calls Ann and continues until the call has this state. */
  calling(state = 'ringing') {
    this.tell('call', { person: ann, video: true }).tell('mediaOn', { camera: true }).call({ state: 'placing' });
    for (const next of ['ringing', 'joining', 'active']) {
      if (['placing', 'ringing', 'joining', 'active'].indexOf(next) > ['placing', 'ringing', 'joining', 'active'].indexOf(state)) break;
      this.call({ state: next, devices: next === 'ringing' ? 1 : null, withVideo: next === 'active' });
    }
    return this;
  }

  rung(members = {}) {
    return this.call({ line: 9, id: 'c9', person: bob, direction: 'incoming', state: 'incoming', ...members });
  }

  over(outcome, members = {}) {
    const line = members.line ?? 1;
    const known = this.state.calls.find((one) => one.line === line) ?? { id: 'late', person: ann, direction: 'incoming', video: true };
    return this.tell('callOver', { line, callId: known.id, outcome, person: known.person, direction: known.direction, video: known.video, durationMs: null, ...members });
  }
}
