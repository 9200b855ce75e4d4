// What we watch in a session. Several subscribers may show one stream; the server is told what they want of it together.

import { otFailure } from '../errors.js';
import { together } from '../media/preference.js';

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {import('./subscriber.js').Subscriber} Subscriber */

export class Subscriptions {
  #session;
  /** @type {Set<Subscriber>} */
  #subscribers = new Set();
  /** @type {Map<string, string>} by stream id, what the server was last told */
  #told = new Map();

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** @param {string | undefined} streamId @returns {Subscriber[]} */
  of(streamId) {
    return [...this.#subscribers].filter(({ stream }) => stream.streamId === streamId);
  }

  /** @param {Subscriber} subscriber */
  async begin(subscriber) {
    const { streamId, connection } = subscriber.stream;
    const session = this.#session;
    try {
      session._demand('subscribe', 1500);
      if (!session._roster.streams.has(streamId)) {
        throw otFailure('OT_STREAM_NOT_FOUND', 1604, 'This stream is not in the session any more.');
      }
      // The server sends it back, which tries the way there and back.
      if (connection === session.connection && !session._transport?.slot) {
        throw otFailure('OT_INVALID_PARAMETER', 1011, 'This is your own stream. Show its publisher instead.');
      }
      this.#subscribers.add(subscriber);
      session._transport?.subscribe(streamId, connection.connectionId, subscriber);
      await this.#tell(streamId);
    } catch (error) {
      this.#subscribers.delete(subscriber);
      session._transport?.unsubscribe(streamId, subscriber);
      if (this.of(streamId).length === 0) this.#told.delete(streamId);
      subscriber._destroy('failed');
      throw error;
    }
    await subscriber._connected;
  }

  /** @param {Subscriber} subscriber @param {string} reason */
  end(subscriber, reason) {
    if (!this.#subscribers.delete(subscriber)) return;
    const { streamId } = subscriber.stream;
    this.#session._transport?.unsubscribe(streamId, subscriber);
    if (this.of(streamId).length > 0) {
      this.changed(streamId);
    } else if (this.#told.delete(streamId) && this.#session._roster.streams.has(streamId)) {
      this.#session._request('session.unsubscribe', { streamId }).catch(() => {});
    }
    subscriber._destroy(reason);
  }

  /** @param {string} streamId @returns {RTCRtpReceiver[]} */
  receivers(streamId) {
    return this.#session._transport?.receivers(streamId) ?? [];
  }

  /** @param {string} reason */
  endAll(reason) {
    for (const subscriber of [...this.#subscribers]) this.end(subscriber, reason);
  }

  /** The session is over: there is nobody to tell any more. */
  forgetTold() {
    this.#told.clear();
  }

  /**
   * One of a stream's subscribers wants more or less of it.
   * @param {string} streamId
   */
  changed(streamId) {
    this.#session._transport?.expectationChanged?.(streamId);
    if (this.#told.has(streamId)) this.#tell(streamId).catch(() => {});
  }

  /** Media travels otherwise from now on. */
  moved() {
    this.#told.clear();
    for (const subscriber of this.#subscribers) {
      const { streamId, connection } = subscriber.stream;
      this.#session._transport?.subscribe(streamId, connection.connectionId, subscriber);
      subscriber._setUpAgain();
    }
    for (const streamId of new Set([...this.#subscribers].map(({ stream }) => stream.streamId))) {
      this.#tell(streamId).catch(() => {});
    }
  }

  /**
   * The server has to begin anew with a stream.
   * @param {string} streamId
   */
  tellAgain(streamId) {
    if (!this.#told.delete(streamId)) return;
    for (const subscriber of this.of(streamId)) subscriber._setUpAgain();
    this.#tell(streamId).catch(() => {});
  }

  /** @param {string} streamId */
  async #tell(streamId) {
    const { _transport: transport } = this.#session;
    const slot = transport?.slot ? await transport.slot(streamId) : {};
    const subscribers = this.of(streamId);
    const wants = subscribers.map(({ _wants }) => _wants);
    // Nobody wants it any more, or whoever set it up anew meanwhile tells it.
    if (slot === null || wants.length === 0 || transport !== this.#session._transport) return;
    const members = {
      audio: wants.some(({ audio }) => audio), video: wants.some(({ video }) => video), ...slot,
      ...together(subscribers.filter(({ _wants }) => _wants.video).map(({ _preference }) => _preference)),
    };
    const now = JSON.stringify(members);
    if (this.#told.get(streamId) === now) return;
    this.#told.set(streamId, now);
    await this.#session._request('session.subscribe', { streamId, ...members });
  }
}
