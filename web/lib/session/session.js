// `Session`: OpenTok's session on a `Client`. It knows who is there, publishes, subscribes and signals; how media travels is
// its transport's business. Its one invariant: after `sessionDisconnected` nothing of it is left running.

import { otError, otFailure } from '../errors.js';
import { Emitter, OTEvent } from '../events.js';
import { Client } from '../line/client.js';
import { idOf, signalMembers, sortArguments } from './arguments.js';
import { Publications } from './publications.js';
import { Publisher } from './publisher.js';
import { settle } from './registry.js';
import { Roster } from './roster.js';
import { handle } from './session-events.js';
import { transportFor } from './session-media.js';
import { Subscriber } from './subscriber.js';
import { Subscriptions } from './subscriptions.js';

/** @typedef {import('./arguments.js').Callback} Callback */
/** @typedef {import('./roster.js').Connection} Connection */
/** @typedef {import('../line/messages.js').Message} Message */
/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {'disconnected' | 'connecting' | 'connected' | 'reconnecting'} SessionState */
/**
 * @typedef {object} SessionOptions
 * @property {Client} [client] shared with others; without it the session has a line of its own
 * @property {string} [url] for a line of its own
 * @property {boolean} [connectionEventsSuppressed]
 * @property {import('../media/ice.js').IceConfig} [iceConfig] of routed media only on a line of its own: see `Client`
 * @property {import('../media/peer.js').Rtc} [rtc]
 * @property {import('../clock.js').Clock} [clock]
 */

export class Session extends Emitter {
  /** @type {Connection | null} */
  connection = null;
  /**
   * What our token allows, 1 or 0; undefined before connecting.
   * @type {Record<string, number> | undefined}
   */
  capabilities = undefined;
  /** @internal */
  _roster = new Roster();
  /**
   * @internal
   * @type {import('../media/transport.js').Transport | null}
   */
  _transport = null;
  #options;
  /** @type {SessionState} */
  #state = 'disconnected';
  /** @type {Client | null} */
  #client = null;
  #unlisten = () => {};
  /** Counts connects: what was begun under an earlier one is over. */
  #epoch = 0;
  /**
   * @internal Settles when the server can be asked: a join goes first.
   * @type {Promise<unknown>}
   */
  _opened = Promise.resolve();
  /** @internal Whether whoever publishes is to begin silent. */
  _muted = false;
  /** @internal */
  _publications = new Publications(this);
  /** @internal */
  _subscriptions = new Subscriptions(this);

  /** @param {string} apiKey @param {string} sessionId @param {SessionOptions} [options] */
  constructor(apiKey, sessionId, options = {}) {
    super();
    this.apiKey = apiKey;
    this.sessionId = sessionId;
    this.id = sessionId;
    this.#options = options;
  }

  // ---- Coming and going

  /** @param {string} token @param {Callback} [callback] @returns {this} */
  connect(token, callback) {
    settle(this.#connect(token), callback, this, (error) => otError(error, 'connect'));
    return this;
  }

  isConnected() {
    return this.#state === 'connected' || this.#state === 'reconnecting';
  }

  /** @returns {Promise<void>} */
  async disconnect() {
    if (this.#state === 'disconnected') return;
    const left = this.isConnected() && this.#options.client ? this._request('session.leave').catch(() => {}) : undefined;
    this._end('clientDisconnected');
    await left;
  }

  /** @param {string} token */
  async #connect(token) {
    if (this.#state !== 'disconnected') {
      throw otFailure('OT_CONNECT_FAILED', 1006, 'This session is connected already. Call disconnect() first.');
    }
    if (typeof token !== 'string' || token === '') {
      throw otFailure('OT_INVALID_PARAMETER', 1011, 'Give connect() a token for this session.');
    }
    this.#state = 'connecting';
    const epoch = this.#epoch += 1;
    const { url, iceConfig, rtc } = this.#options;
    const client = this.#options.client ?? new Client({ url, token, iceConfig, rtc });
    this.#listen(client);
    try {
      await (this._opened = client.connect());
      this.#stillIn(epoch);
      // Its id says so (protocol §7): what is published right behind the join can name its transceivers.
      if (this.sessionId.startsWith('2_')) this._transport = transportFor(this, client, this.#options, 'routed');
      await client.request('session.join', { sessionId: this.sessionId, token });
      if (epoch !== this.#epoch) client.request('session.leave', { sessionId: this.sessionId }).catch(() => {});
      this.#stillIn(epoch);
    } catch (error) {
      if (epoch === this.#epoch) this.#abandon(client);
      throw error;
    }
  }

  /** @param {number} epoch */
  #stillIn(epoch) {
    if (epoch === this.#epoch && this.#state !== 'disconnected') return;
    throw otFailure('OT_NOT_CONNECTED', 1010, 'The session was disconnected meanwhile. Connect again.');
  }

  /**
   * Connecting failed: nobody was told anything yet.
   * @param {Client} client
   */
  #abandon(client) {
    this.#unlisten();
    this.#state = 'disconnected';
    this._transport?.close();
    this._transport = null;
    if (!this.#options.client) client.leave();
  }

  /** @param {Client} client */
  #listen(client) {
    this.#client = client;
    /** @type {Record<string, (event: any) => void>} */
    const handlers = {
      message: (message) => { if (message.sessionId === this.sessionId) handle(this, message); },
      reconnecting: () => this.#reconnecting(),
      connected: ({ resumed }) => { if (resumed) this.#reconnected(); },
      expired: () => this._end('networkDisconnected'),
      closed: () => this._end('networkDisconnected'),
    };
    client.on(handlers);
    this.#unlisten = () => { for (const [name, handler] of Object.entries(handlers)) client.off(name, handler); };
  }

  #reconnecting() {
    if (this.#state !== 'connected') return;
    this.#state = 'reconnecting';
    this.dispatch(new OTEvent('sessionReconnecting'));
  }

  #reconnected() {
    if (this.#state !== 'reconnecting') return;
    this.#state = 'connected';
    this._transport?.resumed();
    this.dispatch(new OTEvent('sessionReconnected'));
  }

  // ---- Publishing

  /**
   * `publish(publisher, callback?)`, or `publish(target?, properties?, callback?)` to make one.
   * @param {...any} given
   * @returns {Publisher}
   */
  publish(...given) {
    const { target, properties, callback } = sortArguments(given);
    const publisher = properties instanceof Publisher ? properties : new Publisher(target, properties);
    settle(this._publications.begin(publisher), callback, publisher, (error) => otError(error, 'publish'));
    return publisher;
  }

  /** @param {Publisher} publisher @param {string} [reason] */
  unpublish(publisher, reason = 'clientDisconnected') {
    this._publications.end(publisher, reason);
  }

  // ---- Subscribing

  /**
   * `subscribe(stream, target?, properties?, callback?)`
   * @param {Stream} stream
   * @param {...any} given
   * @returns {Subscriber}
   */
  subscribe(stream, ...given) {
    const { target, properties, callback } = sortArguments(given);
    const subscriber = new Subscriber(stream, target, properties, this._subscriptions);
    settle(this._subscriptions.begin(subscriber), callback, subscriber, (error) => otError(error, 'subscribe'));
    return subscriber;
  }

  /** @param {Subscriber} subscriber @param {string} [reason] */
  unsubscribe(subscriber, reason = 'unsubscribed') {
    this._subscriptions.end(subscriber, reason);
  }

  /** @param {Stream | string | undefined} stream @returns {Subscriber[]} */
  getSubscribersForStream(stream) {
    return this._subscriptions.of(stream && idOf(stream));
  }

  /** @param {Stream | string} stream @returns {Publisher | undefined} */
  getPublisherForStream(stream) {
    return this._publications.of(idOf(stream));
  }

  // ---- Signalling and moderating

  /**
   * @param {{type?: string, data?: string, to?: Connection | string, retryAfterReconnect?: boolean}} signal
   * @param {Callback} [callback]
   */
  signal(signal, callback) {
    settle(this.#signal(signal), callback, this, (error) => otError(error, 'signal'));
  }

  /** @param {Parameters<Session['signal']>[0]} signal */
  async #signal(signal) {
    if (!this.isConnected()) throw otFailure('OT_NOT_CONNECTED', 500, 'Connect to the session before you signal.');
    const members = signalMembers(signal);
    if (signal.retryAfterReconnect === false && this.#client?.state !== 'connected') {
      throw otFailure('OT_NOT_CONNECTED', 500, 'The connection is away, and this signal was not to wait for it.');
    }
    await this._request('session.signal', members);
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
   * Everybody, and whoever publishes later.
   * @param {(Stream | string)[]} [excluded]
   * @returns {Promise<void>}
   */
  forceMuteAll(excluded = []) {
    return this.#force('forceMute', 1540, { active: true, excluded: excluded.map(idOf) });
  }

  /**
   * Whoever publishes from now on is not muted.
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
      this._demand(verb, code);
      await this._request(`session.${verb}`, members);
    })().catch((error) => { throw otError(error, verb); });
    settle(done, callback, this, (error) => otError(error, verb));
    return done;
  }

  // ---- What the session's own parts call

  /**
   * @internal
   * @param {string} type
   * @param {Record<string, unknown>} [members]
   * @returns {Promise<Message>}
   */
  _request(type, members = {}) {
    if (!this.#client) return Promise.reject(otFailure('OT_NOT_CONNECTED', 1010, 'Connect to the session first.'));
    return this.#client.request(type, { sessionId: this.sessionId, ...members });
  }

  /**
   * @internal
   * @param {Message} message
   */
  _joined(message) {
    if (this.#state !== 'connecting') return;
    this.#state = 'connected';
    this._muted = message.muted;
    const allowed = Object.entries(message.capabilities);
    this.capabilities = Object.fromEntries(allowed.map(([name, isAllowed]) => [name, isAllowed ? 1 : 0]));
    this._roster = new Roster();
    this.connection = this._roster.connection(message.connection);
    if (!this._transport || message.mediaMode !== 'routed') this._mediaModeChanged(message.mediaMode);
    const epoch = this.#epoch;
    const connections = message.connections.map((/** @type {any} */ info) => this._roster.connection(info));
    const streams = message.streams.map((/** @type {any} */ info) => this._roster.stream(info));
    const events = [
      new OTEvent('sessionConnected'),
      ...this.#options.connectionEventsSuppressed ? [] : [this.connection, ...connections]
        .map((connection) => new OTEvent('connectionCreated', { connection })),
      ...streams.map((/** @type {Stream} */ stream) => new OTEvent('streamCreated', { stream })),
    ];
    // A handler may disconnect, and then the rest is nobody's news.
    for (const event of events) if (epoch === this.#epoch && this.isConnected()) this.dispatch(event);
  }

  /**
   * @internal Media travels otherwise from now on; streams and who watches them stay.
   * @param {'relayed' | 'routed'} mediaMode
   */
  _mediaModeChanged(mediaMode) {
    if (!this.#client) return;
    this._transport?.close();
    this._transport = transportFor(this, this.#client, this.#options, mediaMode);
    this._publications.moved();
    this._subscriptions.moved();
  }

  /**
   * @internal
   * @param {OTEvent} event
   */
  _tellConnection(event) {
    if (!this.#options.connectionEventsSuppressed) this.dispatch(event);
  }

  /**
   * @internal
   * @param {string} streamId
   * @param {string} reason
   */
  _streamGone(streamId, reason) {
    if (this._publications.ended(streamId, reason)) return;
    const stream = this._roster.removeStream(streamId);
    if (!stream) return;
    const watching = this.getSubscribersForStream(stream);
    this.dispatch(new OTEvent('streamDestroyed', { stream, reason }, true), () => {
      for (const subscriber of watching) this.unsubscribe(subscriber, reason);
    });
  }

  /**
   * @internal It is over, for whatever reason; everything of it goes.
   * @param {string} reason
   */
  _end(reason) {
    if (this.#state === 'disconnected') return;
    const wasConnected = this.isConnected();
    this.#state = 'disconnected';
    this.#epoch += 1;
    this.#unlisten();
    if (!this.#options.client) this.#client?.leave();
    this.#client = null;
    this._transport?.close();
    this._transport = null;
    this._subscriptions.forgetTold();
    this._publications.endAll(reason);
    if (!wasConnected) return;
    this.dispatch(new OTEvent('sessionDisconnected', { reason }, true), () => this._subscriptions.endAll(reason));
    this.connection = null;
  }

  /**
   * @internal Whether the token allows it, here and now.
   * @param {'publish' | 'subscribe' | 'forceDisconnect' | 'forceUnpublish' | 'forceMute'} capability
   * @param {number} code
   * @param {boolean} [isEarly] also before we were let in: then the server alone knows
   * @returns {{stillIn: () => void}} throws when the session ended meanwhile
   */
  _demand(capability, code, isEarly = false) {
    const epoch = this.#epoch;
    const allowed = { stillIn: () => this.#stillIn(epoch) };
    if (isEarly && this.#state === 'connecting') return allowed;
    if (!this.isConnected()) throw otFailure('OT_NOT_CONNECTED', 1010, `Connect to the session before you ${capability}.`);
    if (this.capabilities?.[capability] === 1) return allowed;
    throw otFailure('OT_PERMISSION_DENIED', code, `Your token does not allow to ${capability}. Ask for one with another role.`);
  }
}
