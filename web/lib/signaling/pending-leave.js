// Tells the server that a person has left while the connection was away: resumes the connection on a new socket, only to send
// `bye`. Otherwise the server would keep the connection for the grace period, and the others would wait for a person who has
// left.

import { Timers } from '../clock.js';
import { Backoff } from './backoff.js';
import { finalCodes, pauseAfter } from './close-codes.js';
import { Socket } from './socket.js';

export class PendingLeave {
  #options;
  #timers;
  #backoff;
  /** @type {Socket | null} */
  #socket = null;

  /**
   * @param {object} options
   * @param {string} options.url
   * @param {typeof WebSocket} options.WebSocket
   * @param {import('../clock.js').Clock} options.clock
   * @param {() => number} [options.random]
   * @param {object} options.hello resumes the connection
   * @param {number} options.waitMs how long to wait before the first attempt, to keep a pause that the server requested
   * @param {number} options.ms how long the server may still keep the connection
   */
  constructor(options) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
    this.#backoff = new Backoff(options.random);
    this.#timers.set('over', Math.max(0, options.ms), () => this.#end());
    this.#timers.set('open', Math.max(0, options.waitMs), () => this.#open());
  }

  #open() {
    const { url, WebSocket, clock, hello } = this.#options;
    this.#socket = new Socket({
      url, WebSocket, clock,
      opened: () => this.#socket?.send(hello),
      message: (message) => {
        // Leave after any welcome. If it does not resume, the server has created a new connection, which is not wanted
        // either.
        if (message?.type !== 'welcome') return;
        this.#socket?.send({ type: 'bye' });
        this.#end();
      },
      closed: (code) => {
        this.#socket = null;
        // A server that rejects this hello keeps nothing that could be ended.
        if (finalCodes.has(code)) return this.#end();
        this.#timers.set('open', Math.max(pauseAfter(code), this.#backoff.next()), () => this.#open());
      },
    });
  }

  #end() {
    this.#timers.clearAll();
    this.#socket?.close(1000);
    this.#socket = null;
  }
}
