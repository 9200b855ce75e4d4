// `Client`: one person's connection to the server. It outlives sockets: requests made while the network is down are sent later,
// in order and once. Invariant: every request is answered, or rejected with an error that says what happened.

import { systemClock, Timers } from '../clock.js';
import { deferred } from '../deferred.js';
import { closedBy, ConfabError, unusable } from '../errors.js';
import { Emitter } from '../events.js';
import { IceServers } from '../media/ice.js';
import { SFUConnections } from '../media/media-link.js';
import { Backoff, longestMs } from './backoff.js';
import { finalCodes, malformed, pauseAfter, serviceRestart } from './close-codes.js';
import { PendingLeave } from './pending-leave.js';
import { Link } from './link.js';
import { awaitsAcknowledgement, decode, protocolVersion } from './messages.js';
import { NodeChoice } from './node-choice.js';
import { watchPage } from './page-life.js';
import { refusalOf } from './refusal.js';
import { defaultURL, httpURL, nodeURL, Socket } from './socket.js';

/** @typedef {import('./messages.js').Message} Message */
/** @typedef {import('./messages.js').Welcome} Welcome */
/** @typedef {'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed'} ClientState */

/** The SDK's version, which is sent to the server for the server's logs. */
export const sdkVersion = '0.1.0';

/** How long the first connection may take, including retries, before `connect()` rejects. */
const connectMs = 20_000;
/** Maximum number of unanswered requests. Bounds the memory that they use if the server answers none. */
const maxRequests = 256;
/**
 * After this many received messages, or after this time in milliseconds, send the acknowledgment as a separate message
 * instead of waiting for a message that carries it (protocol §1).
 */
const acknowledgeMessages = 32;
const acknowledgeMs = 2000;
/**
 * The longest pause that a server can request (milliseconds). During a longer one, the page would seem to have stopped
 * working.
 */
const longestPauseMs = 300_000;

/**
 * @typedef {object} ClientOptions
 * @property {string} [url] the server's socket, `wss://host/v1/socket`; default: the server that this module was loaded from
 * @property {string} [identity] an anonymous identity's secret, from an earlier `identity` event
 * @property {string} [token] a user token, or a session token for a one-off guest
 * @property {string} [name]
 * @property {string} [traceparent] the trace that the connection continues (W3C Trace Context), for programs that record traces
 * @property {boolean} [showsWarnings] whether the page shows the event `warning` of `Roulette`. Operators learn from it whether a warning
 *   is seen. Default: false
 * @property {typeof WebSocket} [WebSocket]
 * @property {import('../clock.js').Clock} [clock]
 * @property {() => number} [random] returns a number between 0 and 1; default: `Math.random`
 * @property {import('./page-life.js').Page} [page] reports network changes and visibility; default: the window
 * @property {import('../media/peer.js').Rtc} [rtc]
 * @property {import('../media/ice.js').IceConfig} [iceConfig] for media through the server
 */

/**
 * @typedef {object} Pending
 * @property {(answer: Message) => void} resolve
 * @property {(error: ConfabError) => void} reject
 * @property {{type: string, [member: string]: unknown}} body the request
 */

/**
 * Events: `connected {resumed}`, `reconnecting {}`, `online {}` (the browser has a network again, or another one), `expired
 * {}` (the server no longer keeps this connection: sessions and match are gone), `restarted {state}` (reconnected as a new
 * connection), `closed {code, error}` (final, until `connect` is called again), `identity {secret}` (store it),
 * `message:<type>` and `message` (every server message, answers included), `fault {error}` (a message that could not
 * be decoded).
 */
export class Client extends Emitter {
  /** @type {ClientState} */
  #state = 'idle';
  #options;
  #clock;
  #timers;
  #backoff;
  #nodes = new NodeChoice();
  #link = new Link();
  /** @type {Pending | null} the request for which this client moves to another node, where it is sent again */
  #moving = null;
  /** @type {Map<number, Pending>} requests by their `seq` */
  #pending = new Map();
  /** @type {Socket | null} */
  #socket = null;
  /** @type {Welcome | null} */
  #welcome = null;
  /** @type {string | null} the secret for resuming the connection; null if there is no connection to resume */
  #secret = null;
  /** When this client stops trying to resume a connection that was dropped. */
  #keptUntil = 0;
  /** When the welcome arrived on the current socket. */
  #connectedAt = 0;
  /** The time of the most recently scheduled attempt to connect; 0 if there has been none. */
  #retryAt = 0;
  /** Whether the server requested the current pause. If so, a new network does not shorten it. */
  #isPaused = false;
  /** Whether the next welcome begins a new connection in place of a lost one, so that `restarted` must be emitted. */
  #restarting = false;
  /** @type {string | undefined} */
  #identity;
  /** @type {ConfabError | null} the server's last message, if it is an error that may say why the socket will close */
  #lastError = null;
  /** @type {{promise: Promise<Welcome>, resolve: (welcome: Welcome) => void, reject: (error: unknown) => void} | null} */
  #opening = null;
  #unwatch = () => {};
  /** @type {SFUConnections | null} */
  #media = null;

  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    super();
    this.#options = options;
    this.#identity = options.identity;
    this.#clock = options.clock ?? systemClock;
    this.#timers = new Timers(this.#clock);
    this.#backoff = new Backoff(options.random);
    /** The STUN and TURN servers to use. */
    this.ice = new IceServers(async () => (await this.request('ice.servers')).ice, this.#clock);
  }

  get state() {
    return this.#state;
  }

  /** The media connections with the server, shared by all sessions. */
  get media() {
    const { rtc = globalThis, iceConfig } = this.#options;
    return this.#media ??= new SFUConnections(this, { rtc, clock: this.#clock, iceConfig });
  }

  /** The most recent `welcome`; null before the first one, and after the client was closed. */
  get welcome() {
    return this.#welcome;
  }

  /**
   * The credential for `hello`: the token, or the anonymous identity's secret; undefined before there is an identity.
   */
  get credential() {
    return this.#options.token ?? this.#identity;
  }

  /** @param {string} path a path on the server @returns {string} the URL of that path for HTTP */
  urlOf(path) {
    return httpURL(this.#options.url ?? defaultURL(), path);
  }

  /** @returns {Promise<Welcome>} rejects with `connect_failed`, or with the server's reason for rejecting the hello */
  connect() {
    if (this.#opening) return this.#opening.promise;
    if (this.#welcome && (this.#state === 'connected' || this.#state === 'reconnecting')) return Promise.resolve(this.#welcome);
    this.#state = 'connecting';
    this.#opening = deferred();
    // The caller gets the promise too. This handler prevents an unhandled rejection if the caller ignores the promise.
    this.#opening.promise.catch(() => {});
    this.#unwatch = watchPage(this.#options.page ?? globalThis.window, {
      online: () => {
        this.#hurry();
        this.emit('online');
      },
      offline: () => this.#socket?.probe(),
      shown: () => this.#hurry(),
      left: () => this.#leavePage(),
      returned: () => this.#hurry(),
    });
    this.#timers.set('connect', connectMs, () => this.#finish(1006, new ConfabError({
      code: 'connect_failed', retryable: true, message: 'The server cannot be reached. Check your connection and try again.',
    })));
    const { promise } = this.#opening;
    try {
      this.#open();
    } catch (error) {
      this.#finish(1006, error instanceof ConfabError ? error : unusable(error));
    }
    return promise;
  }

  /**
   * Sends a request. While disconnected, the request waits for the connection, if the resume buffer has room for it.
   * @param {string} type
   * @param {Record<string, unknown>} [members]
   * @returns {Promise<Message>} the answer; rejects with a `ConfabError`
   */
  request(type, members = {}) {
    const body = { type, ...members };
    const refusal = refusalOf(body, { state: this.#state, limits: this.#welcome?.limits, link: this.#link, isFull: this.#pending.size >= maxRequests });
    if (refusal) return Promise.reject(new ConfabError(refusal));
    const message = this.#link.send(body);
    this.#timers.clear('acknowledge');
    return new Promise((resolve, reject) => {
      this.#pending.set(message.seq, { resolve, reject, body });
      if (this.#state === 'connected') this.#socket?.send(message);
    });
  }

  /** Leaves immediately and ends the connection for good. `connect()` starts a new one. */
  leave() {
    if (this.#state === 'idle' || this.#state === 'closed') return;
    const isAway = this.#state === 'reconnecting' && this.#secret !== null;
    const [hello, now, node] = [this.#hello(), this.#clock.now(), this.#nodes.home];
    this.#socket?.send({ type: 'bye' });
    this.#finish(1000, null);
    if (isAway) new PendingLeave({ ...this.#way(node), random: this.#options.random, hello, waitMs: this.#retryAt - now, ms: this.#keptUntil - now });
  }

  // ---- Opening and closing

  #open() {
    this.#timers.clear('retry', 'acknowledge');
    this.#lastError = null;
    this.#isPaused = false;
    const now = this.#clock.now();
    const node = this.#nodes.next(now);
    this.#socket = new Socket({
      ...this.#way(node),
      ...(this.#nodes.until === null ? {} : { openingMs: this.#nodes.until - now }),
      opened: () => this.#socket?.send(this.#hello()),
      message: (message) => this.#receive(message),
      closed: (code) => this.#dropped(code),
    });
  }

  /**
   * Returns the options for opening a socket to the server.
   * @param {string | undefined} node the node to connect to; undefined for any
   */
  #way(node) {
    const { url = defaultURL(), WebSocket = globalThis.WebSocket } = this.#options;
    return { url: node === undefined ? url : nodeURL(url, node), WebSocket, clock: this.#clock };
  }

  #hello() {
    const { token, name, traceparent, showsWarnings } = this.#options;
    return {
      type: 'hello', version: protocolVersion, client: `confab-web ${sdkVersion}`, name, traceparent,
      ...(showsWarnings ? { warnings: true } : {}),
      ...(token === undefined ? { identity: this.#identity } : { token }),
      ...(this.#secret === null ? {} : { resume: { secret: this.#secret, received: this.#link.acknowledge() } }),
    };
  }

  /** @param {Welcome} welcome */
  #welcomed(welcome) {
    // Ignore a second welcome on the same socket.
    if (this.#state === 'connected') return;
    const fits = welcome.resumed ? this.#secret !== null && welcome.connectionId === this.#welcome?.connectionId : welcome.received === 0;
    if (!fits) return this.#rejectWelcome();
    // The server has forgotten this client, or answered a resume with a new connection.
    if (this.#secret !== null && !welcome.resumed) this.#expire();
    const missing = this.#link.replay(welcome.received);
    // The buffer no longer has all messages that the server did not receive.
    if (missing === null) return this.#rejectWelcome();
    this.#welcome = welcome;
    this.#lastError = null;
    this.#secret = welcome.resume.secret;
    this.#nodes.welcomed(welcome.at);
    this.#connectedAt = this.#clock.now();
    this.#timers.clear('connect', 'grace');
    this.ice.update(welcome.ice);
    this.#socket?.established(silenceOf(welcome));
    this.#state = 'connected';
    for (const message of missing) this.#socket?.send(message);
    if (welcome.identity) {
      this.#identity = welcome.identity;
      this.emit('identity', { secret: welcome.identity });
    }
    this.#opening?.resolve(welcome);
    this.#opening = null;
    const restarted = this.#restarting;
    this.#restarting = false;
    this.emit('connected', { resumed: welcome.resumed });
    if (restarted) this.emit('restarted', { state: welcome.state });
    this.#repeat();
  }

  /**
   * Sends the request for which this client moved, after the requests of the event handlers: it may need what they
   * restore, such as the person's presence.
   */
  #repeat() {
    const moving = this.#moving;
    this.#moving = null;
    if (!moving) return;
    const { type, ...members } = moving.body;
    this.request(type, members).then(moving.resolve, moving.reject);
  }

  /**
   * Moves to the node that an error names (protocol §3.1).
   * @param {Message} message an error
   * @returns {boolean} false if this client does not move, and must report the error
   */
  #redirected({ code, at, re }) {
    if (code !== 'elsewhere' || at === undefined) return false;
    const isConnected = this.#state === 'connected';
    const pending = re === undefined || !isConnected ? undefined : this.#pending.get(re);
    // Descriptions are made for one connection, so they are not sent on another one.
    if (re !== undefined && (!pending || pending.body.sdp || pending.body.description)) return false;
    if (!this.#nodes.redirect(at, { now: this.#clock.now(), isConnected })) return false;
    if (re !== undefined) this.#pending.delete(re);
    const moving = pending ?? this.#moving;
    this.#moving = null;
    if (isConnected) this.#socket?.send({ type: 'bye' });
    this.#socket?.close(1000);
    this.#socket = null;
    this.#reconnecting();
    // A node that does not have the connection named the one that has it: resume there.
    if (this.#secret !== null && (isConnected || at !== this.#nodes.home)) this.#expire();
    this.#moving = moving;
    this.#open();
    return true;
  }

  /** Drops the current connection and starts a new one, as if the server had forgotten this client. */
  startOver() {
    if (this.#state === 'idle' || this.#state === 'closed') return;
    this.#socket?.send({ type: 'bye' });
    this.#socket?.close(1000);
    this.#socket = null;
    this.#reconnecting();
    this.#expire();
    this.#open();
  }

  /** Gives up the connection that a welcome does not match, and starts a new one after a pause, because this may happen again. */
  #rejectWelcome() {
    this.#socket?.send({ type: 'bye' });
    this.#socket?.close(1000);
    this.#socket = null;
    this.#expire();
    this.#retryAfter(0);
  }

  /**
   * Handles a closed socket. Not called when this client closed the socket.
   * @param {number} code
   */
  #dropped(code) {
    this.#socket = null;
    const error = this.#lastError;
    // The server found a gap in the numbers of this client's messages. After a resume, it would find the same gap, so
    // start over.
    const isMiscounted = code === malformed && error?.code === 'out_of_order' && this.#secret !== null;
    if (!isMiscounted && finalCodes.has(code)) return this.#finish(code, error ?? closedBy(code));
    // The node is about to stop, or has lost what this client used. It would send this client away again.
    const isSentAway = code === serviceRestart && error?.code === 'elsewhere' && error.at === undefined;
    if (isSentAway) this.#nodes.forget();
    // Reset the backoff only if the connection lasted for a while after its welcome. Otherwise this client would
    // contact a failing server four times a second.
    if (this.#state === 'connected' && this.#clock.now() - this.#connectedAt >= longestMs) this.#backoff.reset();
    this.#reconnecting();
    if (isMiscounted || isSentAway) this.#expire();
    this.#retryAfter(Math.min(error?.retryAfterMs ?? pauseAfter(code), longestPauseMs));
  }

  /** @param {number} asked the pause that the server requested; 0 if it requested none */
  #retryAfter(asked) {
    const now = this.#clock.now();
    const pause = Math.max(asked, this.#backoff.next());
    const { until } = this.#nodes;
    this.#isPaused = asked > 0;
    this.#retryAt = asked > 0 || until === null ? now + pause : Math.min(now + pause, Math.max(now, until));
    this.#timers.set('retry', this.#retryAt - now, () => this.#open());
  }

  #reconnecting() {
    if (this.#state !== 'connected') return;
    this.#state = 'reconnecting';
    const welcome = /** @type {Welcome} */ (this.#welcome);
    // Try to resume until the server must have noticed the drop (three missed pings) and its grace period is over.
    // Then give up, even if the server keeps the connection longer, so that pending requests do not wait forever.
    const keptMs = welcome.resume.graceMs + 3 * silenceOf(welcome);
    this.#keptUntil = this.#clock.now() + keptMs;
    this.#timers.set('grace', keptMs, () => this.#expire());
    this.emit('reconnecting');
  }

  /** Gives up resuming the connection and rejects all pending requests. */
  #expire() {
    const hadPlace = this.#secret !== null;
    this.#secret = null;
    this.#timers.clear('grace', 'acknowledge');
    this.#link = new Link();
    this.#restarting ||= this.#welcome !== null;
    this.#rejectAll(new ConfabError({
      code: 'connection_restarted', retryable: true,
      message: 'The connection was lost for too long, so a new one was started. Try again.',
    }));
    if (hadPlace) this.emit('expired');
  }

  /** @param {number} code @param {ConfabError | null} error */
  #finish(code, error) {
    this.#socket?.close(1000);
    this.#socket = null;
    this.#timers.clearAll();
    this.#unwatch();
    this.#state = 'closed';
    this.#secret = null;
    this.#welcome = null;
    this.#restarting = false;
    this.#nodes = new NodeChoice();
    this.#link = new Link();
    const reason = error ?? new ConfabError({ code: 'left', message: 'You have disconnected. Connect again to continue.' });
    this.#rejectAll(reason);
    this.#opening?.reject(reason);
    this.#opening = null;
    this.emit('closed', { code, error });
  }

  /** @param {ConfabError} error */
  #rejectAll(error) {
    const pending = [...this.#moving ? [this.#moving] : [], ...this.#pending.values()];
    this.#moving = null;
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }

  /**
   * Connects now instead of waiting for the next attempt, unless the server requested the pause. If there is a socket,
   * checks it instead.
   */
  #hurry() {
    if (this.#state === 'idle' || this.#state === 'closed') return;
    if (this.#socket) return this.#socket.probe();
    if (this.#isPaused) return;
    this.#nodes.hurry();
    this.#open();
  }

  /**
   * Handles the unloading of the page, perhaps into the back/forward cache. Leaves, and is ready to start over if the page
   * returns.
   */
  #leavePage() {
    this.#socket?.send({ type: 'bye' });
    this.#socket?.close(1000);
    this.#socket = null;
    this.#timers.clear('retry', 'connect');
    this.#isPaused = false;
    this.#reconnecting();
    this.#expire();
  }

  // ---- Receiving

  /** @param {any} raw */
  #receive(raw) {
    /** @type {Message | null} */
    let message = null;
    /** @type {unknown} */
    let fault = null;
    try {
      message = decode('server', raw);
    } catch (error) {
      this.emit('fault', { error });
      fault = error;
    }
    // A numbered message that cannot be decoded may be a newer server's answer to a request. If it is, reject the
    // request.
    if (!message && Number.isSafeInteger(raw?.seq) && this.#pending.has(raw.re)) message = unreadable(raw, fault);
    if (Number.isSafeInteger(raw?.seq)) return this.#receiveNumbered(raw.seq, raw.ack, message);
    if (Number.isSafeInteger(raw?.ack)) this.#link.acknowledged(raw.ack);
    if (message?.type === 'welcome') return this.#welcomed(/** @type {any} */ (message));
    this.#lastError = null;
    if (message?.type !== 'error' || this.#redirected(message)) return;
    // An unnumbered error precedes a close, or a welcome that starts a new connection. It can also answer a request.
    this.#lastError = ConfabError.fromWire(message);
    if (this.#pending.has(/** @type {number} */ (message.re))) this.#deliver(message);
  }

  /**
   * @param {number} seq
   * @param {unknown} ack
   * @param {Message | null} message `null` for an unknown or invalid message, which still counts for the numbering
   */
  #receiveNumbered(seq, ack, message) {
    // Before a welcome, it is unknown which connection the number belongs to.
    if (this.#state !== 'connected') return this.#redial();
    this.#lastError = null;
    if (typeof ack === 'number') this.#link.acknowledged(ack);
    const verdict = this.#link.receive(seq);
    if (verdict === 'gap') return this.#redial();
    if (verdict === 'duplicate') return;
    if (message?.type === 'error' && this.#redirected(message)) return;
    if (message) this.#deliver(message);
    if (awaitsAcknowledgement(message) || this.#link.unacknowledgedReceipts >= acknowledgeMessages) this.#acknowledge();
    else if (!this.#timers.has('acknowledge')) this.#timers.set('acknowledge', acknowledgeMs, () => this.#acknowledge());
  }

  #acknowledge() {
    this.#timers.clear('acknowledge');
    if (this.#state !== 'connected' || this.#link.unacknowledgedReceipts === 0) return;
    this.#socket?.send({ type: 'ack', ack: this.#link.acknowledge() });
  }

  /**
   * Resumes on a new socket, because messages on this one were lost or arrived before the welcome. This does not
   * happen on a working socket.
   */
  #redial() {
    this.#socket?.close();
    this.#dropped(1006);
  }

  /** @param {Message} message */
  #deliver(message) {
    const pending = message.re === undefined ? undefined : this.#pending.get(message.re);
    if (pending) {
      this.#pending.delete(/** @type {number} */ (message.re));
      if (message.type === 'error') return pending.reject(ConfabError.fromWire(message));
      pending.resolve(message);
    }
    if (message.type === 'ok') return;
    this.emit('message', message);
    this.emit(`message:${message.type}`, message);
  }
}

/**
 * Returns how long the server may be silent before this client pings (milliseconds): at least one second, whatever the
 * welcome says.
 * @param {Welcome} welcome
 * @returns {number}
 */
const silenceOf = ({ pingMs }) => Math.max(pingMs, 1000);

/**
 * @param {any} raw an answer that this client cannot read
 * @param {unknown} error why it cannot be decoded, if known
 * @returns {Message} the error message that rejects the request
 */
const unreadable = ({ type, re }, error) => ({
  type: 'error', re, retryable: false, code: error ? 'malformed' : 'unknown_type', message: `The answer "${type}" cannot be read: reload the page. ${error ?? ''}`.trim(),
});
