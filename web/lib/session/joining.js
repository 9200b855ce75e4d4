// Sends `session.join`, and sends it again if the server rejects it because of its rate limit: all members who leave
// and join again share a budget (protocol §4).

import { Timers } from '../clock.js';
import { ConfabError } from '../errors.js';
import { Backoff } from '../signaling/backoff.js';

/**
 * Maximum number of attempts. With the server's pauses, they are enough for all members of the largest session to join
 * again.
 */
const maxAttempts = 30;
/** The longest pause between two attempts, unless the server asks for a longer one (milliseconds). */
const longestMs = 5000;

export class Joining {
  #timers;
  #send;
  #stop = () => {};

  /** @param {import('../clock.js').Clock} clock @param {() => Promise<unknown>} send */
  constructor(clock, send) {
    this.#timers = new Timers(clock);
    this.#send = send;
  }

  /** @returns {Promise<unknown>} the answer; rejects with the error of the last attempt */
  async begin() {
    const backoff = new Backoff(Math.random, longestMs);
    let isStopped = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#send();
      } catch (error) {
        const pause = error instanceof ConfabError && error.code === 'rate_limited' && error.retryable ? error.retryAfterMs ?? 0 : null;
        if (pause === null || isStopped || attempt === maxAttempts) throw error;
        await new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
          this.#stop = () => {
            isStopped = true;
            resolve();
          };
          this.#timers.set('again', Math.max(backoff.next(), pause), resolve);
        });
        if (isStopped) throw error;
      }
    }
  }

  /**
   * Cancels the pause before the next attempt, if there is one: `begin` then rejects with the error of the last
   * attempt.
   */
  stop() {
    this.#timers.clearAll();
    this.#stop();
  }
}
