// One of the two peer connections with the server (protocol, "Routed media"): one negotiation at a time, ICE restarts, and a
// new connection when restarts fail. The owner decides what is sent and received. The browser always offers and the server
// always answers. The answer contains all candidates of the server. The server never connects first, so the browser's
// candidates are not sent.

import { Timers } from '../clock.js';
import { ConfabError } from '../errors.js';

/**
 * How long to wait in the state `disconnected` before restarting ICE. Browsers often recover within seconds, but never
 * after a gap of 25 s.
 */
export const disconnectedMs = 3000;
/**
 * How long to wait for the first connection before TURN is tried too. Browsers try UDP and TCP at the same time, so
 * most connect within a second; over a round trip of 600 ms it takes 3 s.
 */
const directMs = 5000;
/** How long to wait for an ICE restart or a new connection to succeed before the next attempt. */
export const restartAgainMs = 10_000;
/** After this many failed restarts, replace the connection. */
export const maxRestarts = 2;
/** The longest pause between attempts, which become less frequent as they keep failing. */
export const longestPauseMs = 60_000;
/** How long to wait before sending a rejected offer again, if the server does not request another pause. */
export const retryMs = 1000;

/** @typedef {import('./peer.js').PeerState} PeerState */
/**
 * @typedef {object} MediaSideOptions
 * @property {import('./peer.js').Rtc} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {() => Promise<RTCConfiguration>} configuration returns a configuration with valid credentials
 * @property {(sdp: string) => Promise<import('../signaling/messages.js').Message>} offer sends the offer to the server; resolves to its `media.answer`
 * @property {() => boolean} isOnline whether the server can be reached
 * @property {() => boolean} hasMoreFeatures whether there are TURN servers that are not in the configuration yet
 * @property {() => void} unreachable called when media does not get through: afterward, `configuration` must include
 *   all TURN servers
 * @property {(connection: RTCPeerConnection) => void} opened adds the transceivers to a new connection
 * @property {boolean} receives whether this connection carries incoming media
 * @property {(isRenewed: boolean) => void} offered called when requests may use the mids of the latest offer.
 * `isRenewed` is true if it is the first offer of a connection that replaced another
 * @property {(sdp: string) => string} [write] changes the offer before it is applied; default: no change
 * @property {(sdp: string) => string} read changes the server's answer before it is applied
 * @property {() => void} answered called when the server's answer was applied
 * @property {() => void} closed called when the connection and its transceivers are gone
 * @property {() => void} changed called when the state may have changed
 * @property {(error: unknown) => void} failed called with each error of this connection
 */

export class MediaSide {
  #options;
  #timers;
  /** @type {RTCPeerConnection | null} */
  #connection = null;
  /** Incremented by `#shut`, so that results of earlier connections are ignored. */
  #epoch = 0;
  /**
   * Whether the connection should be open: from `negotiate` until `reset`, or until the server says that it has no
   * media.
   */
  #isWanted = false;
  /** Whether another offer must be sent. */
  #isNeeded = false;
  /** @type {number | null} the epoch for which `#run` is sending offers; null if none */
  #running = null;
  #hadOffers = false;
  #isRenewed = false;
  /** @type {{resolve: () => void, reject: (error: unknown) => void}[]} callers waiting for the next offer */
  #waiting = [];
  /** Number of restarts and new connections since media last worked or the network changed. */
  #attempts = 0;
  #attemptedAt = -Infinity;
  /** Whether the connection may have failed although its state is `connected`. */
  #isSuspect = false;

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
    // Without a connection: `disconnected` if an earlier connection sent an offer, otherwise `connecting`.
    if (!this.#connection) return this.#hadOffers ? 'disconnected' : 'connecting';
    const state = this.#connection.connectionState;
    return state === 'connected' || state === 'disconnected' || state === 'failed' ? state : 'connecting';
  }

  /**
   * Creates the connection if there is none, and sends an offer. Calls made before that offer is created share it; a
   * later call causes another offer.
   * @returns {Promise<void>} resolves when requests may use all current transceivers; rejects on `reset`, or if the
   *   offer failed and is not sent again
   */
  negotiate() {
    this.#isWanted = true;
    this.#isNeeded = true;
    const offered = new Promise((resolve, reject) => this.#waiting.push({ resolve: () => resolve(undefined), reject }));
    // The caller gets the promise too. This handler prevents an unhandled rejection if the caller ignores the promise.
    offered.catch(() => {});
    this.#run();
    return /** @type {Promise<void>} */ (offered);
  }

  /**
   * Restarts ICE as soon as the pause since the last attempt allows it, because signaling was interrupted or the
   * network has changed. Browsers notice a changed network only after 8 to 10 s; a restart while nothing has changed
   * costs one offer.
   */
  networkChanged() {
    this.#attempts = 0;
    if (!this.#isWanted) return;
    this.#isSuspect = true;
    this.#attemptIn(0);
  }

  /**
   * Handles a connection that the server ended.
   * @param {ConfabError} error
   */
  endedByServer(error) {
    // Before the answer to a new connection's first offer, the server's message can only refer to the previous
    // connection.
    if (!this.#connection?.remoteDescription) return;
    this.#options.failed(error);
    this.#shut();
    // The server has forgotten the connection, so a restart cannot help: a new connection is needed.
    this.#attempts = Math.max(this.#attempts, maxRestarts);
    this.#attemptIn(0);
  }

  /** Closes the connection, rejects waiting `negotiate` calls, and returns to the initial state. */
  reset() {
    const error = new ConfabError({ code: 'connection_restarted', retryable: true, message: 'The connection ended. Try again.' });
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#isWanted = this.#isNeeded = this.#hadOffers = this.#isSuspect = false;
    this.#attempts = 0;
    this.#attemptedAt = -Infinity;
    this.#timers.clearAll();
    this.#shut();
  }

  // ---- Negotiation

  /**
   * Sends offers for as long as they are needed, one after the other. Browsers never settle the promises of a closed
   * connection, so a new connection does not wait for the run of the previous one.
   */
  async #run() {
    const epoch = this.#epoch;
    if (this.#running === epoch) return;
    this.#running = epoch;
    while (this.#isNeeded && epoch === this.#epoch) {
      this.#isNeeded = false;
      await this.#negotiate().catch((error) => { if (epoch === this.#epoch) this.#refused(error); });
    }
    if (this.#running === epoch) this.#running = null;
  }

  async #negotiate() {
    const connection = this.#connection ?? await this.#open();
    if (!connection) return;
    const covered = this.#waiting.length;
    this.#isNeeded = false;
    const { write } = this.#options;
    if (write) await connection.setLocalDescription({ type: 'offer', sdp: write((await connection.createOffer()).sdp ?? '') });
    else await connection.setLocalDescription();
    if (connection !== this.#connection) return;
    // Over a connection in use, media for new transceivers could arrive before the answer. Browsers then drop its first keyframe, and
    // Firefox 153 may never show the video. So requests may use new mids only after the answer.
    const mayComeEarly = this.#options.receives && connection.remoteDescription !== null;
    const answered = this.#options.offer(connection.localDescription?.sdp ?? '');
    this.#hadOffers = true;
    if (!mayComeEarly) this.#offered(covered);
    const { sdp } = await answered;
    if (connection !== this.#connection) return;
    await connection.setRemoteDescription({ type: 'answer', sdp: this.#options.read(sdp) });
    if (connection !== this.#connection) return;
    if (mayComeEarly) this.#offered(covered);
    this.#options.answered();
    if (this.state === 'connected' || this.#timers.has('attempt')) return;
    this.#attemptIn(this.state === 'connecting' && this.#options.hasMoreFeatures() ? directMs : restartAgainMs);
  }

  /** @param {number} covered how many of the waiting callers this offer is for */
  #offered(covered) {
    this.#options.offered(this.#isRenewed);
    this.#isRenewed = false;
    for (const { resolve } of this.#waiting.splice(0, covered)) resolve();
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
    // If the browser failed, for example because it rejected the answer, try again later. Errors from the server are
    // only reported.
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
    this.#isSuspect = false;
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
      this.#isSuspect = false;
    }
    if (state === 'disconnected') this.#attemptIn(disconnectedMs);
    if (state === 'failed') this.#attemptIn(0);
    this.#options.changed();
  }

  /** The minimum time from the last attempt to the next one, in milliseconds. */
  get #pause() {
    return Math.min(longestPauseMs, restartAgainMs * 2 ** Math.max(0, this.#attempts - maxRestarts));
  }

  /** @param {number} ms */
  #attemptIn(ms) {
    // A flapping connection must not restart on every state change.
    const earliest = this.#attemptedAt + this.#pause - this.#options.clock.now();
    this.#timers.set('attempt', Math.max(ms, earliest), () => this.#attempt());
  }

  async #attempt() {
    // While the server cannot be reached, attempt nothing. `networkChanged` resumes the attempts.
    if (!this.#isWanted || !this.#options.isOnline()) return;
    if (this.state === 'connected' && !this.#isSuspect) {
      this.#attempts = 0;
      return;
    }
    this.#isSuspect = false;
    // The network may have changed to one in which only TURN works.
    if (this.state !== 'connected') this.#options.unreachable();
    this.#attempts += 1;
    this.#attemptedAt = this.#options.clock.now();
    this.#attemptIn(0);
    const connection = this.#connection;
    if (connection && this.#attempts <= maxRestarts) {
      // Fetch new credentials, because those in use may have expired.
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
