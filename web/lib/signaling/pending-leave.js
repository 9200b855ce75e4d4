// Notifies the server that a person left while the client was disconnected: resumes the connection on a new socket,
// only to send `bye`. Otherwise the server would keep the connection for the grace period, and the others would wait
// for a person who has left.

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
   * @param {object} options.hello the `hello` message that resumes the connection
   * @param {number} options.waitMs how long to wait before the first attempt (milliseconds): the rest of the client's
   *   current pause, which the server may have requested
   * @param {number} options.ms how long the server may still keep the connection (milliseconds); afterward, gives up
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
        // Leave after any welcome. If it does not resume the connection, the server has created a new one, which is
        // not wanted either.
        if (message?.type !== 'welcome') return;
        this.#socket?.send({ type: 'bye' });
        this.#end();
      },
      closed: (code) => {
        this.#socket = null;
        // A server that rejects this hello no longer keeps the connection, so there is nothing to leave.
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
