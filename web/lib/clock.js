// The clock of the SDK: a small object, so that tests can control the time.

/**
 * @typedef {object} Clock
 * @property {() => number} now the time of a monotonic clock, in milliseconds
 * @property {(run: () => void, ms: number) => unknown} setTimeout
 * @property {(handle: unknown) => void} clearTimeout
 */

/**
 * The longest delay of a browser's timer in milliseconds, about 25 days. A timer with a longer delay would fire
 * immediately, so longer delays are shortened to this.
 */
const longestMs = 2 ** 31 - 1;

/** @type {Clock} */
export const systemClock = {
  now: () => performance.now(),
  setTimeout: (run, ms) => setTimeout(run, Math.min(ms, longestMs)),
  clearTimeout: (handle) => clearTimeout(/** @type {any} */ (handle)),
};

/**
 * Named timers. Setting a timer replaces the timer with the same name. The owner of the timers calls `clearAll` when
 * it ends.
 */
export class Timers {
  #clock;
  /** @type {Map<string, unknown>} */
  #running = new Map();

  /** @param {Clock} clock */
  constructor(clock) {
    this.#clock = clock;
  }

  /** @param {string} name @param {number} ms @param {() => void} run */
  set(name, ms, run) {
    this.clear(name);
    this.#running.set(name, this.#clock.setTimeout(() => {
      this.#running.delete(name);
      run();
    }, ms));
  }

  /** @param {string} name */
  has(name) {
    return this.#running.has(name);
  }

  /** @param {string[]} names */
  clear(...names) {
    for (const name of names) {
      this.#clock.clearTimeout(this.#running.get(name));
      this.#running.delete(name);
    }
  }

  clearAll() {
    this.clear(...this.#running.keys());
  }
}
