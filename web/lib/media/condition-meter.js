// Judges the quality of a stream periodically, between `start` and `stop`.

import { Timers } from '../clock.js';
import { steadied, unjudged } from './condition.js';

/** @typedef {import('./condition.js').Judgment} Judgment */

const everyMs = 2000;

/**
 * @template {{at: number}} Counters
 * @typedef {object} MeterOptions
 * @property {import('../clock.js').Clock} clock
 * @property {() => Promise<Counters | null>} count returns the current counters; null while there is nothing to judge
 * @property {(before: Counters, after: Counters) => Judgment} judge judges the time between two counts
 * @property {() => void} changed called when a new judgment has changed `judgment`
 */

/** @template {{at: number}} Counters */
export class ConditionMeter {
  #options;
  #timers;
  /** @type {Counters | null} */
  #before = null;
  #steady = unjudged;
  /** Incremented by `start` and `stop`, so that results of an earlier `count` are ignored. */
  #turn = 0;
  #isRunning = false;

  /** @param {MeterOptions<Counters>} options */
  constructor(options) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
  }

  /** @returns {Judgment} */
  get judgment() {
    return this.#steady.shown;
  }

  /** Starts judging, unless it is running already. */
  start() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#begin();
  }

  stop() {
    this.#isRunning = false;
    this.#steady = unjudged;
    this.#turn += 1;
    this.#timers.clearAll();
  }

  /**
   * Ignores the time since the last judgment. Call this when media was stopped or started on purpose, because that
   * looks like a freeze.
   */
  skip() {
    this.#before = null;
  }

  #begin() {
    this.#before = null;
    this.#turn += 1;
    this.#wait();
  }

  #wait() {
    this.#timers.set('look', everyMs, () => this.#look());
  }

  async #look() {
    const { count, judge, changed } = this.#options;
    const turn = this.#turn;
    const counters = await count().catch(() => null);
    if (turn !== this.#turn) return;
    const before = this.#before;
    this.#before = counters;
    this.#wait();
    if (!counters || !before) return;
    const { shown } = this.#steady;
    this.#steady = steadied(this.#steady, judge(before, counters));
    if (this.#steady.shown.level !== shown.level || this.#steady.shown.reason !== shown.reason) changed();
  }
}
