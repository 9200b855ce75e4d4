// `Call`: one call, from start to end. Invariant: a call in state `ended` never changes, and its audio and video have stopped,
// even if the server could not be notified.

import { Timers } from '../clock.js';
import { ConfabError, isRestart } from '../errors.js';
import { Emitter } from '../events.js';
import { sourceOf } from '../session/publisher.js';
import { endingGrace, endIsReported, lossOf, ringingGrace } from './call-ending.js';
import { CallMedia } from './call-media.js';

/** How long to ask for a call whose node of a cluster was lost, until another node continues it (milliseconds). */
export const rejoinMs = 30_000;
/** The pause between these requests, if the server does not ask for another one (milliseconds). */
const rejoinPauseMs = 1000;

/** @typedef {import('../signaling/people-messages.js').PersonInfo} PersonInfo */
/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/** @typedef {import('../session/roster.js').Stream} Stream */
/** @typedef {import('../session/subscriber.js').Subscriber} Subscriber */
/**
 * `placing` → `ringing` → `joining` → `active`, or `incoming` → `joining` → `active`; all → `ended`.
 * @typedef {'placing' | 'ringing' | 'incoming' | 'joining' | 'active' | 'ended'} CallState
 */
/**
 * `refused`: the server rejected the call; `error` says why.
 * @typedef {import('../signaling/people-messages.js').CallOutcome | 'refused'} Outcome
 */
/** @typedef {{outcome: Outcome, durationMs?: number, error?: ConfabError}} Ending */
/** @typedef {{video?: boolean, publisher?: Publisher | null}} OwnSide */
/**
 * The members of `Calls` that a call uses.
 * @typedef {object} CallHost
 * @property {import('../signaling/client.js').Client} client
 * @property {import('./questions.js').Questions} questions
 * @property {import('./calls.js').CallsOptions} options
 * @property {import('../clock.js').Clock} clock
 * @property {(call: Call) => void} prepare called when the call's publisher will be published soon
 * @property {(call: Call) => void} accepted called when the call was accepted, so that all other calls end, or wait if
 *   they ring on this device
 * @property {(call: Call) => void} over called when the call has ended
 */

/**
 * A call as `Calls` uses it. Most members handle a server message.
 * @typedef {object} CallControl
 * @property {() => Publisher | null} publisher returns our publisher
 * @property {(placed: any) => void} placed called when the server has placed the call, or, after `rejoin`, when it
 *   reports that the call is not accepted yet
 * @property {(devices: number) => void} ringing called with the number of devices on which the call rings
 * @property {(incoming: any) => void} incoming called when the call rings on this device, or still rings after a
 *   reconnection
 * @property {(waiting: boolean) => void} waits sets whether this call rings during another call
 * @property {(accepted: import('../signaling/people-messages.js').Accepted) => void} accepted called when the call was
 *   accepted, on this device or by the other person
 * @property {(withVideo: boolean) => void} changed called when the other person has turned video on or off
 * @property {(state: 'connected' | 'reconnecting') => void} partner called when the other person's connection dropped
 *   or was resumed
 * @property {(callId: string) => void} becomes sets the call's id: two people called each other, and this call
 *   continues under the other call's id
 * @property {() => void} lost called when the server no longer keeps this connection, so that the call's session is
 *   lost too
 * @property {() => Promise<void>} rejoin asks the server about this call after the connection was replaced
 * @property {(ending: Ending, isLost?: boolean) => void} end ends the call on this device. `isLost`: whether the
 *   server has already forgotten the call's session
 */

/** @type {WeakMap<Call, CallControl>} */
const controls = new WeakMap();

/** @param {Call} call @returns {CallControl} */
export function controlOf(call) {
  return /** @type {CallControl} */ (controls.get(call));
}

/**
 * Events: `change {call}` (a property other than `stream` and `subscriber` changed), `stream {stream, subscribe}` (the
 * other person's stream; `subscribe(target, options)` creates a `Subscriber` for it; emitted again when another stream
 * replaces it, for example after a restart), `subscriber {subscriber}` (created for the `subscriberTarget` of
 * `Calls`), `error {error}` (an audio or video error; the call continues), `ended {outcome, durationMs?, error?}`.
 */
export class Call extends Emitter {
  #host;
  #timers;
  /** @type {CallMedia | null} */
  #media = null;
  /** @type {Publisher | null} */
  #publisher;
  /** @type {boolean | null} whether this device sends video, as last sent to the server; null before that */
  #reportedVideo = null;
  /** @type {number | null} when the call was accepted, on the monotonic clock; null before that */
  #acceptedAt = null;
  /** @type {number | null} when the call ended, on the monotonic clock; null before that */
  #endedAt = null;
  /** @type {CallState} */
  state;
  /** @type {string | null} null until the call is placed; changes when two calls are merged */
  id = null;
  /** @type {PersonInfo} */
  person;
  /** Whether this call rings during another call. Accepting this call ends the other one. */
  waiting = false;
  /**
   * The number of the other person's devices on which an outgoing call rings; 0 before it rings, or if only a push
   * notification was sent.
   */
  devices = 0;
  /**
   * When the call stops ringing, in the local time of `Date.now()`; null before it was placed, and after it was
   * accepted.
   * @type {number | null}
   */
  expiresAt = null;
  /**
   * When the call was accepted, in milliseconds on the server's clock; null before that. To show the duration, use
   * `elapsedMs` instead.
   * @type {number | null}
   */
  since = null;
  /** @type {Outcome | null} */
  outcome = null;
  /**
   * The time from the acceptance of the call to its end, in milliseconds; undefined before its end, or if it was not
   * accepted.
   * @type {number | undefined}
   */
  durationMs = undefined;
  /** @type {ConfabError | null} why the call was rejected or failed */
  error = null;
  /** @type {'connected' | 'reconnecting'} */
  partnerState = 'connected';
  /** @type {Stream | null} */
  stream = null;
  /** @type {Subscriber | null} */
  subscriber = null;

  /**
   * @param {CallHost} host
   * @param {{direction: 'outgoing' | 'incoming', person: PersonInfo, video: boolean, id?: string}} about
   * @param {Publisher | null} [publisher]
   */
  constructor(host, { direction, person, video, id }, publisher = null) {
    super();
    this.#host = host;
    this.#timers = new Timers(host.clock);
    this.#publisher = publisher;
    this.direction = direction;
    this.person = person;
    this.id = id ?? null;
    this.state = direction === 'outgoing' ? 'placing' : 'incoming';
    /** Whether the call was placed as a video call. */
    this.video = video;
    /** Whether the other person sends video, or, while the call rings on this device, wants to send it. */
    this.withVideo = direction === 'incoming' && video;
    /** Whether this device sends video, or will send it when an outgoing call is accepted. */
    this.sendsVideo = direction === 'outgoing' && video;
    controls.set(this, this.#control());
    if (direction === 'outgoing') {
      this.#reportedVideo = video;
      publisher?.publishVideo(video);
    }
  }

  // ---- Public API

  get isOver() {
    return this.state === 'ended';
  }

  /**
   * The time since the call was accepted or, once it has ended, from its acceptance to its end, in milliseconds on the
   * local clock; 0 before it was accepted.
   */
  get elapsedMs() {
    return this.#acceptedAt === null ? 0 : Math.round((this.#endedAt ?? this.#host.clock.now()) - this.#acceptedAt);
  }

  /**
   * Accepts an incoming call. Other calls end, except those that ring on this device: they wait.
   * @param {OwnSide} side what to publish; without a publisher, this device only receives
   * @returns {Promise<void>} rejects with the reason if the call could not be accepted. Resolves if the call ended
   *   first, which `ended` reports, or if the connection was replaced, after which the SDK tries to accept the call
   *   again
   */
  async accept({ video = true, publisher = null } = {}) {
    if (this.state !== 'incoming') throw wrongState('This call is no longer ringing.');
    this.#timers.clear('ringing');
    this.#publisher = publisher;
    publisher?.publishVideo(video);
    this.sendsVideo = this.#reportedVideo = video;
    this.#set({ state: 'joining' });
    this.#host.prepare(this);
    try {
      await this.#host.questions.ask('call.accept', { callId: this.id, video }, false);
    } catch (error) {
      // If the call has ended, `ended` reports the outcome. After a restart, `rejoin` asks the server about the call.
      if (isRestart(error) || await endIsReported(this, this.#timers, error, ['call_state', 'not_found'])) return;
      this.#fail(/** @type {ConfabError} */ (error));
      throw error;
    }
  }

  /**
   * Declines an incoming call that was not accepted yet. Otherwise does the same as `end`.
   * @returns {Promise<void>}
   */
  async decline() {
    return this.state === 'incoming' ? this.#finish('call.decline', 'declined') : this.end();
  }

  /**
   * Cancels an outgoing call that was not accepted yet. Otherwise does the same as `end`.
   * @returns {Promise<void>}
   */
  async cancel() {
    const isMine = this.direction === 'outgoing' && (this.state === 'placing' || this.state === 'ringing');
    return isMine ? this.#finish('call.cancel', 'cancelled') : this.end();
  }

  /**
   * Ends the call in any state.
   * @returns {Promise<void>}
   */
  async end() {
    if (this.isOver) return;
    if (this.state === 'incoming') return this.decline();
    if (this.state === 'placing' || this.state === 'ringing') return this.cancel();
    return this.#finish('call.end', 'ended');
  }

  /**
   * Turns our own video on or off. If it is turned on and the publisher has no video track, opens a camera.
   * @param {boolean} on
   * @returns {Promise<void>} rejects if the call has already ended, or if the camera cannot be opened
   */
  async setVideo(on) {
    if (this.isOver) throw wrongState('This call has already ended.');
    const publisher = this.#publisher;
    if (publisher && on) {
      await sourceOf(publisher).ready;
      if (!publisher.getVideoSource().track) await publisher.setVideoSource(true);
      // The call ended, or got another publisher, while the browser asked for permission to use the camera.
      if (this.isOver || publisher !== this.#publisher) return;
    }
    publisher?.publishVideo(on);
    this.#set({ sendsVideo: on });
    await this.#tellVideo();
  }

  // ---- Server messages

  /** @returns {CallControl} */
  #control() {
    return {
      publisher: () => this.#publisher,
      placed: (placed) => this.#placed(placed),
      ringing: (devices) => {
        if (this.state === 'placing' || this.state === 'ringing') this.#set({ state: 'ringing', devices });
      },
      incoming: (incoming) => this.#incoming(incoming),
      waits: (waiting) => { if (this.state === 'incoming' && this.waiting !== waiting) this.#set({ waiting }); },
      accepted: (accepted) => this.#accepted(accepted),
      changed: (withVideo) => this.#set({ withVideo }),
      partner: (partnerState) => this.#partner(partnerState),
      becomes: (id) => this.#set({ id }),
      lost: () => this.#lost(),
      rejoin: () => this.#rejoin(),
      end: (ending, isLost) => this.#end(ending, isLost),
    };
  }

  /** @param {any} placed */
  #placed({ callId, person, video, expiresInMs }) {
    this.#set({ id: callId, person, video, expiresAt: Date.now() + expiresInMs });
    this.#ringUntil(expiresInMs);
  }

  /** @param {any} incoming */
  #incoming({ person, video, waiting, expiresInMs }) {
    const withVideo = this.state === 'incoming' ? video : this.withVideo;
    this.#set({ person, video, withVideo, waiting, expiresAt: Date.now() + expiresInMs });
    this.#ringUntil(expiresInMs);
  }

  /** @param {import('../signaling/people-messages.js').Accepted} accepted */
  #accepted({ callId, person, video, withVideo, since, sessionId, token }) {
    this.#acceptedAt ??= this.#host.clock.now();
    this.#timers.clear('ringing', 'ending', 'rejoining');
    const state = this.state === 'active' ? 'active' : 'joining';
    this.#set({ state, id: callId, person, video, withVideo, since, waiting: false, expiresAt: null });
    this.#host.accepted(this);
    // A handler may have ended the call. Also, the server sends this message again if we accepted and then asked about
    // the call.
    if (this.isOver || this.#media?.sessionId === sessionId) return;
    this.#media?.end(false);
    this.#join(sessionId, token);
    this.#tellVideo().catch(() => {});
  }

  /** @param {'connected' | 'reconnecting'} partnerState */
  #partner(partnerState) {
    if (this.partnerState !== partnerState) this.#set({ partnerState });
  }

  #lost() {
    this.#timers.clear('ending', 'rejoining');
    this.#media?.end(true);
    this.#media = null;
    this.stream = this.subscriber = null;
    if (this.#acceptedAt !== null) this.#partner('reconnecting');
  }

  /** @param {number} [until] when to give up, on the monotonic clock, if no node of a cluster continues the call */
  async #rejoin(until = this.#host.clock.now() + rejoinMs) {
    try {
      const answer = await this.#host.client.request('call.rejoin', { callId: this.id });
      // The server did not receive our acceptance, so send it again.
      if (answer.type === 'call.incoming' && this.state === 'joining') {
        await this.#host.questions.ask('call.accept', { callId: this.id, video: this.sendsVideo }, false);
      }
    } catch (error) {
      // The user may have hung up before the answer came.
      if (this.isOver) return;
      const { code, retryAfterMs = rejoinPauseMs } = /** @type {ConfabError} */ (error);
      if (code === 'cluster_unavailable' && this.#host.clock.now() < until) {
        this.#timers.set('rejoining', retryAfterMs, () => this.#rejoin(until));
        return;
      }
      // If the call has ended, the server reports the end when this device appears, before it answers `call.rejoin`.
      // Only if another device answered the call (`call_state`) can the end arrive after the error.
      if (isRestart(error) || await endIsReported(this, this.#timers, error, ['call_state'])) return;
      this.#end({ outcome: lossOf(error), error: /** @type {ConfabError} */ (error) });
    }
  }

  /** @param {Ending} ending @param {boolean} [isLost] whether the server has already forgotten the call's session */
  #end({ outcome, durationMs, error }, isLost = false) {
    if (this.isOver) return;
    this.#timers.clearAll();
    this.#endedAt = this.#host.clock.now();
    this.durationMs = durationMs ?? (this.#acceptedAt === null ? undefined : this.elapsedMs);
    this.outcome = outcome;
    this.error = error ?? null;
    this.stream = this.subscriber = null;
    const media = this.#media;
    this.#media = null;
    this.state = 'ended';
    media?.end(isLost);
    this.#publisher = null;
    this.#host.over(this);
    this.emit('change', { call: this });
    this.emit('ended', {
      outcome, ...this.durationMs === undefined ? {} : { durationMs: this.durationMs }, ...error ? { error } : {},
    });
  }

  // ----

  /** @param {number} ms */
  #ringUntil(ms) {
    if (this.isOver || this.state === 'joining' || this.state === 'active') return;
    this.#timers.set('ringing', ms + ringingGrace, () => (
      this.#end({ outcome: this.direction === 'incoming' ? 'missed' : 'unanswered' })));
  }

  /** @param {string} verb @param {Outcome} outcome */
  async #finish(verb, outcome) {
    const { id } = this;
    // Without an id, the call is still being placed. `Calls` ends it on the server when the id arrives.
    const reported = id === null ? undefined : this.#host.questions.ask(verb, { callId: id });
    this.#end({ outcome });
    try {
      await reported;
    } catch (error) {
      // Ignore these errors: the call has ended in the meantime, or the client was closed, which ends every call.
      const known = ['not_found', 'call_state', 'not_connected', 'left'];
      if (!(error instanceof ConfabError) || !known.includes(String(error.code))) throw error;
    }
  }

  /** @param {ConfabError} error */
  #fail(error) {
    this.#host.questions.ask('call.end', { callId: this.id }).catch(() => {});
    this.#end({ outcome: 'failed', error });
  }

  /** @param {string} sessionId @param {string} token */
  #join(sessionId, token) {
    const { client, options } = this.#host;
    this.#media = new CallMedia(client, sessionId, this.#publisher, options, {
      there: () => {
        this.partnerState = 'connected';
        this.#set({ state: 'active' });
      },
      stream: (stream, subscribe) => this.#seen(stream, subscribe),
      trouble: (error) => this.emit('error', { error }),
      // The server will report the end of the call, or the client the outcome of reconnecting. If neither happens in
      // time, the call fails.
      ending: (error) => this.#timers.set('ending', endingGrace, () => this.#fail(error)),
      failed: (error) => this.#fail(error),
    });
    this.#media.begin(token);
  }

  /**
   * @param {Stream} stream
   * @param {import('./call-media.js').Subscribe} subscribe
   */
  #seen(stream, subscribe) {
    this.stream = stream;
    const show = (/** @type {any} */ target, /** @type {object} */ options = {}) => (
      subscribe(target, { label: this.person.name || 'Partner', ...options }));
    this.emit('stream', { stream, subscribe: show });
    const { subscriberTarget, subscriberOptions } = this.#host.options;
    if (subscriberTarget === undefined || this.isOver) return;
    this.subscriber = show(typeof subscriberTarget === 'function' ? subscriberTarget(stream) : subscriberTarget, subscriberOptions);
    this.emit('subscriber', { subscriber: this.subscriber });
  }

  /**
   * Reports to the server, and through it to the other person, whether this device sends video. Does nothing before
   * the call is accepted, after it has ended, or if the server already has the current value.
   */
  async #tellVideo() {
    if (this.#acceptedAt === null || this.isOver || this.#reportedVideo === this.sendsVideo) return;
    this.#reportedVideo = this.sendsVideo;
    await this.#host.questions.ask('call.update', { callId: this.id, video: this.sendsVideo });
  }

  /** @param {Partial<Call>} changes */
  #set(changes) {
    if (this.isOver) return;
    Object.assign(this, changes);
    this.emit('change', { call: this });
  }
}

/** @param {string} message */
const wrongState = (message) => new ConfabError({ code: 'call_state', message });
