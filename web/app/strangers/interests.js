// The list of interests, as the first screen keeps it. Pure.
import { limits } from './state.js';

/**
 * Adds what was typed to the interests: several at once after a paste with commas. Told apart as the server does it.
 * @param {string[]} interests @param {string} typed @returns {string[]}
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
