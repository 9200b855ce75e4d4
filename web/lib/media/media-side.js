// One of the two peer connections with the server (protocol, "Routed media"): one negotiation at a time, ICE restarts, and a
// new connection when those fail. The owner decides what is sent and received on it. The browser always offers and the server
// always answers. The answer has all candidates of the server, which never connects first, so ours are not sent.

import { Timers } from '../clock.js';
import { ConfabError } from '../errors.js';

/** A browser in state `disconnected` often recovers within seconds; it never survives a gap of 25 s. */
const disconnectedMs = 3000;
/** How long to wait for an ICE restart or a new connection to succeed. */
const restartAgainMs = 10_000;
/** After this many failed restarts, replace the connection. */
const maxRestarts = 2;
/** The longest pause between attempts, which become less frequent as they keep failing. */
const longestPauseMs = 60_000;
/** The pause after a rejection that has none. */
const retryMs = 1000;

/** @typedef {import('./peer.js').PeerState} PeerState */
/**
 * @typedef {object} MediaSideOptions
 * @property {import('./peer.js').Rtc} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {() => Promise<RTCConfiguration>} configuration with valid credentials
 * @property {(sdp: string) => Promise<import('../line/messages.js').Message>} offer sends the offer to the server; resolves to its `media.answer`
 * @property {() => boolean} isOnline whether the server can be reached
 * @property {(connection: RTCPeerConnection) => void} opened add the transceivers to it
 * @property {(isRenewed: boolean) => void} offered an offer was sent: its mids may be used in requests now
 * @property {() => void} answered the server's answer was applied
 * @property {() => void} closed the connection and its transceivers are gone
 * @property {() => void} changed the state changed
 * @property {(error: unknown) => void} failed
 */

export class MediaSide {
  #options;
  #timers;
  /** @type {RTCPeerConnection | null} */
  #connection = null;
  /** Counts connections, to ignore results of earlier ones. */
  #epoch = 0;
  /** Whether a connection is wanted. */
  #isWanted = false;
  #isNeeded = false;
  #isRunning = false;
  #hadOffers = false;
  #isRenewed = false;
  /** @type {{resolve: () => void, reject: (error: unknown) => void}[]} callers waiting for the next offer */
  #waiting = [];
  /** Restarts and new connections since it last worked. */
  #attempts = 0;
  #attemptedAt = -Infinity;

  /** @param {MediaSideOptions} options */
  constructor(options) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
  }

  get connection() {
    return this.#connection;
  }

  /** @returns {PeerState} */
  get state() {
    // A connection that was lost counts as disconnected; one that never existed, as connecting.
    if (!this.#connection) return this.#hadOffers ? 'disconnected' : 'connecting';
    const state = this.#connection.connectionState;
    return state === 'connected' || state === 'disconnected' || state === 'failed' ? state : 'connecting';
  }

  /**
   * Creates the connection if there is none, and sends an offer. Calls made while an offer is being created share it.
   * @returns {Promise<void>} resolves when an offer with all current transceivers was sent
   */
  negotiate() {
    this.#isWanted = true;
    this.#isNeeded = true;
    const offered = new Promise((resolve, reject) => this.#waiting.push({ resolve: () => resolve(undefined), reject }));
    // The caller gets the promise too; this avoids an unhandled rejection if it ignores it.
    offered.catch(() => {});
    this.#run();
    return /** @type {Promise<void>} */ (offered);
  }

  /** Signaling works again after an interruption: media may have failed unnoticed. */
  resumed() {
    this.#attempts = 0;
    if (this.#isWanted && this.state !== 'connected') this.#attemptIn(0);
  }

  /**
   * Handles a connection that the server ended.
   * @param {ConfabError} error
   */
  endedByServer(error) {
    // Before the answer to a new connection's first offer, this can only refer to the previous one.
    if (!this.#connection?.remoteDescription) return;
    this.#options.failed(error);
    this.#shut();
    // The server has forgotten the connection, so a restart cannot help.
    this.#attempts = Math.max(this.#attempts, maxRestarts);
    this.#attemptIn(0);
  }

  /** Resets everything, as if a connection had never been wanted. */
  reset() {
    const error = new ConfabError({ code: 'connection_restarted', retryable: true, message: 'The connection ended. Try again.' });
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#isWanted = this.#isNeeded = this.#hadOffers = false;
    this.#attempts = 0;
    this.#attemptedAt = -Infinity;
    this.#timers.clearAll();
    this.#shut();
  }

  // ---- Negotiation

  async #run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#isNeeded) {
      this.#isNeeded = false;
      const epoch = this.#epoch;
      await this.#negotiate().catch((error) => { if (epoch === this.#epoch) this.#refused(error); });
    }
    this.#isRunning = false;
  }

  async #negotiate() {
    const connection = this.#connection ?? await this.#open();
    if (!connection) return;
    const covered = this.#waiting.length;
    this.#isNeeded = false;
    await connection.setLocalDescription();
    if (connection !== this.#connection) return;
    const answered = this.#options.offer(connection.localDescription?.sdp ?? '');
    this.#options.offered(this.#isRenewed);
    this.#hadOffers = true;
    this.#isRenewed = false;
    for (const { resolve } of this.#waiting.splice(0, covered)) resolve();
    const { sdp } = await answered;
    if (connection !== this.#connection) return;
    await connection.setRemoteDescription({ type: 'answer', sdp });
    this.#options.answered();
    if (this.state !== 'connected' && !this.#timers.has('attempt')) this.#attemptIn(restartAgainMs);
  }

  /** @param {any} error */
  #refused(error) {
    if (error?.retryable && error.code !== 'connection_restarted') {
      this.#timers.set('again', error.retryAfterMs ?? retryMs, () => this.negotiate());
      return;
    }
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#options.failed(error);
    if (error?.code === 'media_unavailable') this.#isWanted = false;
    // The browser rejects this answer, but a new connection may work. Errors from the server are passed on unchanged.
    if (!(error instanceof ConfabError)) this.#attemptIn(restartAgainMs);
  }

  // ---- The connection

  async #open() {
    const epoch = this.#epoch;
    const configuration = await this.#options.configuration();
    if (epoch !== this.#epoch || !this.#isWanted) return null;
    const connection = new this.#options.rtc.RTCPeerConnection(configuration);
    this.#connection = connection;
    this.#isRenewed = this.#hadOffers;
    connection.onconnectionstatechange = () => this.#changed();
    this.#options.opened(connection);
    return connection;
  }

  #shut() {
    const connection = this.#connection;
    this.#connection = null;
    this.#epoch += 1;
    if (!connection) return;
    connection.onconnectionstatechange = null;
    connection.close();
    this.#options.closed();
    this.#options.changed();
  }

  #changed() {
    const { state } = this;
    if (state === 'connected') {
      this.#timers.clear('attempt');
      this.#attempts = 0;
    }
    if (state === 'disconnected') this.#attemptIn(disconnectedMs);
    if (state === 'failed') this.#attemptIn(0);
    this.#options.changed();
  }

  /** How long to wait before the next attempt. */
  get #pause() {
    return Math.min(longestPauseMs, restartAgainMs * 2 ** Math.max(0, this.#attempts - maxRestarts));
  }

  /** @param {number} ms */
  #attemptIn(ms) {
    // States that alternate quickly must not restart each time.
    const earliest = this.#attemptedAt + this.#pause - this.#options.clock.now();
    this.#timers.set('attempt', Math.max(ms, earliest), () => this.#attempt());
  }

  async #attempt() {
    // The server cannot be reached, so wait for `resumed`.
    if (!this.#isWanted || this.state === 'connected' || !this.#options.isOnline()) return;
    this.#attempts += 1;
    this.#attemptedAt = this.#options.clock.now();
    this.#attemptIn(0);
    const connection = this.#connection;
    if (connection && this.#attempts <= maxRestarts) {
      // Fetch new credentials: those in use may have expired.
      const fresh = await this.#options.configuration().catch(() => null);
      if (connection !== this.#connection) return;
      if (fresh) connection.setConfiguration?.(fresh);
      connection.restartIce();
    } else if (connection) {
      this.#shut();
    }
    this.negotiate();
  }
}
