// Audio and video of one visit to a room's session: subscribes to everyone's streams, and publishes the local ones. Failed attempts
// are retried, so that all members eventually receive each other. Invariant: after `end`, nothing keeps running, and
// only `subscriberGone` and `lost` are still reported.

import { systemClock, Timers } from '../clock.js';
import { otError } from '../errors.js';
import { Backoff } from '../signaling/backoff.js';
import { SessionCore } from '../session/core.js';

/** @typedef {import('../errors.js').ConfabError} ConfabError */
/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/** @typedef {import('../session/roster.js').Stream} Stream */
/** @typedef {import('../session/subscriber.js').Subscriber} Subscriber */
/** @typedef {{stream: Stream} | {publisher: Publisher}} Failed the stream that cannot be received, or the publisher that cannot be sent */
/**
 * @typedef {object} RoomMediaHooks
 * @property {(subscriber: Subscriber) => void} subscriber called when a subscriber was created, before it plays
 * @property {(subscriber: Subscriber) => void} subscriberGone called when a subscriber was destroyed
 * @property {(publisher: Publisher) => boolean} isKept returns whether the publisher should still be published
 * @property {(publisher: Publisher, error: ConfabError) => void} refused called when the publisher was destroyed or
 *   cannot be published in this room, so that it is not tried again
 * @property {(error: ConfabError, of: Failed, isFinal: boolean) => void} trouble called when an attempt has failed; it
 *   is retried unless `isFinal`
 * @property {(of: Failed) => void} recovered called when the failed stream or publisher works now, or is no longer
 *   wanted
 * @property {() => void} recording called when a recording of the session has started or ended
 * @property {() => void} broadcast called when a live broadcast of the session has started or ended
 * @property {() => void} lost called when the session has ended without a local request
 */

/** The longest pause between two attempts, unless the server asks for a longer one (milliseconds). */
export const longestMs = 30_000;

/** Codes of errors after which another attempt with the same stream or publisher would fail again. */
const final = ['not_permitted', 'media_unavailable', 'malformed'];

export class RoomMedia {
  #core;
  #options;
  #hooks;
  #timers;
  /** @type {Map<unknown, {of: Failed, backoff: Backoff}>} failing streams and publishers, by stream id or publisher */
  #failing = new Map();
  /** @type {WeakMap<Publisher, string>} the names of the timers that publish the publishers again */
  #names = new WeakMap();
  #named = 0;
  #over = false;
  /** @type {Map<string, Subscriber>} by stream id */
  #subscribers = new Map();

  /**
   * @param {import('../signaling/client.js').Client} client
   * @param {string} sessionId
   * @param {import('./room.js').RoomsOptions} options
   * @param {RoomMediaHooks} hooks
   */
  constructor(client, sessionId, options, hooks) {
    const { rtc, clock, iceConfig } = options;
    this.#core = new SessionCore('', sessionId, { client, rtc, clock, iceConfig });
    this.#options = options;
    this.#hooks = hooks;
    this.#timers = new Timers(clock ?? systemClock);
  }

  get session() {
    return this.#core.session;
  }

  get isOver() {
    return this.#over;
  }

  /** Starts to record the session, into one file if the server can compose. Moderators only. */
  startRecording() {
    return this.session.startArchive({ outputMode: this.#core.archives.forModerators ?? undefined });
  }

  /** Stops all recordings of the session. Moderators only. */
  async stopRecording() {
    for (const id of this.#core.archives.ids) await this.session.stopArchive(id);
  }

  /**
   * Joins the session, and starts to publish without waiting for the answer. If joining fails, ends this visit and
   * rejects.
   * @param {string} token
   * @param {Iterable<Publisher>} publishers
   */
  async begin(token, publishers) {
    this.session.on({
      streamCreated: ({ stream }) => this.#see(stream),
      streamDestroyed: ({ stream }) => this.#settled(stream.streamId),
      archiveStarted: () => this.#hooks.recording(),
      archiveStopped: () => this.#hooks.recording(),
      broadcastStarted: () => this.#hooks.broadcast(),
      broadcastStopped: () => this.#hooks.broadcast(),
      sessionDisconnected: () => {
        if (this.#over) return;
        this.end(true);
        // Wait for the default action, which ends the subscribers.
        queueMicrotask(() => this.#hooks.lost());
      },
    });
    const joined = this.#core.connect(token);
    for (const publisher of publishers) this.publish(publisher);
    try {
      await joined;
    } catch (error) {
      this.end(true);
      throw error;
    }
  }

  /** @param {Publisher} publisher */
  publish(publisher) {
    if (this.#over || publisher.isDestroyed || publisher.session === this.session) return;
    // A chat or call that this room replaces may not have released the publisher yet.
    publisher.session?.unpublish(publisher);
    this.#core.publications.beginEarly(publisher, (error) => {
      if (!error) this.#recovered(publisher);
      else if (!this.#over && this.#hooks.isKept(publisher)) this.#notPublished(publisher, error);
    });
  }

  /** @param {Publisher} publisher */
  unpublish(publisher) {
    this.forget(publisher);
    this.session.unpublish(publisher);
  }

  /** @param {Publisher} publisher a publisher that is no longer sent, so that publishing it is not retried */
  forget(publisher) {
    this.#settled(publisher);
  }

  /**
   * @param {boolean} isLost whether the server has already ended this visit, so that `session.leave` need not be sent
   */
  end(isLost) {
    if (this.#over) return;
    this.#over = true;
    this.#timers.clearAll();
    this.#failing.clear();
    if (isLost) this.#core.end('networkDisconnected');
    else this.#core.disconnect();
  }

  /** @param {Stream} stream */
  #see(stream) {
    const { streamId, connection } = stream;
    const isWanted = !this.#over && this.#core.roster.streams.get(streamId) === stream && !this.#subscribers.has(streamId);
    if (!isWanted || connection === this.session.connection) return;
    const { subscriberTarget, subscriberOptions } = this.#options;
    // By default, create a detached element, which the application inserts where it wants.
    const target = subscriberTarget?.(stream) ?? document.createElement('div');
    const options = { width: '100%', height: '100%', ...subscriberOptions };
    const subscriber = this.session.subscribe(stream, target, options, (/** @type {ConfabError | undefined} */ error) => {
      if (!error) this.#recovered(streamId);
      else if (!this.#over) this.#notSeen(stream, error);
    });
    this.#subscribers.set(streamId, subscriber);
    subscriber.once('destroyed', () => {
      this.#subscribers.delete(streamId);
      this.#hooks.subscriberGone(subscriber);
    });
    this.#hooks.subscriber(subscriber);
  }

  /** @param {Stream} stream @param {ConfabError} error */
  #notSeen(stream, error) {
    // The stream ended in the meantime.
    if (this.#core.roster.streams.get(stream.streamId) !== stream || error.name === 'OT_STREAM_DESTROYED') return;
    this.#later(stream.streamId, { stream }, `see ${stream.streamId}`, error, () => this.#see(stream));
  }

  /** @param {Publisher} publisher @param {ConfabError} error */
  #notPublished(publisher, error) {
    const known = otError(error, 'publish');
    // The publisher was unpublished and published again in the meantime, and the new attempt succeeded.
    if (publisher.session === this.session) return;
    if (publisher.isDestroyed || final.includes(known.reason ?? '')) {
      this.#settled(publisher);
      return this.#hooks.refused(publisher, known);
    }
    this.#later(publisher, { publisher }, this.#nameOf(publisher), known, () => { if (this.#hooks.isKept(publisher)) this.publish(publisher); });
  }

  /** @param {Publisher} publisher */
  #nameOf(publisher) {
    const name = this.#names.get(publisher) ?? `publish ${this.#named += 1}`;
    this.#names.set(publisher, name);
    return name;
  }

  /**
   * Retries after a pause, unless the error is final. Reports only the first of several failures in a row, and every
   * final error.
   * @param {unknown} key the id of the stream, or the publisher
   * @param {Failed} of
   * @param {string} timer the name of the timer for the pause
   * @param {ConfabError} error
   * @param {() => void} again
   */
  #later(key, of, timer, error, again) {
    const known = this.#failing.get(key);
    const { backoff } = known ?? { backoff: new Backoff(this.#options.random, longestMs) };
    this.#failing.set(key, { of, backoff });
    const isFinal = final.includes(error.reason ?? '');
    if (!isFinal) this.#timers.set(timer, Math.max(backoff.next(), error.retryAfterMs ?? 0), again);
    if (!known || isFinal) this.#hooks.trouble(error, of, isFinal);
  }

  /** @param {unknown} key the id of the stream, or the publisher, that works now or is no longer tried */
  #recovered(key) {
    const known = this.#failing.get(key);
    if (this.#failing.delete(key) && known) this.#hooks.recovered(known.of);
  }

  /** @param {unknown} key the id of the stream, or the publisher, that must not be tried again */
  #settled(key) {
    this.#recovered(key);
    this.#timers.clear(typeof key === 'string' ? `see ${key}` : this.#nameOf(/** @type {Publisher} */ (key)));
  }
}
