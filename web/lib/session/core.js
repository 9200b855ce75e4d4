// What is behind a `Session`: the state of its connection, who is there, and what its other parts ask of it. Programs get the
// `Session`; the parts of the SDK get this. Its one invariant: after `sessionDisconnected` nothing of it is left running.

import { systemClock } from '../clock.js';
import { otFailure } from '../errors.js';
import { OTEvent } from '../events.js';
import { Client } from '../line/client.js';
import { iceConfiguration } from '../media/ice.js';
import { createTransport } from '../media/transport.js';
import { handle } from './handlers.js';
import { Publications } from './publications.js';
import { Roster } from './roster.js';
import { Session } from './session.js';
import { Subscriptions } from './subscriptions.js';

/** @typedef {import('../line/messages.js').Message} Message */
/** @typedef {import('../media/transport.js').Transport} Transport */
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

export class SessionCore {
  #options;
  /** @type {SessionState} */
  #state = 'disconnected';
  /** @type {Client | null} */
  #client = null;
  #unlisten = () => {};
  /** Counts connects: what was begun under an earlier one is over. */
  #epoch = 0;
  roster = new Roster();
  /**
   * How media travels; null while there is none.
   * @type {Transport | null}
   */
  transport = null;
  /**
   * Settles when the server can be asked: a join goes first.
   * @type {Promise<unknown>}
   */
  opened = Promise.resolve();
  /** Whether publishers begin silent, because a moderator said so. */
  startsMuted = false;
  publications;
  subscriptions;
  /** What the program sees. */
  session;

  /** @param {string} apiKey @param {string} sessionId @param {SessionOptions} [options] */
  constructor(apiKey, sessionId, options = {}) {
    this.#options = options;
    this.session = new Session(apiKey, sessionId, this);
    this.publications = new Publications(this);
    this.subscriptions = new Subscriptions(this);
  }

  get isConnected() {
    return this.#state === 'connected' || this.#state === 'reconnecting';
  }

  /** Whether what is sent now goes out at once. */
  get isOnline() {
    return this.#client?.state === 'connected';
  }

  // ---- Coming and going

  /** @param {string} token */
  async connect(token) {
    if (this.#state !== 'disconnected') {
      throw otFailure('OT_CONNECT_FAILED', 1006, 'This session is connected already. Call disconnect() first.');
    }
    if (typeof token !== 'string' || token === '') {
      throw otFailure('OT_INVALID_PARAMETER', 1011, 'Give connect() a token for this session.');
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
      // Its id says so (protocol §7): what is published right behind the join can name its transceivers.
      if (sessionId.startsWith('2_')) this.transport = this.#transportFor(client, 'routed');
      await client.request('session.join', { sessionId, token });
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
   * It is over, for whatever reason; everything of it goes. The server is not told.
   * @param {string} reason
   */
  end(reason) {
    if (this.#state === 'disconnected') return;
    const wasConnected = this.isConnected;
    this.#state = 'disconnected';
    this.#epoch += 1;
    this.#unlisten();
    if (!this.#options.client) this.#client?.leave();
    this.#client = null;
    this.transport?.close();
    this.transport = null;
    this.subscriptions.forgetTold();
    this.publications.endAll(reason);
    if (!wasConnected) return;
    this.session.dispatch(new OTEvent('sessionDisconnected', { reason }, true), () => this.subscriptions.endAll(reason));
    this.session.connection = null;
  }

  // ---- What the session's parts ask

  /**
   * Asks the server something about this session.
   * @param {string} type
   * @param {Record<string, unknown>} [members]
   * @returns {Promise<Message>}
   */
  request(type, members = {}) {
    if (!this.#client) return Promise.reject(otFailure('OT_NOT_CONNECTED', 1010, 'Connect to the session first.'));
    return this.#client.request(type, { sessionId: this.session.sessionId, ...members });
  }

  /**
   * Whether the token allows it, here and now.
   * @param {'publish' | 'subscribe' | 'forceDisconnect' | 'forceUnpublish' | 'forceMute'} capability
   * @param {number} code
   * @param {boolean} [isEarly] also before we were let in: then the server alone knows
   * @returns {{stillIn: () => void}} throws when the session ended meanwhile
   */
  demand(capability, code, isEarly = false) {
    const epoch = this.#epoch;
    const allowed = { stillIn: () => this.#stillIn(epoch) };
    if (isEarly && this.#state === 'connecting') return allowed;
    if (!this.isConnected) throw otFailure('OT_NOT_CONNECTED', 1010, `Connect to the session before you ${capability}.`);
    if (this.session.capabilities?.[capability] === 1) return allowed;
    throw otFailure('OT_PERMISSION_DENIED', code, `Your token does not allow to ${capability}. Ask for one with another role.`);
  }

  /**
   * A stream of somebody else's.
   * @returns {Stream | undefined}
   */
  get othersStream() {
    return [...this.roster.streams.values()].find(({ connection }) => connection !== this.session.connection);
  }

  // ---- What the server says

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
    const epoch = this.#epoch;
    const connections = message.connections.map((/** @type {any} */ info) => this.roster.connection(info));
    const streams = message.streams.map((/** @type {any} */ info) => this.roster.stream(info));
    const events = [
      new OTEvent('sessionConnected'),
      ...this.#options.connectionEventsSuppressed ? [] : [session.connection, ...connections]
        .map((connection) => new OTEvent('connectionCreated', { connection })),
      ...streams.map((/** @type {Stream} */ stream) => new OTEvent('streamCreated', { stream })),
    ];
    // A handler may disconnect, and then the rest is nobody's news.
    for (const event of events) if (epoch === this.#epoch && this.isConnected) session.dispatch(event);
  }

  /**
   * Media travels otherwise from now on; streams and who watches them stay.
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
   * Of a connection, which a program may not want to hear of.
   * @param {OTEvent} event
   */
  tellConnection(event) {
    if (!this.#options.connectionEventsSuppressed) this.session.dispatch(event);
  }

  /** @param {string} streamId @param {string} reason */
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
    throw otFailure('OT_NOT_CONNECTED', 1010, 'The session was disconnected meanwhile. Connect again.');
  }

  /**
   * Connecting failed: nobody was told anything yet.
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
      expired: () => this.end('networkDisconnected'),
      closed: () => this.end('networkDisconnected'),
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
    const { iceConfig, clock, rtc } = this.#options;
    const { session } = this;
    return createTransport(mediaMode, {
      // Not yet known where the transport is made before we are let in.
      get connectionId() { return session.connection?.connectionId ?? ''; },
      request: (type, members) => this.request(type, members),
      configuration: async () => iceConfiguration(await client.ice.current(), iceConfig),
      clock: clock ?? systemClock,
      rtc: rtc ?? globalThis,
      failed: (error) => session.dispatch(new OTEvent('mediaFault', { error })),
      link: () => client.media,
      publishAgain: (streamId) => this.publications.tellAgain(streamId),
      subscribeAgain: (streamId) => this.subscriptions.tellAgain(streamId),
    });
  }
}
