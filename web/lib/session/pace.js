// Limits the rate of automatic messages about streams. If a stream changes several times while it waits, only one
// message is sent.

import { Timers } from '../clock.js';

/**
 * The rate in messages per second, half of what the server allows a client for all its messages, and how many messages
 * may be sent at once after a pause.
 */
const perSecond = 10;
const burst = 20;

export class Pace {
  #clock;
  #timers;
  #send;
  #isUrgent;
  /** @type {Set<string>} stream ids */
  #waiting = new Set();
  #allowance = burst;
  #countedAt;

  /**
   * @param {import('../clock.js').Clock} clock
   * @param {(streamId: string) => void} send
   * @param {(streamId: string) => boolean} isUrgent whether to send the message about this stream before others
   */
  constructor(clock, send, isUrgent) {
    this.#clock = clock;
    this.#timers = new Timers(clock);
    this.#send = send;
    this.#isUrgent = isUrgent;
    this.#countedAt = clock.now();
  }

  /** @param {string} streamId */
  add(streamId) {
    this.#waiting.add(streamId);
    this.#flush();
  }

  stop() {
    this.#waiting.clear();
    this.#timers.clearAll();
  }

  #flush() {
    const now = this.#clock.now();
    this.#allowance = Math.min(burst, this.#allowance + (now - this.#countedAt) * perSecond / 1000);
    this.#countedAt = now;
    while (this.#waiting.size > 0 && this.#allowance >= 1) {
      const next = [...this.#waiting].find(this.#isUrgent) ?? [...this.#waiting][0];
      this.#waiting.delete(next);
      this.#allowance -= 1;
      this.#send(next);
    }
    if (this.#waiting.size > 0 && !this.#timers.has('flush')) this.#timers.set('flush', 1000 / perSecond, () => this.#flush());
  }
}
