// A room whose clients can also call each other. It implements the part of the server's calls that the SDK sees. `ann` and
// `ann.2` are two devices of one person.
import { ConfabError } from '../../lib/errors.js';
import { FakeRoom } from './fake-room.mjs';

/** @param {string} code */
const refusal = (code) => new ConfabError({ code, message: code });
/** @param {any} client @returns {string} */
const personOf = (client) => client.id.split('.')[0];
/** @param {string} personId */
const info = (personId) => ({ personId, name: personId, online: true });

/** @typedef {{id: string, caller: any, callee: string, callees: any[], video: boolean, with: Map<any, boolean>, taken: any}} Line */

export class CallRoom extends FakeRoom {
  /** @type {Map<string, Line>} */
  calls = new Map();
  since = 1_790_000_000_000;
  /** @type {any} the error with which starts are refused */
  startRefusal = null;

  'presence.appear'(/** @type {any} */ from) {
    return {
      type: 'presence.self', personId: personOf(from), name: personOf(from), visible: true, doNotDisturb: false,
      ringable: 'everyone', hasPosition: false,
    };
  }

  'call.seen'() {}

  'call.log'() {
    return { type: 'call.log', calls: [] };
  }

  'call.start'(/** @type {any} */ from, /** @type {any} */ { personId, video }) {
    if (this.startRefusal) throw this.startRefusal;
    const callees = this.clients.filter((client) => personOf(client) === personId);
    const call = { id: `call-${this.made += 1}`, caller: from, callee: personId, callees, video, with: new Map([[from, video]]), taken: null };
    this.calls.set(call.id, call);
    queueMicrotask(() => {
      for (const callee of callees) callee.tell(this.incoming(call));
      from.tell({ type: 'call.ringing', callId: call.id, devices: callees.length });
    });
    return this.placed(call);
  }

  /** @param {Line} call */
  placed({ id, callee, video }) {
    return { type: 'call.placed', callId: id, person: info(callee), video, expiresInMs: 45_000 };
  }

  /** @param {Line} call */
  incoming({ id, caller, video }, waiting = false) {
    return { type: 'call.incoming', callId: id, person: info(personOf(caller)), video, waiting, expiresInMs: 45_000 };
  }

  /** @param {Line} call @param {any} client */
  acceptedFor(call, client) {
    const other = client === call.caller ? call.taken : call.caller;
    return {
      type: 'call.accepted', callId: call.id, person: info(client === call.caller ? call.callee : personOf(call.caller)), video: call.video,
      withVideo: call.with.get(other) ?? true, since: this.since, sessionId: `1_${call.id}`, token: 'good', mediaMode: 'relayed',
    };
  }

  'call.accept'(/** @type {any} */ from, /** @type {any} */ { callId, video }) {
    const call = this.calls.get(callId);
    if (!call || call.taken) throw refusal('call_state');
    call.taken = from;
    call.with.set(from, video);
    call.caller.tell(this.acceptedFor(call, call.caller));
    for (const other of call.callees) if (other !== from) this.tellEnd(call, other, 'answeredElsewhere');
    return this.acceptedFor(call, from);
  }

  'call.update'(/** @type {any} */ from, /** @type {any} */ { callId, video }) {
    const call = this.calls.get(callId);
    if (!call) throw refusal('not_found');
    call.with.set(from, video);
    (from === call.caller ? call.taken : call.caller).tell({ type: 'call.changed', callId, video });
  }

  'call.decline'(/** @type {any} */ from, /** @type {any} */ { callId }) {
    this.over(from, callId, 'declined', 'declinedElsewhere');
  }

  'call.cancel'(/** @type {any} */ from, /** @type {any} */ { callId }) {
    this.over(from, callId, 'cancelled', 'cancelled');
  }

  'call.end'(/** @type {any} */ from, /** @type {any} */ { callId }) {
    const call = this.calls.get(callId);
    if (call?.taken) this.over(from, callId, 'hungUp', 'hungUp', 'ended');
    else this[from === call?.caller ? 'call.cancel' : 'call.decline'](from, { callId });
  }

  'call.rejoin'(/** @type {any} */ from, /** @type {any} */ { callId }) {
    const call = this.calls.get(callId);
    if (!call) throw refusal('not_found');
    if (call.taken) return this.acceptedFor(call, from);
    return from === call.caller ? this.placed(call) : this.incoming(call);
  }

  /** @param {any} from @param {string} callId @param {string} there @param {string} elsewhere @param {string} [here] */
  over(from, callId, there, elsewhere, here = there) {
    const call = this.calls.get(callId);
    if (!call) throw refusal('not_found');
    for (const client of call.taken ? [call.caller, call.taken] : [call.caller, ...call.callees]) {
      const isMine = client === from || personOf(client) === personOf(from);
      this.tellEnd(call, client, client === from ? here : isMine ? elsewhere : there);
    }
    this.calls.delete(callId);
  }

  /** @param {Line} call @param {any} client @param {string} reason */
  tellEnd(call, client, reason) {
    const isCaller = client === call.caller;
    client.tell({
      type: 'call.ended', callId: call.id, reason, direction: isCaller ? 'outgoing' : 'incoming', video: call.video, at: this.since,
      person: info(isCaller ? call.callee : personOf(call.caller)), ...call.taken ? { durationMs: 1234 } : {},
    });
  }

  /** Stops the server, which loses its sessions. The test decides whether it keeps its calls. */
  stop() {
    this.sessions.clear();
    for (const client of this.clients) client.emit('expired');
  }

  /** Starts the server again. All clients go online, and ringing calls ring again. */
  resume() {
    for (const client of this.clients) client.emit('connected', { resumed: false });
    for (const call of this.calls.values()) if (!call.taken) for (const callee of call.callees) callee.tell(this.incoming(call));
  }
}
