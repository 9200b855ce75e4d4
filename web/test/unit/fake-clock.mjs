// A clock that advances only when a test advances it.

/**
 * Runs everything that is ready to run without time passing: an immediate runs after all promises. Waiting for many promises instead
 * takes much longer, because node's test runner follows each of them.
 * @returns {Promise<void>}
 */
export const settled = () => new Promise((resolve) => { setImmediate(() => resolve()); });

export class FakeClock {
  #now = 0;
  #made = 0;
  /** @type {Map<number, {at: number, run: () => void}>} */
  #timers = new Map();

  now = () => this.#now;

  /** @param {() => void} run @param {number} ms */
  setTimeout = (run, ms) => {
    this.#made += 1;
    this.#timers.set(this.#made, { at: this.#now + ms, run });
    return this.#made;
  };

  /** @param {unknown} handle */
  clearTimeout = (handle) => {
    this.#timers.delete(/** @type {number} */ (handle));
  };

  /** The number of pending timers. It must be zero after their owner has ended. */
  get pending() {
    return this.#timers.size;
  }

  /**
   * The device sleeps: time passes, and no timer fires until the next `advance`.
   * @param {number} ms
   */
  sleep(ms) {
    this.#now += ms;
  }

  /** @param {number} ms */
  async advance(ms) {
    const end = this.#now + ms;
    await settled();
    for (;;) {
      const due = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      const [handle, { at, run }] = due;
      this.#timers.delete(handle);
      this.#now = Math.max(this.#now, at);
      run();
      await settled();
    }
    this.#now = end;
  }
}
