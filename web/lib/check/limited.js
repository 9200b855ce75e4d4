// A time limit for a promise.

import { ConfabError } from '../errors.js';

/**
 * @template Value
 * @param {Promise<Value>} promise
 * @param {number} ms
 * @param {import('../clock.js').Clock} clock
 * @returns {Promise<Value>} rejects with `timeout` if the promise has not settled after this time
 */
export function limited(promise, ms, clock) {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => {
      reject(new ConfabError({ code: 'timeout', message: 'There was no answer in time. Try again.', retryable: true }));
    }, ms);
    promise.then(resolve, reject).finally(() => clock.clearTimeout(timer));
  });
}
