// One WebSocket, from opening to close: parses messages, limits the time until the welcome, and checks that the server is
// alive. Reports `closed` exactly once, unless `close` was called, and nothing after either of them. `Client` handles
// the meaning of messages.

import { Timers } from '../clock.js';
import { ConfabError } from '../errors.js';
import { subprotocol } from './messages.js';

/**
 * Time limit for opening the socket, TLS and the answer to the hello together (milliseconds). The server also gives up
 * on a silent client after 10 s.
 */
const openingMs = 10_000;
/** How long the server may be silent before a ping (milliseconds), until the welcome sets another value. */
const silenceMs = 10_000;

/**
 * A check that runs more than this long after its deadline (milliseconds) does not count, because the device was
 * probably asleep. On a device that is awake, timers are less late.
 */
const lateMs = 1000;
/**
 * Maximum number of consecutive checks that do not count. Browsers repeatedly delay the timers of hidden pages by a
 * minute.
 */
const maxLateChecks = 3;

/** The code that browsers report for a broken connection, used here too. */
export const abnormal = 1006;

/**
 * @typedef {object} SocketOptions
 * @property {string} url
 * @property {typeof WebSocket} WebSocket
 * @property {import('../clock.js').Clock} clock
 * @property {number} [openingMs] a shorter time limit until the welcome (milliseconds)
 * @property {() => void} opened called when the socket is open
 * @property {(message: any) => void} message called with each parsed message; undefined if it is not JSON
 * @property {(code: number) => void} closed called with the close code
 */

export class Socket {
  #options;
  #timers;
  #socket;
  #liveness;
  #over = false;

  /** @param {SocketOptions} options */
  constructor(options) {
    this.#options = options;
    const { url, clock, WebSocket } = options;
    this.#timers = new Timers(clock);
    this.#liveness = new Liveness(clock.now(), silenceMs);
    this.#socket = new WebSocket(url, subprotocol);
    this.#socket.onopen = () => { if (!this.#over) options.opened(); };
    this.#socket.onmessage = ({ data }) => this.#heard(data);
    this.#socket.onclose = ({ code }) => this.#ended(code);
    this.#timers.set('opening', Math.min(options.openingMs ?? openingMs, openingMs), () => this.#giveUp());
  }

  /** @param {object} message */
  send(message) {
    if (!this.#over && this.#socket.readyState === 1) this.#socket.send(JSON.stringify(message));
  }

  /**
   * Starts to check that the server is alive. Call this when the hello was answered.
   * @param {number} [pingMs]
   */
  established(pingMs = silenceMs) {
    this.#timers.clear('opening');
    this.#liveness = new Liveness(this.#options.clock.now(), pingMs);
    this.#watch();
  }

  /**
   * Checks now whether the server is alive, because the network changed or the tab was shown again. Does nothing
   * before the welcome.
   */
  probe() {
    if (this.#over || this.#timers.has('opening')) return;
    if (this.#liveness.ask(this.#options.clock.now())) this.send({ type: 'ping' });
    this.#watch();
  }

  /**
   * Closes the socket from this side. Does not report `closed`, because the caller already knows.
   * @param {number} [code] omit the code if the server should treat the close as a drop and keep the connection
   */
  close(code) {
    if (this.#over) return;
    this.#over = true;
    this.#timers.clearAll();
    // A browser may only send 1000 and 3000–4999. 4000 has no meaning, so the server treats it as a drop.
    this.#socket.close(code ?? 4000);
  }

  #watch() {
    const { clock } = this.#options;
    this.#timers.set('silence', Math.max(0, this.#liveness.deadline - clock.now()), () => {
      const verdict = this.#liveness.check(clock.now());
      if (verdict === 'dead') return this.#giveUp();
      if (verdict === 'ask') this.send({ type: 'ping' });
      this.#watch();
    });
  }

  /** @param {unknown} data */
  #heard(data) {
    if (this.#over) return;
    this.#liveness.heard(this.#options.clock.now());
    /** @type {unknown} */
    let message;
    try {
      message = JSON.parse(String(data));
    } catch {
      // The data is not JSON. If it was a numbered message, the number of the next one shows that it is missing.
      message = undefined;
    }
    this.#options.message(message);
  }

  #giveUp() {
    if (this.#over) return;
    this.close();
    this.#options.closed(abnormal);
  }

  /** @param {number} code */
  #ended(code) {
    if (this.#over) return;
    this.#over = true;
    this.#timers.clearAll();
    this.#options.closed(code);
  }
}

/**
 * Checks that the server is alive (protocol §1): after a silence it pings, after another silence it gives up. Only received
 * data counts: a timer that a background tab delayed by a minute does not close a socket that received data in that
 * time. A check that runs late shows that this device was asleep, or too busy to read what has arrived: it pings again
 * and does not give up. But after several late checks in a row, it gives up.
 */
export class Liveness {
  #lateChecks = 0;
  #heardAt;
  #silenceMs;
  /** @type {number | null} when the last check asked for a ping; null if data has arrived since */
  #askedAt = null;

  /** @param {number} now @param {number} silenceMs */
  constructor(now, silenceMs) {
    this.#heardAt = now;
    this.#silenceMs = silenceMs;
  }

  /** @param {number} now */
  heard(now) {
    this.#heardAt = now;
    this.#askedAt = null;
    this.#lateChecks = 0;
  }

  /** @param {number} now @returns {'ask' | 'dead' | null} `ask`: send a ping; `dead`: give up; null: it is too early */
  check(now) {
    const late = now - this.deadline;
    if (late < 0) return null;
    if (this.#askedAt !== null) {
      if (late <= lateMs || this.#lateChecks >= maxLateChecks) return 'dead';
      this.#lateChecks += 1;
    }
    this.#askedAt = now;
    return 'ask';
  }

  /**
   * Starts a check now, regardless of what was received before, because the network may have changed.
   * @param {number} now
   * @returns {boolean} whether to send a ping; false if an earlier ping has no answer yet
   */
  ask(now) {
    const isFirst = this.#askedAt === null;
    this.#askedAt ??= now;
    return isFirst;
  }

  /** The time of the next check. */
  get deadline() {
    return (this.#askedAt ?? this.#heardAt) + this.#silenceMs;
  }
}

/** The paths of the socket and of this module, relative to the server's URL. */
const socketPath = '/v1/socket';
const modulePath = '/lib/signaling/socket.js';

/**
 * Returns the URL of the socket of the server that this module was loaded from. The server may be deployed under a
 * path of its origin.
 * @param {string} [module] the URL of this module, or of a bundle, whose URL does not show the server's path
 */
export function defaultURL(module = import.meta.url) {
  const url = new URL(module);
  if (!url.protocol.startsWith('http')) {
    throw new ConfabError({ code: 'no_url', message: 'Pass a `url` to the Client: this module was not loaded from a server.' });
  }
  url.protocol = url.protocol.replace('http', 'ws');
  return at(url, before(url, modulePath) + socketPath);
}

/**
 * Returns the URL of a path on a server. Paths in messages are relative to the server's URL (protocol §1), which may itself have a path.
 * @param {string} socket the URL of the server's socket
 * @param {string} path begins with a slash
 */
export function httpURL(socket, path) {
  const url = new URL(socket);
  url.protocol = url.protocol.replace('ws', 'http');
  return at(url, before(url, socketPath) + path);
}

/**
 * Returns the URL of the socket of one node of a cluster (protocol §3.1).
 * @param {string} socket the URL of the server's socket
 * @param {string} node the node's name
 */
export function nodeURL(socket, node) {
  const url = new URL(socket);
  url.searchParams.set('at', node);
  return url.href;
}

/** @param {URL} url @param {string} end @returns {string} the path without this end; empty if it has another end */
const before = ({ pathname }, end) => (pathname.endsWith(end) ? pathname.slice(0, -end.length) : '');

/**
 * Returns the URL with another path. Assigns the path to the URL instead of resolving it, so that no path can lead to
 * another host.
 * @param {URL} url changed in place
 * @param {string} path
 */
function at(url, path) {
  [url.pathname, url.search, url.hash] = [path, '', ''];
  return url.href;
}
