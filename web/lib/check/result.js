// A check as text for a link, and back. A link may come from anyone, so only numbers, names from lists, and addresses are read from it.
// It contains no address of the person.

import { unmeasured } from './verdicts.js';

/** @typedef {import('./verdicts.js').Measurements} Measurements */
/** @typedef {import('./verdicts.js').Flow} Flow */

/** The number of the format. Later formats have a higher one. */
const format = 1;
/** Maximum length of the text. Results have about 600 characters. */
const maxLength = 4000;
/** The latest time that JavaScript's dates can represent, in milliseconds. */
const latest = 8.64e15;

const trouble = ['refused', 'missing', 'busy', 'insecure', 'unanswered', 'unknown', 'untested'];
const ways = ['works', 'blocked', 'notOffered', 'mediaOff', 'untested'];
/** @type {Record<string, readonly (string | null)[]>} the values of each member that has a list */
export const allowed = {
  camera: ['works', 'dark', ...trouble],
  microphone: ['works', 'silent', 'muted', 'unmeasured', ...trouble],
  speakers: ['heard', 'silent', 'untested'],
  server: ['works', 'noUpgrade', 'unreachable', 'refused', 'lost', 'untested'],
  udp: ways,
  tcp: ways,
  turn: ['works', 'credentials', 'refused', 'unreachable', 'noRelay', 'cannotRelay', 'notOffered', 'mediaOff', 'untested'],
  relay: ['udp', 'tcp', 'tls', null],
  quality: ['measured', 'noPath', 'roomsClosed', 'mediaOff', 'busy', 'hidden', 'failed', 'untested'],
  path: ['udp', 'tcp', 'turn', null],
};

/**
 * @param {Measurements} measured
 * @returns {string} of characters that need no escaping in a URL
 */
export function encodeResult(measured) {
  return btoa(JSON.stringify({ ...measured, format })).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * @param {string} text
 * @returns {Measurements | null} null if the text is not that of a complete result
 */
export function decodeResult(text) {
  if (text.length > maxLength) return null;
  try {
    const read = JSON.parse(atob(text.replaceAll('-', '+').replaceAll('_', '/')));
    if (typeof read !== 'object' || read === null || read.format !== format) return null;
    return checked(read);
  } catch {
    return null;
  }
}

/** @param {Record<string, unknown>} read @returns {Measurements | null} */
function checked(read) {
  const listed = Object.keys(allowed).map((name) => [name, read[name]]);
  if (listed.some(([name, value]) => !allowed[String(name)].includes(/** @type {string} */ (value)))) return null;
  const { at, host, browser, address } = read;
  if (!isNumber(at, latest) || !isText(host, /^[\w.:[\]-]{1,253}$/) || !isText(browser, /^([A-Z][a-z]{1,12} \d{1,5})?$/)) return null;
  if (!isText(address, /^([\d.]{7,15}:\d{1,5}|\[[\da-f:.]{2,45}\]:\d{1,5})?$/i)) return null;
  const [up, down] = [flowOf(read.up), flowOf(read.down)];
  const { roundTripMs } = read;
  if (up === undefined || down === undefined || !(roundTripMs === null || isNumber(roundTripMs, 1e6))) return null;
  return /** @type {Measurements} */ ({ ...unmeasured, ...Object.fromEntries(listed), at, host, browser, address, up, down, roundTripMs });
}

/** @param {unknown} read @returns {Flow | null | undefined} undefined if it is invalid */
function flowOf(read) {
  if (read === null) return null;
  if (typeof read !== 'object') return undefined;
  const { loss, jitterMs, kbit, isLimited } = /** @type {Record<string, unknown>} */ (read);
  const isValid = (loss === null || isNumber(loss, 1)) && (jitterMs === null || isNumber(jitterMs, 1e6))
    && isNumber(kbit, 1e7) && typeof isLimited === 'boolean';
  return isValid ? /** @type {Flow} */ ({ loss, jitterMs, kbit, isLimited }) : undefined;
}

/** @param {unknown} value @param {number} most */
const isNumber = (value, most) => typeof value === 'number' && value >= 0 && value <= most;

/** @param {unknown} value @param {RegExp} pattern */
const isText = (value, pattern) => typeof value === 'string' && pattern.test(value);
