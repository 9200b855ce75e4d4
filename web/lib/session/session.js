// `Session`, with OpenTok's names: the API that programs use. `SessionCore` implements it.

import { otError, otFailure } from '../errors.js';
import { Emitter } from '../events.js';
import { idOf, signalMembers, sortArguments } from './arguments.js';
import { Publisher } from './publisher.js';
import { settle } from './registry.js';
import { Subscriber } from './subscriber.js';

/** @typedef {import('./arguments.js').Callback} Callback */
/** @typedef {import('./roster.js').Connection} Connection */
/** @typedef {import('./core.js').SessionCore} SessionCore */
/** @typedef {import('./roster.js').Stream} Stream */

export class Session extends Emitter {
  /** @type {Connection | null} */
  connection = null;
  /**
   * The capabilities of our token: 1 if granted, otherwise 0. Undefined before connecting.
   * @type {Record<string, number> | undefined}
   */
  capabilities = undefined;
  #core;

  /** @param {string} apiKey @param {string} sessionId @param {SessionCore} core the core that creates it */
  constructor(apiKey, sessionId, core) {
    super();
    this.apiKey = apiKey;
    this.sessionId = sessionId;
    this.id = sessionId;
    this.#core = core;
  }

  // ---- Connecting and disconnecting

  /**
   * Connects and calls back when the session can be used. In a large session, most connections and streams are not known at that
   * time: they arrive in pages, with the same events `connectionCreated` and `streamCreated`.
   * @param {string} token
   * @param {Callback} [callback]
   * @returns {this}
   */
  connect(token, callback) {
    settle(this.#core.connect(token), callback, this, (error) => otError(error, 'connect'));
    return this;
  }

  isConnected() {
    return this.#core.isConnected;
  }

  /** @returns {Promise<void>} */
  disconnect() {
    return this.#core.disconnect();
  }

  // ---- Publishing

  /**
   * Publishes a stream: `publish(publisher, callback?)`, or `publish(target?, properties?, callback?)`, which creates
   * the publisher.
   * @param {...any} given
   * @returns {Publisher}
   */
  publish(...given) {
    const { target, properties, callback } = sortArguments(given);
    const publisher = properties instanceof Publisher ? properties : this._makePublisher(target, properties);
    settle(this.#core.publications.begin(publisher), callback, publisher, (error) => otError(error, 'publish'));
    return publisher;
  }

  /** @param {Publisher} publisher @param {string} [reason] */
  unpublish(publisher, reason = 'clientDisconnected') {
    this.#core.publications.end(publisher, reason);
  }

  // ---- Subscribing

  /**
   * Subscribes to a stream: `subscribe(stream, target?, properties?, callback?)`.
   * @param {Stream} stream
   * @param {...any} given
   * @returns {Subscriber}
   */
  subscribe(stream, ...given) {
    const { target, properties, callback } = sortArguments(given);
    const subscriber = this._makeSubscriber(stream, target, properties, this.#core.subscriptions);
    settle(this.#core.subscriptions.begin(subscriber), callback, subscriber, (error) => otError(error, 'subscribe'));
    return subscriber;
  }

  /** @param {Subscriber} subscriber @param {string} [reason] */
  unsubscribe(subscriber, reason = 'unsubscribed') {
    this.#core.subscriptions.end(subscriber, reason);
  }

  /** @param {Stream | string | undefined} stream @returns {Subscriber[]} */
  getSubscribersForStream(stream) {
    return this.#core.subscriptions.of(stream && idOf(stream));
  }

  /** @param {Stream | string} stream @returns {Publisher | undefined} */
  getPublisherForStream(stream) {
    return this.#core.publications.of(idOf(stream));
  }

  /**
   * Creates the publisher of `publish`. Override this to use a subclass.
   * @param {import('../media/widget.js').Target} target
   * @param {import('./publisher-types.js').PublisherOptions} properties
   * @returns {Publisher}
   */
  _makePublisher(target, properties) {
    return new Publisher(target, properties);
  }

  /**
   * Creates the subscriber of `subscribe`. Override this to use a subclass.
   * @param {Stream} stream
   * @param {import('../media/widget.js').Target} target
   * @param {import('./subscriber-types.js').SubscriberOptions} properties
   * @param {import('./subscriber-types.js').SubscriberHost} host
   * @returns {Subscriber}
   */
  _makeSubscriber(stream, target, properties, host) {
    return new Subscriber(stream, target, properties, host);
  }

  // ---- Signals and moderation

  /**
   * @param {{type?: string, data?: string, to?: Connection | string, retryAfterReconnect?: boolean}} signal
   * @param {Callback} [callback]
   */
  signal(signal, callback) {
    settle(this.#signal(signal), callback, this, (error) => otError(error, 'signal'));
  }

  /** @param {Parameters<Session['signal']>[0]} signal */
  async #signal(signal) {
    if (!this.isConnected()) throw otFailure('OT_NOT_CONNECTED', 500, 'Connect to the session before you send a signal.');
    const members = signalMembers(signal);
    if (signal.retryAfterReconnect === false && !this.#core.isOnline) {
      throw otFailure('OT_NOT_CONNECTED', 500, 'The connection is down. Send the signal again later, or leave out retryAfterReconnect: false.');
    }
    await this.#core.request('session.signal', members);
  }

  /** Whether the session is being recorded. OpenTok has only the events. */
  get isRecorded() {
    return this.#core.archives.ids.length > 0;
  }

  /** Whether a recording waits for the answer of this person, with `acceptRecording`. OpenTok does not ask. */
  get asksConsent() {
    return this.#core.archives.asksConsent;
  }

  /**
   * Accepts or refuses to be recorded. If the event `archiveStarted` has `consent: true`, the recording contains the
   * streams of this connection only while it accepts. The answer applies until the session is no longer recorded.
   * @param {boolean} accept
   * @returns {Promise<void>}
   */
  async acceptRecording(accept) {
    await this.#core.archives.consent(accept);
  }

  /** Whether the session is being broadcast live. */
  get isBroadcast() {
    return this.#core.broadcasts.ids.length > 0;
  }

  /** Whether a broadcast waits for the answer of this person, with `acceptBroadcast`. */
  get asksBroadcastConsent() {
    return this.#core.broadcasts.asksConsent;
  }

  /**
   * Accepts or refuses to be broadcast live. If the event `broadcastStarted` has `consent: true`, the broadcast contains the
   * streams of this connection only while it accepts. The answer applies until the session is no longer broadcast. OpenTok
   * has neither the events nor the question.
   * @param {boolean} accept
   * @throws {ConfabError} while the session is not connected
   */
  async acceptBroadcast(accept) {
    await this.#core.broadcasts.consent(accept);
  }

  /**
   * The output mode in which moderators may record the session with `startArchive`; null if the server does not permit it.
   * OpenTok's SDK has no such method.
   */
  get moderatorArchives() {
    return this.#core.archives.forModerators;
  }

  /**
   * Starts to record the session. Moderators only, and only if the server permits it (`recording.moderatorsMayRecord`). The
   * event `archiveStarted` has the id of the archive. OpenTok's SDK has no such method.
   * @param {{name?: string, outputMode?: 'composed' | 'individual'}} options one file of all streams (default), or one for each
   * @returns {Promise<void>}
   */
  async startArchive({ name, outputMode } = {}) {
    await this.#core.request('session.startArchive', { name, outputMode });
  }

  /**
   * Stops a recording. Moderators only, and only if the server permits it. OpenTok's SDK has no such method.
   * @param {string} id the `id` of the event `archiveStarted`
   * @returns {Promise<void>}
   */
  async stopArchive(id) {
    await this.#core.request('session.stopArchive', { archiveId: id });
  }

  /** @param {Connection | string} connection @param {Callback} [callback] @returns {Promise<void>} */
  forceDisconnect(connection, callback) {
    return this.#force('forceDisconnect', 1520, { connectionId: idOf(connection) }, callback);
  }

  /** @param {Stream | string} stream @param {Callback} [callback] @returns {Promise<void>} */
  forceUnpublish(stream, callback) {
    return this.#force('forceUnpublish', 1530, { streamId: idOf(stream) }, callback);
  }

  /** @param {Stream | string} stream @returns {Promise<void>} */
  forceMuteStream(stream) {
    return this.#force('forceMute', 1540, { active: true, streamId: idOf(stream) });
  }

  /**
   * Mutes all current streams except the excluded ones, and all streams that start later.
   * @param {(Stream | string)[]} [excluded]
   * @returns {Promise<void>}
   */
  forceMuteAll(excluded = []) {
    return this.#force('forceMute', 1540, { active: true, excluded: excluded.map(idOf) });
  }

  /**
   * Stops muting new publishers.
   * @returns {Promise<void>}
   */
  disableForceMute() {
    return this.#force('forceMute', 1540, { active: false });
  }

  /**
   * @param {'forceDisconnect' | 'forceUnpublish' | 'forceMute'} verb
   * @param {number} code
   * @param {Record<string, unknown>} members
   * @param {Callback} [callback]
   * @returns {Promise<void>}
   */
  #force(verb, code, members, callback) {
    const done = (async () => {
      this.#core.demand(verb, code);
      await this.#core.request(`session.${verb}`, members);
    })().catch((error) => { throw otError(error, verb); });
    settle(done, callback, this, (error) => otError(error, verb));
    return done;
  }
}
