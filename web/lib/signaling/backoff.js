// The delay before the next attempt, which doubles from a quarter of a second to three seconds, or to another maximum. Each wait is
// a random time between half of the delay and the whole delay, so that the clients of a restarted server do not all reconnect in the
// same instant.

const firstMs = 250;
/**
 * The maximum delay. Well below the 30 s in which a connection can be resumed, so that clients reconnect soon after an outage.
 */
export const longestMs = 3000;

export class Backoff {
  #attempts = 0;
  #random;
  #longest;

  /**
   * @param {() => number} [random] returns a number between 0 and 1
   * @param {number} [longest] the maximum delay, in milliseconds
   */
  constructor(random = Math.random, longest = longestMs) {
    this.#random = random;
    this.#longest = longest;
  }

  /** @returns {number} how long to wait before the next attempt, in milliseconds */
  next() {
    const ceiling = Math.min(this.#longest, firstMs * 2 ** Math.min(this.#attempts, 16));
    this.#attempts += 1;
    return Math.round(ceiling * (0.5 + this.#random() / 2));
  }

  reset() {
    this.#attempts = 0;
  }
}
