// The list of interests on the first screen. Pure.
import { limits } from './state.js';

/**
 * Adds typed or pasted text to the interests. The text may hold several interests, separated by commas. Compares interests as
 * the server does.
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
