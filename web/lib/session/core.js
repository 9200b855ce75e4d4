// The internals of a `Session`: the connection state, the members, and the requests to the server. Programs use `Session`; the
// other parts of the SDK use this class. Invariant: after `sessionDisconnected`, nothing of the session keeps running.

import { systemClock } from '../clock.js';
import { otFailure } from '../errors.js';
import { OTEvent } from '../events.js';
import { Client } from '../signaling/client.js';
import { iceConfiguration } from '../media/ice.js';
import { createTransport } from '../media/transport.js';
import { SessionArchives, SessionBroadcasts } from './archives.js';
import { handle } from './handlers.js';
import { Joining } from './joining.js';
import { Publications } from './publications.js';
import { Roster } from './roster.js';
import { Session } from './session.js';
import { Subscriptions } from './subscriptions.js';

/** @typedef {import('../signaling/messages.js').Message} Message */
/** @typedef {import('../media/transport.js').Transport} Transport */
/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {'disconnected' | 'connecting' | 'connected' | 'reconnecting'} SessionState */
/**
 * @typedef {object} SessionOptions
 * @property {Client} [client] a shared client; if absent, the session opens a separate one
 * @property {string} [url] the server's URL, if the session opens a separate client
 * @property {boolean} [connectionEventsSuppressed]
 * @property {import('../media/ice.js').IceConfig} [iceConfig] applies to routed media only if the session opens a separate client; see `Client`
 * @property {import('../media/peer.js').Rtc} [rtc]
 * @property {import('../clock.js').Clock} [clock]
 */

export class SessionCore {
  #options;
  /** @type {SessionState} */
  #state = 'disconnected';
  /** @type {Client | null} */
  #client = null;
  #unlisten = () => {};
  #token = '';
  /** Incremented by `connect` and `end`, so that results of earlier `connect` calls are ignored. */
  #epoch = 0;
  #joining;
  roster = new Roster();
  /**
   * The media transport; null while the session is not connected.
   * @type {Transport | null}
   */
  transport = null;
  /**
   * Settles when the client is connected. Requests sent after that reach the server after `session.join`.
   * @type {Promise<unknown>}
   */
  opened = Promise.resolve();
  /**
   * Settles when the server has answered the join.
   * @type {Promise<unknown>}
   */
  entered = Promise.resolve();
  /** The recordings of the session. */
  archives = new SessionArchives((event) => this.session.dispatch(event), (accept) => this.request('session.consent', { accept }));

  /** The live broadcasts of the session. */
  broadcasts = new SessionBroadcasts((event) => this.session.dispatch(event), (accept) => this.request('session.consent', { accept, broadcast: true }));
  /** Whether publishers start muted because a moderator muted the session. */
  startsMuted = false;
  /**
   * The error with which connecting, publishing and subscribing fail; null if they may succeed.
   * @type {import('../errors.js').ConfabError | null}
   */
  refusal = null;
  publications;
  subscriptions;
  /** The `Session` object that the program uses. */
  session;

  /**
   * @param {string} apiKey
   * @param {string} sessionId
   * @param {SessionOptions} [options]
   * @param {typeof Session} [SessionType] the class of `session`
   */
  constructor(apiKey, sessionId, options = {}, SessionType = Session) {
    this.#options = options;
    this.session = new SessionType(apiKey, sessionId, this);
    this.#joining = new Joining(this.clock, () => this.request('session.join', { token: this.#token }));
    this.publications = new Publications(this);
    this.subscriptions = new Subscriptions(this);
  }

  get clock() {
    return this.#options.clock ?? systemClock;
  }

  get isConnected() {
    return this.#state === 'connected' || this.#state === 'reconnecting';
  }

  /** Whether a message would be sent immediately. */
  get isOnline() {
    return this.#client?.state === 'connected';
  }

  /**
   * Sets the ICE configuration of the next connection to the session.
   * @param {import('../media/ice.js').IceConfig} iceConfig
   */
  configure(iceConfig) {
    this.#options = { ...this.#options, iceConfig };
  }

  // ---- Connecting and disconnecting

  /** @param {string} token */
  async connect(token) {
    if (this.refusal) throw this.refusal;
    if (this.#state !== 'disconnected') {
      throw otFailure('OT_CONNECT_FAILED', 1006, 'This session is already connected. Call disconnect() first.');
    }
    if (typeof token !== 'string' || token === '') {
      throw otFailure('OT_INVALID_PARAMETER', 1011, 'Pass a token for this session to connect().');
    }
    this.#state = 'connecting';
    const epoch = this.#epoch += 1;
    const { url, iceConfig, rtc } = this.#options;
    const { sessionId } = this.session;
    const client = this.#options.client ?? new Client({ url, token, iceConfig, rtc });
    this.#listen(client);
    try {
      await (this.opened = client.connect());
      this.#stillIn(epoch);
      // The session id contains the media mode (protocol §7). Create the transport now, so that a publish sent right after the
      // join can name its transceivers.
      if (sessionId.startsWith('2_')) this.transport = this.#transportFor(client, 'routed');
      this.#token = token;
      this.entered = this.#joining.begin();
      await this.entered;
      if (epoch !== this.#epoch) client.request('session.leave', { sessionId }).catch(() => {});
      this.#stillIn(epoch);
    } catch (error) {
      if (epoch === this.#epoch) this.#abandon(client);
      throw error;
    }
  }

  /** @returns {Promise<void>} */
  async disconnect() {
    if (this.#state === 'disconnected') return;
    const left = this.isConnected && this.#options.client ? this.request('session.leave').catch(() => {}) : undefined;
    this.end('clientDisconnected');
    await left;
  }

  /**
   * Ends the session and everything in it, for any reason. Does not send `session.leave`.
   * @param {string} reason
   * @param {import('../errors.js').ConfabError | null} [error] why the server closed the connection
   */
  end(reason, error = null) {
    if (this.#state === 'disconnected') return;
    const wasConnected = this.isConnected;
    this.#state = 'disconnected';
    this.#epoch += 1;
    this.#joining.stop();
    this.#unlisten();
    if (!this.#options.client) this.#client?.leave();
    this.#client = null;
    this.archives.clear();
    this.broadcasts.clear();
    this.transport?.close();
    this.transport = null;
    this.subscriptions.forgetReported();
    this.publications.endAll(reason);
    if (!wasConnected) return;
    this.session.dispatch(new OTEvent('sessionDisconnected', { reason, error }, true), () => this.subscriptions.endAll(reason));
    this.session.connection = null;
  }

  // ---- Used by the other parts of the session

  /**
   * Sends a request about this session.
   * @param {string} type
   * @param {Record<string, unknown>} [members]
   * @returns {Promise<Message>}
   */
  request(type, members = {}) {
    if (!this.#client) return Promise.reject(otFailure('OT_NOT_CONNECTED', 1010, 'Connect to the session first.'));
    return this.#client.request(type, { sessionId: this.session.sessionId, ...members });
  }

  /**
   * Checks that the session is connected and that the token allows an operation. Throws otherwise.
   * @param {'publish' | 'subscribe' | 'forceDisconnect' | 'forceUnpublish' | 'forceMute'} capability
   * @param {number} code OpenTok's error number for an operation that is not allowed
   * @param {boolean} [isEarly] also allow this before the join was answered, when the role is not known here yet
   * @returns {{stillIn: () => void}} `stillIn` throws if the session has ended since this call
   */
  demand(capability, code, isEarly = false) {
    if (this.refusal && (capability === 'publish' || capability === 'subscribe')) throw this.refusal;
    const epoch = this.#epoch;
    const allowed = { stillIn: () => this.#stillIn(epoch) };
    if (isEarly && this.#state === 'connecting') return allowed;
    if (!this.isConnected) throw otFailure('OT_NOT_CONNECTED', 1010, `Connect to the session before you ${capability}.`);
    if (this.session.capabilities?.[capability] === 1) return allowed;
    throw otFailure('OT_PERMISSION_DENIED', code, `Your token does not allow you to ${capability}. Get a token with another role.`);
  }

  /**
   * A stream of another connection; undefined if there is none.
   * @returns {Stream | undefined}
   */
  get othersStream() {
    return [...this.roster.streams.values()].find(({ connection }) => connection !== this.session.connection);
  }

  // ---- Server messages

  /** @param {Message} message */
  joined(message) {
    if (this.#state !== 'connecting') return;
    const { session } = this;
    this.#state = 'connected';
    this.startsMuted = message.muted;
    const allowed = Object.entries(message.capabilities);
    session.capabilities = Object.fromEntries(allowed.map(([name, isAllowed]) => [name, isAllowed ? 1 : 0]));
    this.roster = new Roster();
    session.connection = this.roster.connection(message.connection);
    if (!this.transport || message.mediaMode !== 'routed') this.mediaModeChanged(message.mediaMode);
    const own = this.#options.connectionEventsSuppressed ? [] : [new OTEvent('connectionCreated', { connection: session.connection })];
    this.listed(message, [new OTEvent('sessionConnected'), ...own, ...this.archives.joined(message), ...this.broadcasts.joined(message)]);
  }

  /**
   * Adds the connections and streams on a page of the roster, and emits their events.
   * @param {Message} page
   * @param {OTEvent[]} [first] events to emit before those of the page
   */
  listed({ connections, streams, more }, first = []) {
    const epoch = this.#epoch;
    const created = connections.map((/** @type {any} */ info) => this.roster.connection(info));
    const published = streams.map((/** @type {any} */ info) => this.roster.stream(info));
    this.roster.isComplete = more !== true;
    const events = [
      ...first,
      ...this.#options.connectionEventsSuppressed ? [] : created
        .map((/** @type {any} */ connection) => new OTEvent('connectionCreated', { connection })),
      ...published.map((/** @type {Stream} */ stream) => new OTEvent('streamCreated', { stream })),
    ];
    // A handler may have disconnected. If so, skip the other events.
    for (const event of events) if (epoch === this.#epoch && this.isConnected) this.session.dispatch(event);
  }

  /**
   * Switches the media mode; streams and subscribers stay.
   * @param {'relayed' | 'routed'} mediaMode
   */
  mediaModeChanged(mediaMode) {
    if (!this.#client) return;
    this.transport?.close();
    this.transport = this.#transportFor(this.#client, mediaMode);
    this.publications.moved();
    this.subscriptions.moved();
  }

  /**
   * Emits an event of a connection, unless the program turned off connection events.
   * @param {OTEvent} event
   */
  tellConnection(event) {
    if (!this.#options.connectionEventsSuppressed) this.session.dispatch(event);
  }

  /**
   * Handles the end of a stream of this connection or another one.
   * @param {string} streamId
   * @param {string} reason
   */
  streamGone(streamId, reason) {
    if (this.publications.ended(streamId, reason)) return;
    const stream = this.roster.removeStream(streamId);
    if (!stream) return;
    const watching = this.subscriptions.of(streamId);
    this.session.dispatch(new OTEvent('streamDestroyed', { stream, reason }, true), () => {
      for (const subscriber of watching) this.subscriptions.end(subscriber, reason);
    });
  }

  // ----

  /** @param {number} epoch */
  #stillIn(epoch) {
    if (epoch === this.#epoch && this.#state !== 'disconnected') return;
    throw otFailure('OT_NOT_CONNECTED', 1010, 'The session was disconnected before the request finished. Connect again.');
  }

  /**
   * Cleans up after connecting failed, before any event was emitted.
   * @param {Client} client
   */
  #abandon(client) {
    this.#unlisten();
    this.#state = 'disconnected';
    this.transport?.close();
    this.transport = null;
    if (!this.#options.client) client.leave();
  }

  /** @param {Client} client */
  #listen(client) {
    this.#client = client;
    /** @type {Record<string, (event: any) => void>} */
    const handlers = {
      message: (message) => { if (message.sessionId === this.session.sessionId) handle(this, message); },
      reconnecting: () => this.#reconnecting(),
      connected: ({ resumed }) => { if (resumed) this.#reconnected(); },
      // While connecting, the join is rejected, or moves to the new connection.
      expired: () => { if (this.#state !== 'connecting') this.end('networkDisconnected'); },
      closed: ({ error }) => this.end('networkDisconnected', error),
    };
    client.on(handlers);
    this.#unlisten = () => { for (const [name, handler] of Object.entries(handlers)) client.off(name, handler); };
  }

  #reconnecting() {
    if (this.#state !== 'connected') return;
    this.#state = 'reconnecting';
    this.session.dispatch(new OTEvent('sessionReconnecting'));
  }

  #reconnected() {
    if (this.#state !== 'reconnecting') return;
    this.#state = 'connected';
    this.transport?.resumed();
    this.session.dispatch(new OTEvent('sessionReconnected'));
  }

  /** @param {Client} client @param {'relayed' | 'routed'} mediaMode */
  #transportFor(client, mediaMode) {
    const { iceConfig, rtc } = this.#options;
    const { session, clock } = this;
    return createTransport(mediaMode, {
      // Read the id on each use: it is not known yet if the transport is created before the join is answered.
      get connectionId() { return session.connection?.connectionId ?? ''; },
      request: (type, members) => this.request(type, members),
      configuration: async () => iceConfiguration(await client.ice.current(), iceConfig),
      iceConfig,
      clock,
      rtc: rtc ?? globalThis,
      failed: (error) => session.dispatch(new OTEvent('mediaFault', { error })),
      link: () => client.media,
      publishAgain: (streamId) => this.publications.tellAgain(streamId),
      subscribeAgain: (streamId) => this.subscriptions.tellAgain(streamId),
    });
  }
}
