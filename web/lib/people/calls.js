// `Calls`: ringing and being rung. It makes a `Call` of everything the server says about one. Its one invariant: each call has
// one object and each ending is told once, however often the server says it.

import { systemClock } from '../clock.js';
import { ConfabError, isRestart } from '../errors.js';
import { Emitter } from '../events.js';
import { sourceOf } from '../session/publisher.js';
import { Call, controlOf } from './call.js';
import { questionsOf } from './people.js';

/** @typedef {import('../line/people-messages.js').Ended} Ended */
/** @typedef {import('../line/people-messages.js').LoggedCall} LoggedCall */
/** @typedef {import('../roulette/match.js').MatchOptions} CallsOptions */

/** So many endings are remembered, so as not to tell them twice: a server tells again what is some minutes old at most. */
const mostRemembered = 500;

/**
 * Events: `incoming`, with the `Call`; `ended {callId, outcome, person, direction, video, at, durationMs?}`, of calls that no
 * `Call` stands for: those missed while nobody was there. Whoever listens to it is taken to have shown it.
 */
export class Calls extends Emitter {
  #client;
  #questions;
  #host;
  /** @type {Map<string, Call>} by id, those that are not over */
  #calls = new Map();
  /** @type {Call | null} asked for, and without an id yet */
  #placing = null;
  /** Whether media with the server was opened for a call. */
  #isPrepared = false;
  /** @type {Set<string>} ids of those that are over */
  #over = new Set();
  /** @type {Set<Call>} rang here when our place on the server was lost, and do not ring anew so far */
  #unrung = new Set();

  /**
   * @param {import('../line/client.js').Client} client
   * @param {import('./people.js').People} people
   * @param {CallsOptions} [options] with a `subscriberTarget`, what the other shows is put there
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
   * Those that are not over.
   * @returns {Call[]}
   */
  get all() {
    return [...this.#calls.values(), ...this.#placing && !this.#placing.isOver ? [this.#placing] : []];
  }

  /**
   * Calls somebody. Should the server refuse, the call ends as `refused`.
   * @param {string} personId
   * @param {import('./call.js').OwnSide} side
   * @returns {Call} at once
   */
  start(personId, { video = true, publisher = null } = {}) {
    const person = { personId, name: '', online: false };
    const call = new Call(this.#host, { direction: 'outgoing', person, video }, publisher);
    if (this.#placing) {
      const message = 'You are calling somebody already. Wait a moment.';
      const error = new ConfabError({ code: 'call_state', message, retryable: true });
      // Later: nobody can be listening to it yet.
      queueMicrotask(() => controlOf(call).end({ outcome: 'refused', error }));
      return call;
    }
    this.#placing = call;
    this.#prepare(call);
    // Who is called is there already when the answer comes: `#placed` hears it first.
    this.#questions.ask('call.start', { personId, video }, false).catch((error) => controlOf(call).end({ outcome: 'refused', error }))
      .finally(() => { if (this.#placing === call) this.#placing = null; });
    return call;
  }

  /** @param {{before?: string, limit?: number}} page @returns {Promise<{calls: LoggedCall[], next?: string}>} newest first */
  async log({ before, limit } = {}) {
    const { calls, next } = await this.#questions.ask('call.log', { before, limit });
    return next === undefined ? { calls } : { calls, next };
  }

  /** @param {string} [callId] by default all of them @returns {Promise<void>} */
  async forget(callId) {
    await this.#questions.ask('call.forget', { callId });
  }

  /**
   * Its person knows how this call ended.
   * @param {string} callId
   * @returns {Promise<void>}
   */
  async seen(callId) {
    await this.#questions.ask('call.seen', { callId });
  }

  // ---- What the server says

  /** @param {any} message */
  #placed(message) {
    const { callId } = message;
    const call = this.#calls.get(callId) ?? this.#placing;
    if (!call) return;
    if (call === this.#placing) {
      this.#placing = null;
      // Taken back before it had an id.
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
    // It ended here, and the server has not heard so.
    if (this.#over.has(callId)) return this.#endAfterAll(callId);
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
      // Taken by nobody here: we called them while they called us, and this is what both become.
      const mine = this.all.find((call) => isPlacedTo(call, person.personId));
      if (!mine) return;
      this.#merge(mine, callId);
    } else if (known.direction === 'outgoing') {
      // The same, the other way about.
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
   * Our place is a new one. What this device makes or is in, it asks for. A call that only rang here may be another
   * device's by now, from which asking would take it: what still rings, rings anew by itself.
   */
  #beginAnew() {
    for (const call of this.#calls.values()) if (call.state !== 'incoming') controlOf(call).rejoin();
    const ringing = [...this.#calls.values()].filter(({ state }) => state === 'incoming');
    this.#unrung = new Set(ringing);
    if (ringing.length > 0) this.#endUnrung(this.#unrung);
  }

  /** @param {Set<Call>} unrung */
  async #endUnrung(unrung) {
    /** @type {LoggedCall[]} */
    let logged = [];
    try {
      // Asked after we appeared, it is answered after everything that rings was told.
      logged = (await this.#questions.ask('call.log', { limit: 50 }, false)).calls;
    } catch (error) {
      if (isRestart(error)) return;
    }
    if (unrung !== this.#unrung) return;
    for (const call of unrung) {
      // Pressed Accept meanwhile: whether that came in time, the server says.
      if (call.state !== 'incoming') continue;
      const { outcome, durationMs } = logged.find(({ callId }) => callId === call.id) ?? {};
      // One that goes on is in no log yet.
      controlOf(call).end({ outcome: outcome && durationMs === undefined ? outcome : 'answeredElsewhere' });
    }
    unrung.clear();
  }

  /**
   * Two calls become one: ours goes on under the other's id, and theirs, which rang here, is over.
   * @param {Call} call
   * @param {string} into
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
   * There is one conversation at a time; the server ends the others as well.
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
    // The way through the server was opened for calls, and this was the last.
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
   * The server has a call that is over here.
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
    if (this.#over.size > mostRemembered) this.#over.delete(/** @type {string} */ (this.#over.values().next().value));
  }
}

/** @param {Call} call @param {string} personId */
function isPlacedTo({ direction, state, person }, personId) {
  return direction === 'outgoing' && person.personId === personId && (state === 'placing' || state === 'ringing');
}
