// Waits of browser tests. They poll until a condition holds and never sleep for a fixed time. If the condition never holds, the
// error explains why.
import { setTimeout as pause } from 'node:timers/promises';

/** The time in milliseconds after which a wait fails. It is long, because two busy cores may run four pages and a compiler. */
export const defaultTimeout = 30_000;

/**
 * Pauses between polls, in milliseconds; the last one repeats. Most conditions hold within the first few, and a test polls
 * dozens of them.
 */
const intervals = [20, 30, 50, 100];

/** An error that makes a wait try again. Its message is shown on a timeout. Any other error ends a wait at once. */
export class NotYet extends Error {
  name = 'NotYet';
}

/**
 * Calls `probe` until it returns a truthy value, and returns that.
 *
 * @template T
 * @param {string} description the condition, as the end of "waited until …"
 * @param {() => T | Promise<T>} probe throws `NotYet` with a reason to try again
 * @param {object} [options]
 * @param {number} [options.timeout] milliseconds
 * @param {() => unknown} [options.why] called once on failure, to return a state that explains the failure
 * @returns {Promise<T>}
 */
export async function until(description, probe, { timeout = defaultTimeout, why } = {}) {
  const started = performance.now();
  for (let round = 0; ; round += 1) {
    let reason;
    try {
      const value = await probe();
      if (value) return value;
      reason = `the last answer was ${JSON.stringify(value)}`;
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      reason = error.message;
    }
    if (performance.now() - started >= timeout) {
      const more = why ? `\n  ${await explain(why)}` : '';
      throw new Error(`waited ${seconds(performance.now() - started)} until ${description}: ${reason}${more}`);
    }
    await pause(intervals[Math.min(round, intervals.length - 1)]);
  }
}

/** Returns the explanation of a failure. An error in the explanation must not hide the failure. */
async function explain(why) {
  try {
    const state = await why();
    return typeof state === 'string' ? state : JSON.stringify(state);
  } catch (error) {
    return `(no explanation: ${error.message})`;
  }
}

/**
 * Returns the result of a promise, or fails after a timeout.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {number} timeout milliseconds
 * @param {() => string} explanation the error's message
 * @returns {Promise<T>}
 */
export async function within(promise, timeout, explanation) {
  const guard = new AbortController();
  const late = pause(timeout, undefined, { signal: guard.signal }).then(() => {
    throw new Error(explanation());
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    guard.abort();
  }
}

/** Waits for a pure duration, such as that of an outage. If the wait fails, it reports the remaining time. */
export function elapsed(milliseconds, what) {
  const started = performance.now();
  return until(`${what} has lasted ${seconds(milliseconds)}`, () => {
    const left = milliseconds - (performance.now() - started);
    if (left > 0) throw new NotYet(`${seconds(left)} to go`);
    return true;
  }, { timeout: milliseconds + defaultTimeout });
}

/** Starts a stopwatch; calling the result returns the elapsed time as text. */
export function stopwatch() {
  const started = performance.now();
  return () => seconds(performance.now() - started);
}

export function seconds(milliseconds) {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
