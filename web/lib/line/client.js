// `Client`: one person's line to the server. It outlives sockets: what is asked while the network is away is asked when it is
// back, in order and once. Its one invariant: every request is answered, or rejected with an error that says what happened.

import { systemClock, Timers } from '../clock.js';
import { deferred } from '../deferred.js';
import { closedBy, ConfabError, unusable } from '../errors.js';
import { Emitter } from '../events.js';
import { IceServers } from '../media/ice.js';
import { MediaLink } from '../media/media-link.js';
import { Backoff } from './backoff.js';
import { bytesOf, Link } from './link.js';
import { decode, protocolVersion } from './messages.js';
import { watchPage } from './page-life.js';
import { defaultURL, httpURL, Socket } from './socket.js';

/** @typedef {import('./messages.js').Message} Message */
/** @typedef {import('./messages.js').Welcome} Welcome */
/** @typedef {'idle' | 'connecting' | 'connected' | 'reconnecting' | 'closed'} ClientState */

/** Told to the server for its logs. */
export const sdkVersion = '0.1.0';

/** How long the first connection may take, with all its tries, before `connect()` says that it failed. */
const connectMs = 20_000;
/** Protocol §1: acknowledge alone when so much, or so long, went by. */
const acknowledgeMessages = 32;
const acknowledgeMs = 2000;
/** What the pause is after 4408 and 4429 when the server names none. */
const politePauseMs = 10_000;
/** Protocol §2: after these the same hello would only be refused again. */
const finalCodes = new Set([4400, 4401, 4403, 4409, 4413]);

/**
 * @typedef {object} ClientOptions
 * @property {string} [url] the server's socket, `wss://host/v1/socket`; by default where this module came from
 * @property {string} [identity] an anonymous identity's secret, from an earlier `identity` event
 * @property {string} [token] a user token, or a session token for a one-off guest
 * @property {string} [name]
 * @property {typeof WebSocket} [WebSocket]
 * @property {import('../clock.js').Clock} [clock]
 * @property {() => number} [random]
 * @property {import('./page-life.js').Page} [page]
 * @property {import('../media/peer.js').Rtc} [rtc]
 * @property {import('../media/ice.js').IceConfig} [iceConfig] of media through the server
 */

/** @typedef {{resolve: (answer: Message) => void, reject: (error: ConfabError) => void}} Pending */

/**
 * Events: `connected {resumed}`, `reconnecting {}`, `expired {}` (the server no longer keeps our place: sessions and match are
 * gone), `restarted {state}` (back, but as somebody new), `closed {code, error}` (final), `identity {secret}` (keep it),
 * `message:<type>` and `message` (what the server says, answers included), `fault {error}` (a message nobody could read).
 */
export class Client extends Emitter {
  /** @type {ClientState} */
  #state = 'idle';
  #options;
  #clock;
  #timers;
  #backoff;
  #link = new Link();
  /** @type {Map<number, Pending>} requests by their `seq` */
  #pending = new Map();
  /** @type {Socket | null} */
  #socket = null;
  /** @type {Welcome | null} */
  #welcome = null;
  /** @type {string | null} our place on the server, while it keeps it */
  #secret = null;
  /** Whether the next welcome is that of somebody new. */
  #restarting = false;
  /** @type {string | undefined} */
  #identity;
  /** @type {ConfabError | null} why the server is about to close the socket */
  #lastError = null;
  /** @type {{promise: Promise<Welcome>, resolve: (welcome: Welcome) => void, reject: (error: unknown) => void} | null} */
  #opening = null;
  #unwatch = () => {};
  /** @type {MediaLink | null} */
  #media = null;

  /** @param {ClientOptions} [options] */
  constructor(options = {}) {
    super();
    this.#options = options;
    this.#identity = options.identity;
    this.#clock = options.clock ?? systemClock;
    this.#timers = new Timers(this.#clock);
    this.#backoff = new Backoff(options.random);
    /** Which STUN and TURN servers to use. */
    this.ice = new IceServers(async () => (await this.request('ice.servers')).ice, this.#clock);
  }

  get state() {
    return this.#state;
  }

  /** What media goes through the server on: one pair of connections for all our sessions. */
  get media() {
    const { rtc = globalThis, iceConfig } = this.#options;
    return this.#media ??= new MediaLink(this, { rtc, clock: this.#clock, iceConfig });
  }

  /** The last welcome. */
  get welcome() {
    return this.#welcome;
  }

  /** What proves who we are: the token, or the anonymous identity's secret. */
  get credential() {
    return this.#options.token ?? this.#identity;
  }

  /** @param {string} path on the server, by HTTP @returns {string} */
  urlOf(path) {
    return httpURL(this.#options.url ?? defaultURL(), path);
  }

  /** @returns {Promise<Welcome>} rejects with `connect_failed`, or with why the server refuses us */
  connect() {
    if (this.#opening) return this.#opening.promise;
    if (this.#welcome && (this.#state === 'connected' || this.#state === 'reconnecting')) return Promise.resolve(this.#welcome);
    this.#state = 'connecting';
    this.#opening = deferred();
    // The caller has the promise too; this one only keeps an ignored rejection quiet.
    this.#opening.promise.catch(() => {});
    this.#unwatch = watchPage(this.#options.page ?? globalThis.window, {
      online: () => this.#hurry(),
      offline: () => this.#socket?.probe(),
      shown: () => this.#hurry(),
      left: () => this.#leavePage(),
      returned: () => this.#hurry(),
    });
    this.#timers.set('connect', connectMs, () => this.#finish(1006, new ConfabError({
      code: 'connect_failed', retryable: true, message: 'The server cannot be reached. Check the connection and try again.',
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
   * Asks the server something. While the connection is away the question waits for it, up to the bound of the link.
   * @param {string} type
   * @param {Record<string, unknown>} [members]
   * @returns {Promise<Message>} the answer; rejects with a `ConfabError`
   */
  request(type, members = {}) {
    const body = { type, ...members };
    const refusal = this.#refusal(body);
    if (refusal) return Promise.reject(new ConfabError(refusal));
    const message = this.#link.send(body);
    return new Promise((resolve, reject) => {
      this.#pending.set(message.seq, { resolve, reject });
      if (this.#state === 'connected') this.#socket?.send(message);
    });
  }

  /** Goes, at once, for everybody. `connect()` starts afresh. */
  leave() {
    if (this.#state === 'idle' || this.#state === 'closed') return;
    this.#socket?.send({ type: 'bye' });
    this.#finish(1000, null);
  }

  /** @param {{type: string, description?: unknown, sdp?: unknown}} body @returns {import('../errors.js').ErrorMembers | null} */
  #refusal(body) {
    if (this.#state === 'idle' || this.#state === 'closed') {
      return { code: 'not_connected', message: 'Call connect() first.' };
    }
    const { message: most, description: mostWithDescription } = this.#welcome?.limits ?? { message: 65536, description: 262144 };
    // 64 bytes for the numbering that is added on sending.
    if (bytesOf(body) + 64 > (body.description || body.sdp ? mostWithDescription : most)) {
      return { code: 'message_too_large', message: 'This is too long to send. Make it shorter.' };
    }
    if (this.#state !== 'connected' && !this.#link.hasRoom(body)) {
      return {
        code: 'offline_queue_full', retryable: true,
        message: 'The connection is away and too much is waiting for it already. Try again when it is back.',
      };
    }
    return null;
  }

  // ---- Opening and closing

  #open() {
    this.#timers.clear('retry');
    this.#lastError = null;
    this.#socket = new Socket({
      url: this.#options.url ?? defaultURL(),
      WebSocket: this.#options.WebSocket ?? globalThis.WebSocket,
      clock: this.#clock,
      opened: () => this.#socket?.send(this.#hello()),
      message: (message) => this.#receive(message),
      closed: (code) => this.#dropped(code),
    });
  }

  #hello() {
    const { token, name } = this.#options;
    return {
      type: 'hello', version: protocolVersion, client: `confab-web ${sdkVersion}`, name,
      ...(token === undefined ? { identity: this.#identity } : { token }),
      ...(this.#secret === null ? {} : { resume: { secret: this.#secret, received: this.#link.received } }),
    };
  }

  /** @param {Welcome} welcome */
  #welcomed(welcome) {
    // The server knew us no longer, or the whole answer to a resume is another connection.
    if (this.#secret !== null && !welcome.resumed) this.#expire();
    const missing = this.#link.replay(welcome.received);
    // What it lacks we no longer have.
    if (missing === null) return this.startOver();
    this.#welcome = welcome;
    this.#lastError = null;
    this.#secret = welcome.resume.secret;
    this.#backoff.reset();
    this.#timers.clear('connect', 'grace');
    this.ice.update(welcome.ice);
    this.#socket?.established(welcome.pingMs);
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
  }

  /** Leaves its place and takes a new one, as if the server had forgotten us. */
  startOver() {
    if (this.#state === 'idle' || this.#state === 'closed') return;
    this.#socket?.send({ type: 'bye' });
    this.#socket?.close(1000);
    this.#socket = null;
    this.#reconnecting();
    this.#expire();
    this.#open();
  }

  /**
   * The socket ended, not by us.
   * @param {number} code
   */
  #dropped(code) {
    this.#socket = null;
    const error = this.#lastError;
    if (error?.code === 'out_of_order') this.#expire();
    else if (finalCodes.has(code)) return this.#finish(code, error ?? closedBy(code));
    this.#reconnecting();
    const polite = code === 4408 || code === 4429;
    const pause = polite ? Math.max(error?.retryAfterMs ?? politePauseMs, this.#backoff.next()) : this.#backoff.next();
    this.#timers.set('retry', pause, () => this.#open());
  }

  #reconnecting() {
    if (this.#state !== 'connected') return;
    this.#state = 'reconnecting';
    const { resume, pingMs } = /** @type {Welcome} */ (this.#welcome);
    // Until the server must have noticed (three missed pings) and its grace is over. Only for whoever waits here: should it
    // keep our place longer after all, we would not ask for it again.
    this.#timers.set('grace', resume.graceMs + 3 * pingMs, () => this.#expire());
    this.emit('reconnecting');
  }

  /** Our place is gone, and with it every answer still due. */
  #expire() {
    const hadPlace = this.#secret !== null;
    this.#secret = null;
    this.#timers.clear('grace', 'acknowledge');
    this.#link = new Link();
    this.#restarting ||= this.#welcome !== null;
    this.#rejectAll(new ConfabError({
      code: 'connection_restarted', retryable: true,
      message: 'The connection was lost for too long and had to be replaced. Try again.',
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
    this.#link = new Link();
    const reason = error ?? new ConfabError({ code: 'left', message: 'You left. Call connect() to come back.' });
    this.#rejectAll(reason);
    this.#opening?.reject(reason);
    this.#opening = null;
    this.emit('closed', { code, error });
  }

  /** @param {ConfabError} error */
  #rejectAll(error) {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }

  /** Whatever is being waited for: now. */
  #hurry() {
    if (this.#state === 'idle' || this.#state === 'closed') return;
    if (this.#socket) this.#socket.probe();
    else this.#open();
  }

  /** The page goes, perhaps into the back button's cache: leave, and be ready to begin anew should it come back. */
  #leavePage() {
    this.#socket?.send({ type: 'bye' });
    this.#socket?.close(1000);
    this.#socket = null;
    this.#timers.clear('retry', 'connect');
    this.#reconnecting();
    this.#expire();
  }

  // ---- Receiving

  /** @param {any} raw */
  #receive(raw) {
    /** @type {Message | null} */
    let message = null;
    try {
      message = decode('server', raw);
    } catch (error) {
      this.emit('fault', { error });
    }
    if (Number.isSafeInteger(raw?.seq)) return this.#receiveNumbered(raw.seq, raw.ack, message);
    if (Number.isSafeInteger(raw?.ack)) this.#link.acknowledged(raw.ack);
    if (message?.type === 'welcome') return this.#welcomed(/** @type {any} */ (message));
    // An unnumbered error precedes a close, or a welcome that begins anew.
    if (message?.type === 'error') this.#lastError = ConfabError.fromWire(message);
  }

  /**
   * @param {number} seq
   * @param {unknown} ack
   * @param {Message | null} message `null` when unknown or unreadable: it still counts
   */
  #receiveNumbered(seq, ack, message) {
    if (this.#state !== 'connected') return;
    if (typeof ack === 'number') this.#link.acknowledged(ack);
    const verdict = this.#link.receive(seq);
    if (verdict === 'gap') return this.#redial();
    if (verdict === 'duplicate') return;
    if (message) this.#deliver(message);
    if (this.#link.unacknowledgedReceipts >= acknowledgeMessages) this.#acknowledge();
    else if (!this.#timers.has('acknowledge')) this.#timers.set('acknowledge', acknowledgeMs, () => this.#acknowledge());
  }

  #acknowledge() {
    this.#timers.clear('acknowledge');
    if (this.#state !== 'connected' || this.#link.unacknowledgedReceipts === 0) return;
    this.#socket?.send({ type: 'ack', ack: this.#link.acknowledge() });
  }

  /** Something went missing on a socket that cannot lose anything: take another one and ask for it. */
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
