// One of the two peer connections with the server (protocol, "Routed media"): one negotiation at a time, ICE restarts, and a
// new connection when those do not help. What is sent and received on it is its owner's business. We always offer and the
// server always answers; it has all its candidates in the answer and never dials, so ours are told to nobody.

import { Timers } from '../clock.js';
import { ConfabError } from '../errors.js';

/** A browser that says `disconnected` often recovers by itself within seconds; a hole of 25 s it never survives. */
const disconnectedMs = 3000;
/** How long an ICE restart, or a new connection, may take to help. */
const restartAgainMs = 10_000;
/** After so many restarts that did not help, the connection itself is given up. */
const mostRestarts = 2;
/** Where nothing helps, the server is asked less and less often, down to this. */
const longestPauseMs = 60_000;
/** What the pause is after a refusal that names none. */
const retryMs = 1000;

/** @typedef {import('./peer.js').PeerState} PeerState */
/**
 * @typedef {object} MediaSideOptions
 * @property {import('./peer.js').Rtc} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {() => Promise<RTCConfiguration>} configuration with credentials that are good now
 * @property {(sdp: string) => Promise<import('../line/messages.js').Message>} offer asks the server; resolves to its `media.answer`
 * @property {() => boolean} isOnline whether the server can be asked
 * @property {(connection: RTCPeerConnection) => void} opened put on it what is to be there
 * @property {(isRenewed: boolean) => void} offered an offer is on its way: what it names may be named to the server now
 * @property {() => void} answered what the server's answer says is in force
 * @property {() => void} closed what was on the connection is gone with it
 * @property {() => void} changed the state
 * @property {(error: unknown) => void} failed
 */

export class MediaSide {
  #options;
  #timers;
  /** @type {RTCPeerConnection | null} */
  #connection = null;
  /** Counts connections: what was begun on an earlier one is over. */
  #epoch = 0;
  /** Whether anybody wants a connection here. */
  #isWanted = false;
  #isNeeded = false;
  #isRunning = false;
  #hadOffers = false;
  #isRenewed = false;
  /** @type {{resolve: () => void, reject: (error: unknown) => void}[]} who waits for the next offer */
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
    // One that was lost is missed; one that never was is awaited.
    if (!this.#connection) return this.#hadOffers ? 'disconnected' : 'connecting';
    const state = this.#connection.connectionState;
    return state === 'connected' || state === 'disconnected' || state === 'failed' ? state : 'connecting';
  }

  /**
   * Makes the connection if there is none, and offers what is on it. Calls that come while an offer is being made share it.
   * @returns {Promise<void>} once an offer with everything that is there now is on its way
   */
  negotiate() {
    this.#isWanted = true;
    this.#isNeeded = true;
    const offered = new Promise((resolve, reject) => this.#waiting.push({ resolve: () => resolve(undefined), reject }));
    // The caller has the promise too; this one only keeps an ignored rejection quiet.
    offered.catch(() => {});
    this.#run();
    return /** @type {Promise<void>} */ (offered);
  }

  /** Signalling is back after a gap: media may have died unnoticed. */
  resumed() {
    this.#attempts = 0;
    if (this.#isWanted && this.state !== 'connected') this.#attemptIn(0);
  }

  /**
   * The server ended it.
   * @param {ConfabError} error
   */
  endedByServer(error) {
    // Said before the answer to a new connection's first offer, it can only mean the one before.
    if (!this.#connection?.remoteDescription) return;
    this.#options.failed(error);
    this.#shut();
    // No restart helps a connection the other end has forgotten.
    this.#attempts = Math.max(this.#attempts, mostRestarts);
    this.#attemptIn(0);
  }

  /** As if it had never been wanted. */
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
    // The browser takes no such answer: a new connection may. The server's own refusals stay what they are.
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

  /** How long to wait for the last attempt to help. */
  get #pause() {
    return Math.min(longestPauseMs, restartAgainMs * 2 ** Math.max(0, this.#attempts - mostRestarts));
  }

  /** @param {number} ms */
  #attemptIn(ms) {
    // What flickers between bad states must not restart at every flicker.
    const earliest = this.#attemptedAt + this.#pause - this.#options.clock.now();
    this.#timers.set('attempt', Math.max(ms, earliest), () => this.#attempt());
  }

  async #attempt() {
    // While the server cannot be asked nothing would come of it: `resumed` says when it can.
    if (!this.#isWanted || this.state === 'connected' || !this.#options.isOnline()) return;
    this.#attempts += 1;
    this.#attemptedAt = this.#options.clock.now();
    this.#attemptIn(0);
    const connection = this.#connection;
    if (connection && this.#attempts <= mostRestarts) {
      // Otherwise every credential in use may have run out meanwhile.
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
