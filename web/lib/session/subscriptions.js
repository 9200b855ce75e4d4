// The streams we subscribe to in a session. Several subscribers may show the same stream. The server gets their combined
// preference.

import { otFailure } from '../errors.js';
import { together } from '../media/preference.js';
import { Pace } from './pace.js';
import { sinkOf } from './subscriber.js';

/** @typedef {import('./core.js').SessionCore} SessionCore */
/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {import('./subscriber.js').Subscriber} Subscriber */

export class Subscriptions {
  #core;
  /** @type {Set<Subscriber>} */
  #subscribers = new Set();
  /** @type {Map<string, string>} the members of the `session.subscribe` last sent to the server, as JSON, by stream id */
  #reported = new Map();
  #pace;

  /** @param {SessionCore} core */
  constructor(core) {
    this.#core = core;
    this.#pace = new Pace(core.clock, (streamId) => this.changed(streamId), (streamId) => this.sinksOf(streamId).some(({ wants }) => wants.video));
  }

  get clock() {
    return this.#core.clock;
  }

  /** @param {string | undefined} streamId @returns {Subscriber[]} */
  of(streamId) {
    return [...this.#subscribers].filter(({ stream }) => stream.streamId === streamId);
  }

  /** @param {string} streamId */
  sinksOf(streamId) {
    return this.of(streamId).map(sinkOf);
  }

  /** @param {Subscriber} subscriber */
  async begin(subscriber) {
    const { streamId, connection } = subscriber.stream;
    const core = this.#core;
    const sink = sinkOf(subscriber);
    try {
      core.demand('subscribe', 1500);
      if (!core.roster.streams.has(streamId)) {
        throw otFailure('OT_STREAM_NOT_FOUND', 1604, 'This stream has ended or belongs to another session. Subscribe to a current stream.');
      }
      // In a routed session, the server sends our own stream back to us, which programs use to test both directions.
      // In a relayed session, subscribing to our own stream is an error.
      if (connection === core.session.connection && !core.transport?.slot) {
        throw otFailure('OT_INVALID_PARAMETER', 1011, 'This is your own stream. Show its publisher instead.');
      }
      this.#subscribers.add(subscriber);
      core.transport?.subscribe(streamId, connection.connectionId, sink);
      await this.#tell(streamId);
    } catch (error) {
      this.#subscribers.delete(subscriber);
      core.transport?.unsubscribe(streamId, sink);
      if (this.of(streamId).length === 0) this.#reported.delete(streamId);
      sink.destroy('failed');
      throw error;
    }
    await sink.connected;
  }

  /** @param {Subscriber} subscriber @param {string} reason */
  end(subscriber, reason) {
    if (!this.#subscribers.delete(subscriber)) return;
    const sink = sinkOf(subscriber);
    const { streamId } = subscriber.stream;
    this.#core.transport?.unsubscribe(streamId, sink);
    if (this.of(streamId).length > 0) {
      this.changed(streamId);
    } else if (this.#reported.delete(streamId) && this.#core.roster.streams.has(streamId)) {
      this.#core.request('session.unsubscribe', { streamId }).catch(() => {});
    }
    sink.destroy(reason);
  }

  /** @param {string} streamId @returns {RTCRtpReceiver[]} */
  receivers(streamId) {
    return this.#core.transport?.receivers(streamId) ?? [];
  }

  /** @returns {Promise<number | undefined>} the bandwidth from the server, in bit/s, if it is known */
  async estimate() {
    return this.#core.transport?.estimate?.();
  }

  /** @param {string} reason */
  endAll(reason) {
    for (const subscriber of [...this.#subscribers]) this.end(subscriber, reason);
  }

  /** Forgets the sent preferences. Call this when the session is over, so that the server is no longer notified. */
  forgetReported() {
    this.#reported.clear();
    this.#pace.stop();
  }

  /**
   * Sends the new combined preference after a subscriber of a stream has changed its own.
   * @param {string} streamId
   */
  changed(streamId) {
    this.#core.transport?.expectationChanged?.(streamId);
    if (this.#reported.has(streamId)) this.#tell(streamId).catch(() => {});
  }

  /**
   * Sends the new combined preference of a stream whose video was resized, hidden or shown again on the page.
   * Scrolling or a new layout can change many streams together, so the message rate is limited.
   * @param {string} streamId
   */
  viewChanged(streamId) {
    this.#pace.add(streamId);
  }

  /** Subscribes again over the new transport, because the media mode of the session changed. */
  moved() {
    this.#reported.clear();
    for (const subscriber of this.#subscribers) {
      const { streamId, connection } = subscriber.stream;
      const sink = sinkOf(subscriber);
      this.#core.transport?.subscribe(streamId, connection.connectionId, sink);
      sink.setUpAgain();
    }
    for (const streamId of new Set([...this.#subscribers].map(({ stream }) => stream.streamId))) {
      this.#tell(streamId).catch(() => {});
    }
  }

  /**
   * Requests a stream from the server again, because its transceivers have changed. Does nothing if it was not
   * requested.
   * @param {string} streamId
   */
  tellAgain(streamId) {
    if (!this.#reported.delete(streamId)) return;
    for (const sink of this.sinksOf(streamId)) sink.setUpAgain();
    this.#tell(streamId).catch(() => {});
  }

  /** @param {string} streamId */
  async #tell(streamId) {
    const { transport } = this.#core;
    const slot = transport?.slot ? await transport.slot(streamId) : {};
    const sinks = this.sinksOf(streamId);
    const wants = sinks.map((sink) => sink.wants);
    // The stream is no longer wanted, or the media mode changed in the meantime, after which `moved` sends this
    // request.
    if (slot === null || wants.length === 0 || transport !== this.#core.transport) return;
    // Preferences have no effect on relayed media.
    const preferring = transport?.slot ? sinks.filter((sink) => sink.wants.video) : [];
    const members = {
      audio: wants.some(({ audio }) => audio), video: wants.some(({ video }) => video), ...slot,
      ...together(preferring.map(({ preference }) => preference)),
    };
    const now = JSON.stringify(members);
    if (this.#reported.get(streamId) === now) return;
    this.#reported.set(streamId, now);
    await this.#core.request('session.subscribe', { streamId, ...members });
  }
}
