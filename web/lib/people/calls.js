// `Calls`: outgoing and incoming calls. Turns the server's messages into `Call` objects. Invariant: each call has one object,
// and each end is reported once, no matter how often the server sends it.

import { systemClock } from '../clock.js';
import { ConfabError, isRestart } from '../errors.js';
import { Emitter } from '../events.js';
import { sourceOf } from '../session/publisher.js';
import { Call, controlOf } from './call.js';
import { questionsOf } from './people.js';

/** @typedef {import('../signaling/people-messages.js').Ended} Ended */
/** @typedef {import('../signaling/people-messages.js').LoggedCall} LoggedCall */
/** @typedef {import('../roulette/match.js').MatchOptions} CallsOptions */

/**
 * How many ended calls to remember, so that no end is reported twice. The server repeats only ends of the last few
 * minutes.
 */
export const maxRemembered = 500;
/**
 * Maximum number of calls at a time; further incoming ones are ignored. Bounds the memory that a server can make a
 * device use.
 */
const maxRinging = 50;

/**
 * Events: `incoming`, with the `Call`; `ended {callId, outcome, person, direction, video, at, durationMs?}`, for calls
 * without a `Call` object, such as those missed while no device was online. The handler must show the ended call to
 * the user, because the SDK reports it to the server as seen.
 */
export class Calls extends Emitter {
  #client;
  #questions;
  #host;
  /** @type {Map<string, Call>} the calls that are not over, by id */
  #calls = new Map();
  /** @type {Call | null} the requested call, while it has no id yet */
  #placing = null;
  /** Whether the media connections with the server were opened in advance for a call. */
  #isPrepared = false;
  /** @type {Set<string>} ids of ended calls */
  #over = new Set();
  /** @type {Set<Call>} calls that rang on this device when the server lost this connection, and have not rung again */
  #unrung = new Set();

  /**
   * @param {import('../signaling/client.js').Client} client
   * @param {import('./people.js').People} people
   * @param {CallsOptions} [options] if they have a `subscriberTarget`, the other person's stream is shown there
   */
  constructor(client, people, options = {}) {
    super();
    this.#client = client;
    this.#questions = questionsOf(people);
    const clock = options.clock ?? systemClock;
    /** @type {import('./call.js').CallHost} */
    this.#host = {
      client, options, clock,
      questions: this.#questions,
      prepare: (/** @type {Call} */ call) => this.#prepare(call),
      accepted: (/** @type {Call} */ call) => this.#endOthers(call),
      over: (/** @type {Call} */ call) => this.#isOver(call),
    };
    client.on({
      connected: ({ resumed }) => { if (!resumed) this.#beginAnew(); },
      expired: () => { for (const call of this.#calls.values()) controlOf(call).lost(); },
      closed: ({ code }) => {
        const outcome = code === 1000 ? 'ended' : 'connectionLost';
        for (const call of this.all) controlOf(call).end({ outcome }, true);
      },
      'message:call.placed': (message) => this.#placed(message),
      'message:call.ringing': ({ callId, devices }) => this.#control(callId)?.ringing(devices),
      'message:call.incoming': (message) => this.#incoming(message),
      'message:call.accepted': (message) => this.#accepted(message),
      'message:call.changed': ({ callId, video }) => this.#control(callId)?.changed(video),
      'message:call.partner': ({ callId, state }) => this.#control(callId)?.partner(state),
      'message:call.ended': (message) => this.#ended(message),
    });
  }

  /**
   * The calls that are not over.
   * @returns {Call[]}
   */
  get all() {
    return [...this.#calls.values(), ...this.#placing && !this.#placing.isOver ? [this.#placing] : []];
  }

  /**
   * Calls a person. If the server rejects the call, it ends as `refused`.
   * @param {string} personId
   * @param {import('./call.js').OwnSide} side
   * @returns {Call} the call, which the server may still reject
   */
  start(personId, { video = true, publisher = null } = {}) {
    const person = { personId, name: '', online: false };
    const call = new Call(this.#host, { direction: 'outgoing', person, video }, publisher);
    if (this.#placing) {
      const message = 'You are already placing a call. Wait until it rings, or end it.';
      const error = new ConfabError({ code: 'call_state', message, retryable: true });
      // Report the error later, because the caller cannot have added a listener yet.
      queueMicrotask(() => controlOf(call).end({ outcome: 'refused', error }));
      return call;
    }
    this.#placing = call;
    this.#prepare(call);
    // If the server places the call, `#placed` handles the answer before this promise settles. So only a rejection is
    // left to handle here.
    this.#questions.ask('call.start', { personId, video }, false).catch((error) => controlOf(call).end({ outcome: 'refused', error }))
      .finally(() => { if (this.#placing === call) this.#placing = null; });
    return call;
  }

  /**
   * @param {{before?: string, limit?: number}} page
   * @returns {Promise<{calls: LoggedCall[], next?: string}>} one page of the call log, newest first. `next`: the
   *   `before` for the next page; absent on the last page
   */
  async log({ before, limit } = {}) {
    const { calls, next } = await this.#questions.ask('call.log', { before, limit });
    return next === undefined ? { calls } : { calls, next };
  }

  /** @param {string} [callId] the call to delete from the log; by default all calls @returns {Promise<void>} */
  async forget(callId) {
    await this.#questions.ask('call.forget', { callId });
  }

  /**
   * Notifies the server that the user has seen how this call ended.
   * @param {string} callId
   * @returns {Promise<void>}
   */
  async seen(callId) {
    await this.#questions.ask('call.seen', { callId });
  }

  // ---- Server messages

  /** @param {any} message */
  #placed(message) {
    const { callId } = message;
    const call = this.#calls.get(callId) ?? this.#placing;
    if (!call) return;
    if (call === this.#placing) {
      this.#placing = null;
      // The call was ended on this device before it had an id, so end it on the server now.
      if (call.isOver) return this.#endAfterAll(callId);
      this.#calls.set(callId, call);
    }
    controlOf(call).placed(message);
  }

  /** @param {any} message */
  #incoming(message) {
    const { callId } = message;
    const known = this.#calls.get(callId);
    if (known) {
      this.#unrung.delete(known);
      return controlOf(known).incoming(message);
    }
    // The call has ended on this device, but the server does not know this yet, so end it there too.
    if (this.#over.has(callId)) return this.#endAfterAll(callId);
    if (this.#calls.size >= maxRinging) return;
    const call = new Call(this.#host, { direction: 'incoming', person: message.person, video: message.video, id: callId });
    this.#calls.set(callId, call);
    controlOf(call).incoming(message);
    this.emit('incoming', call);
  }

  /** @param {any} message */
  #accepted(message) {
    const { callId, person } = message;
    if (this.#over.has(callId)) return this.#endAfterAll(callId);
    const known = this.#calls.get(callId);
    if (!known || known.state === 'incoming') {
      // This call was not accepted on this device: both people called each other, and the server merged the two calls
      // into this one.
      const mine = this.all.find((call) => isPlacedTo(call, person.personId));
      if (!mine) return;
      this.#merge(mine, callId);
    } else if (known.direction === 'outgoing') {
      // If both people called each other, our call continues, and the other person's call to us ends.
      const theirs = this.all.filter(({ state, person: { personId } }) => state === 'incoming' && personId === person.personId);
      for (const call of theirs) controlOf(call).end({ outcome: 'merged' });
    }
    this.#control(callId)?.accepted(message);
  }

  /** @param {Ended} ended */
  #ended({ callId, reason, into, direction, person, video, at, durationMs }) {
    const call = this.#calls.get(callId);
    const details = { outcome: reason, ...durationMs === undefined ? {} : { durationMs } };
    if (call) {
      this.#acknowledge(callId);
      const goesOn = reason === 'merged' && into !== undefined && call.direction === 'outgoing';
      if (goesOn && !this.#over.has(into)) this.#merge(call, into);
      else controlOf(call).end(details);
    } else if (this.#over.has(callId)) {
      this.#acknowledge(callId);
    } else if (this.hasHandlers('ended')) {
      this.#remember(callId);
      this.#acknowledge(callId);
      this.emit('ended', { callId, person, direction, video, at, ...details });
    }
  }

  // ----

  /** @param {string} callId */
  #control(callId) {
    const call = this.#calls.get(callId);
    return call && controlOf(call);
  }

  /**
   * Restores calls on a new connection. Asks the server about calls that this device placed or joined, but not about
   * calls that only rang on it. Such a call may be active on another device by now, and asking would move it to this
   * one. If it still rings, the server announces it again without being asked. Otherwise `#endUnrung` ends it.
   */
  #beginAnew() {
    for (const call of this.#calls.values()) if (call.state !== 'incoming') controlOf(call).rejoin();
    const ringing = [...this.#calls.values()].filter(({ state }) => state === 'incoming');
    this.#unrung = new Set(ringing);
    if (ringing.length > 0) this.#endUnrung(this.#unrung);
  }

  /**
   * Ends the calls that did not ring again on the new connection, with the outcomes in the server's call log.
   * @param {Set<Call>} unrung
   */
  async #endUnrung(unrung) {
    /** @type {LoggedCall[]} */
    let logged = [];
    try {
      // Requested after `presence.appear`, so the answer arrives after all `call.incoming` events.
      logged = (await this.#questions.ask('call.log', { limit: 50 }, false)).calls;
    } catch (error) {
      if (isRestart(error)) return;
    }
    if (unrung !== this.#unrung) return;
    for (const call of unrung) {
      // The call has ended, or it was accepted on this device in the meantime. In the second case, the server reports
      // whether the acceptance was in time.
      if (call.state !== 'incoming') continue;
      const { outcome, durationMs } = logged.find(({ callId }) => callId === call.id) ?? {};
      // If the log gives a duration, the call was answered and has ended. If the call is missing from the log, it is
      // probably still in progress on another device. Both count as answered elsewhere.
      controlOf(call).end({ outcome: outcome && durationMs === undefined ? outcome : 'answeredElsewhere' });
    }
    unrung.clear();
  }

  /**
   * Merges two calls of people who called each other: our call continues under the id of the other person's call. If
   * that one rang on this device, its `Call` object ends.
   * @param {Call} call the call that we placed
   * @param {string} into the id of the other person's call
   */
  #merge(call, into) {
    const theirs = this.#calls.get(into);
    if (theirs === call) return;
    if (theirs) controlOf(theirs).end({ outcome: 'merged' });
    if (call.id !== null) {
      this.#calls.delete(call.id);
      this.#remember(call.id);
    }
    if (this.#placing === call) this.#placing = null;
    this.#over.delete(into);
    this.#calls.set(into, call);
    controlOf(call).becomes(into);
  }

  /**
   * Ends all other calls except those ringing on this device, which become waiting calls. Only one call can be active.
   * The server ends the same calls.
   * @param {Call} call
   */
  #endOthers(call) {
    for (const other of this.all) if (other !== call && other.state !== 'incoming') controlOf(other).end({ outcome: 'ended' });
    for (const other of this.all) if (other !== call) controlOf(other).waits(true);
  }

  /** @param {Call} call */
  #isOver(call) {
    if (call.id !== null && this.#calls.get(call.id) === call) this.#calls.delete(call.id);
    if (call.id !== null) this.#remember(call.id);
    const left = this.all;
    if (left.length === 1) controlOf(left[0]).waits(false);
    if (left.length > 0 || !this.#isPrepared) return;
    // The media connections were opened in advance for calls, and the last call is over. Close them if nothing else
    // uses them.
    this.#isPrepared = false;
    if (this.#client.state === 'connected' && !this.#client.media.isUsed) this.#client.media.close();
  }

  /** @param {Call} call */
  #prepare(call) {
    const publisher = controlOf(call).publisher();
    if (!this.#client.welcome?.media || !publisher) return;
    this.#isPrepared = true;
    this.#client.media.prepare(sourceOf(publisher));
  }

  /**
   * Ends a call on the server, because it is already over on this device.
   * @param {string} callId
   */
  #endAfterAll(callId) {
    this.#remember(callId);
    this.#questions.ask('call.end', { callId }).catch(() => {});
  }

  /** @param {string} callId */
  #acknowledge(callId) {
    this.seen(callId).catch(() => {});
  }

  /** @param {string} callId */
  #remember(callId) {
    this.#over.add(callId);
    if (this.#over.size > maxRemembered) this.#over.delete(/** @type {string} */ (this.#over.values().next().value));
  }
}

/** @param {Call} call @param {string} personId */
function isPlacedTo({ direction, state, person }, personId) {
  return direction === 'outgoing' && person.personId === personId && (state === 'placing' || state === 'ringing');
}
