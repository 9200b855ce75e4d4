// How long to wait before the next attempt: doubles from a quarter of a second to three seconds. Each wait is random between
// half of that and all of it, so that the clients of a restarted server do not reconnect in the same instant.

const firstMs = 250;
/** Well below the 30 s in which a connection can be resumed: reconnect soon after the network is back. */
const longestMs = 3000;

export class Backoff {
  #attempts = 0;
  #random;

  /** @param {() => number} [random] between 0 and 1 */
  constructor(random = Math.random) {
    this.#random = random;
  }

  /** @returns {number} milliseconds */
  next() {
    const ceiling = Math.min(longestMs, firstMs * 2 ** Math.min(this.#attempts, 16));
    this.#attempts += 1;
    return Math.round(ceiling * (0.5 + this.#random() / 2));
  }

  reset() {
    this.#attempts = 0;
  }
}
