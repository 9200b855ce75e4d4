// The list of interests on the first screen. The function is pure.
import { limits } from './state.js';

/**
 * Returns the interests with typed or pasted text added. The text may contain several interests, separated by commas.
 * Leaves out those that are already in the list, comparing as the server does, and those that exceed the maximum
 * number.
 * @param {string[]} interests
 * @param {string} typed
 * @returns {string[]}
 */
export function withInterests(interests, typed) {
  const result = [...interests];
  const key = (/** @type {string} */ text) => text.normalize('NFKC').toLowerCase();
  for (const part of typed.split(',')) {
    const text = [...part.trim().replace(/\s+/gu, ' ')].slice(0, limits.interest).join('').trim();
    if (!text || result.length >= limits.interests || result.some((other) => key(other) === key(text))) continue;
    result.push(text);
  }
  return result;
}
