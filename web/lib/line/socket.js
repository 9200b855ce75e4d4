// One WebSocket from opening to its end: text to objects, the time it may take to be welcomed, and whether the other end is
// still there. It says `closed` exactly once, and nothing after it; what the messages mean is for `Client`.

import { Timers } from '../clock.js';
import { ConfabError } from '../errors.js';
import { subprotocol } from './messages.js';

/** Opening, TLS and the answer to the hello together; the server gives up on a silent client after 10 s as well. */
const openingMs = 10_000;
/** Until the welcome says otherwise. */
const silenceMs = 10_000;

/** What the browser reports, and so do we, for a connection that broke. */
export const abnormal = 1006;

/**
 * @typedef {object} SocketOptions
 * @property {string} url
 * @property {typeof WebSocket} WebSocket
 * @property {import('../clock.js').Clock} clock
 * @property {() => void} opened
 * @property {(message: any) => void} message
 * @property {(code: number) => void} closed
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
    this.#timers.set('opening', openingMs, () => this.#giveUp());
  }

  /** @param {object} message */
  send(message) {
    if (!this.#over && this.#socket.readyState === 1) this.#socket.send(JSON.stringify(message));
  }

  /**
   * The hello was answered: from here on silence is suspicious.
   * @param {number} [pingMs]
   */
  established(pingMs = silenceMs) {
    this.#timers.clear('opening');
    this.#liveness = new Liveness(this.#options.clock.now(), pingMs);
    this.#watch();
  }

  /** Asks at once whether the other end is there: the network changed, or the tab came back. */
  probe() {
    if (this.#over || this.#timers.has('opening')) return;
    this.#liveness.ask(this.#options.clock.now());
    this.send({ type: 'ping' });
    this.#watch();
  }

  /**
   * Ends it from this side. `closed` is not called: whoever closes knows.
   * @param {number} [code] none where the other end should take it for a drop and keep our place
   */
  close(code) {
    if (this.#over) return;
    this.#over = true;
    this.#timers.clearAll();
    // A browser may only send 1000 and 3000–4999; 4000 is nobody's, so the server takes it for a drop.
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
      return this.#giveUp();
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
 * Whether the other end is still there (protocol §1): after a silence ask, after another silence give up. Only what really
 * arrived counts, so a timer that a background tab delayed by a minute does not condemn a socket that was heard meanwhile.
 */
export class Liveness {
  #heardAt;
  #silenceMs;
  /** @type {number | null} */
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
  }

  /** @param {number} now @returns {'ask' | 'dead' | null} */
  check(now) {
    if (this.#askedAt !== null) return now - this.#askedAt >= this.#silenceMs ? 'dead' : null;
    if (now - this.#heardAt < this.#silenceMs) return null;
    this.ask(now);
    return 'ask';
  }

  /**
   * Ask at once, whatever was heard: the network changed.
   * @param {number} now
   */
  ask(now) {
    this.#askedAt ??= now;
  }

  /** When to check next. */
  get deadline() {
    return (this.#askedAt ?? this.#heardAt) + this.#silenceMs;
  }
}

/** @returns {string} the socket of the server this module came from */
export function defaultURL() {
  const url = new URL('/v1/socket', import.meta.url);
  if (!url.protocol.startsWith('http')) {
    throw new ConfabError({ code: 'no_url', message: 'Give the Client a `url`: this module was not loaded from a server.' });
  }
  url.protocol = url.protocol.replace('http', 'ws');
  return url.href;
}

/** @param {string} socket a server's socket @param {string} path @returns {string} that path on the same server */
export function httpURL(socket, path) {
  const url = new URL(path, socket);
  url.protocol = url.protocol.replace('ws', 'http');
  return url.href;
}
