// What we publish in a session, from the wish to its end. Its one invariant: whoever is unpublished, or whose session ends,
// while the server still thinks about it, is not published after all.

import { otError, otFailure } from '../errors.js';
import { settle } from './registry.js';

/** @typedef {import('./publisher.js').Publisher} Publisher */
/** @typedef {import('./session.js').Session} Session */

export class Publications {
  #session;
  /** @type {Set<Publisher>} waiting for their camera or the server's answer */
  #begun = new Set();
  /** @type {Map<string, Publisher>} by stream id */
  #running = new Map();

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** @param {string} streamId */
  of(streamId) {
    return this.#running.get(streamId);
  }

  /**
   * As `Session.publish`, and also while the session connects: the server takes what follows the join in order, and whoever
   * waits there for the picture has it a round trip sooner.
   * @param {Publisher} publisher
   * @param {import('./arguments.js').Callback} callback
   */
  beginEarly(publisher, callback) {
    settle(this.begin(publisher, true), callback, publisher, (error) => otError(error, 'publish'));
  }

  /** @param {Publisher} publisher @param {boolean} [isEarly] */
  async begin(publisher, isEarly = false) {
    const session = this.#session;
    const { stillIn } = session._demand('publish', 1500, isEarly);
    if (publisher.isDestroyed) throw otFailure('OT_INVALID_PARAMETER', 1500, 'This publisher was destroyed. Make another one.');
    if (publisher.session || this.#begun.has(publisher)) {
      throw otFailure('OT_INVALID_PARAMETER', 1500, 'This publisher is being published already. Unpublish it first.');
    }
    this.#begun.add(publisher);
    /** @type {import('../media/transport.js').Transport | null} */
    let transport = null;
    try {
      await Promise.all([publisher._ready, session._opened]);
      stillIn();
      transport = session._transport;
      // The server says so as well, with the event, once it knows the stream; until then nobody is to hear us.
      if (session._muted) publisher.publishAudio(false);
      const mids = transport?.mids ? await transport.mids(publisher) : {};
      stillIn();
      const announced = publisher._announcement();
      const { stream } = await session._request('session.publish', { ...announced, ...mids });
      stillIn();
      this.#run(publisher, stream, announced);
    } finally {
      this.#begun.delete(publisher);
      transport?.cancel?.(publisher);
    }
  }

  /** @param {Publisher} publisher @param {any} info @param {{hasAudio: boolean, hasVideo: boolean}} announced */
  #run(publisher, info, announced) {
    const session = this.#session;
    if (!this.#begun.has(publisher)) {
      session._request('session.unpublish', { streamId: info.streamId }).catch(() => {});
      throw otFailure('OT_STREAM_CREATE_FAILED', 1500, 'The publisher was unpublished before its stream began.');
    }
    const stream = session._roster.stream(info);
    this.#running.set(stream.streamId, publisher);
    session._transport?.publish(stream.streamId, publisher);
    publisher._published(session, stream);
    // Somebody may have muted themselves while the question was on its way.
    const { hasAudio, hasVideo } = publisher._announcement();
    if (hasAudio !== announced.hasAudio || hasVideo !== announced.hasVideo) this.update(publisher, { hasAudio, hasVideo });
  }

  /**
   * By our own wish.
   * @param {Publisher} publisher
   * @param {string} reason
   */
  end(publisher, reason) {
    this.#begun.delete(publisher);
    const { stream } = publisher;
    if (!stream || publisher.session !== this.#session) return;
    this.#session._request('session.unpublish', { streamId: stream.streamId }).catch(() => {});
    this.ended(stream.streamId, reason);
  }

  /**
   * By whoever's.
   * @param {string} streamId
   * @param {string} reason
   * @returns {boolean} whether it was ours
   */
  ended(streamId, reason) {
    const publisher = this.#running.get(streamId);
    if (!publisher) return false;
    this.#running.delete(streamId);
    this.#session._transport?.unpublish(streamId);
    this.#session._roster.removeStream(streamId);
    // Who watched their own stream come back from the server.
    for (const subscriber of this.#session.getSubscribersForStream(streamId)) this.#session.unsubscribe(subscriber, reason);
    publisher._unpublished(reason);
    return true;
  }

  /** @param {Publisher} publisher @param {Record<string, unknown>} changes what others are to know */
  update({ stream }, changes) {
    if (stream) this.#session._request('session.update', { streamId: stream.streamId, ...changes }).catch(() => {});
  }

  /** Media travels otherwise from now on. */
  moved() {
    for (const [streamId, publisher] of this.#running) this.#session._transport?.publish(streamId, publisher);
  }

  /**
   * Names the transceivers that carry a stream, which are others now.
   * @param {string} streamId
   */
  async tellAgain(streamId) {
    const { _transport: transport } = this.#session;
    const publisher = this.#running.get(streamId);
    if (!publisher || !transport?.mids) return;
    const mids = await transport.mids(publisher).catch(() => null);
    if (mids && transport === this.#session._transport && this.#running.has(streamId)) this.update(publisher, mids);
  }

  /** @param {Publisher} publisher @param {string} kind @param {MediaStreamTrack | null} track */
  replaceTrack({ stream }, kind, track) {
    if (stream) this.#session._transport?.replaceTrack(stream.streamId, kind, track);
  }

  /** @param {Publisher} publisher @returns {Promise<{connectionId: string, reports: RTCStatsReport[]}[]>} */
  async reports({ stream }) {
    return stream ? await this.#session._transport?.senderReports(stream.streamId) ?? [] : [];
  }

  /** @param {string} reason */
  endAll(reason) {
    this.#begun.clear();
    for (const streamId of [...this.#running.keys()]) this.ended(streamId, reason);
  }
}
