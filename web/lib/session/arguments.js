// Sorts and checks the arguments that callers pass to `OT` and to a session.

import { otFailure } from '../errors.js';

/** @typedef {(error?: import('../errors.js').ConfabError) => void} Callback */

/**
 * Parses OpenTok's arguments: a target, properties and a callback, each of which is optional.
 * @param {any[]} given
 * @returns {{target: import('../media/widget.js').Target, properties: any, callback: Callback | undefined}}
 */
export function sortArguments(given) {
  const callback = given.find((value) => typeof value === 'function');
  const target = given.find((value) => typeof value === 'string' || typeof value?.nodeType === 'number');
  const properties = given.find((value) => typeof value === 'object' && value !== null && value !== target);
  return { target, properties: properties ?? {}, callback };
}

/** OpenTok's limits for a signal's type (characters) and data (bytes). The server enforces them too (protocol §4). */
const longestType = 128;
const longestData = 8 * 1024;

/** @param {string | {id: string}} object a connection or stream, or its id @returns {string} */
export function idOf(object) {
  return typeof object === 'string' ? object : object?.id;
}

/**
 * @param {{type?: string, data?: string, to?: {id: string} | string}} signal
 * @returns {{signalType?: string, data?: string, to?: string}}
 */
export function signalMembers({ type, data, to }) {
  if (type !== undefined && !(typeof type === 'string' && type.length <= longestType && /^[A-Za-z0-9\-_~]+$/.test(type))) {
    throw otFailure('OT_INVALID_PARAMETER', 400, `A signal's type must not exceed ${longestType} characters. Use only letters (A-Z, a-z), digits, "-", "_" and "~".`);
  }
  if (data !== undefined && typeof data !== 'string') {
    throw otFailure('OT_INVALID_PARAMETER', 400, "A signal's data must be a string. Use JSON.stringify() for anything else.");
  }
  if (data !== undefined && new TextEncoder().encode(data).length > longestData) {
    throw otFailure('OT_INVALID_PARAMETER', 413, "The signal's data is larger than 8 KiB. Split it into several signals.");
  }
  return { signalType: type, data, to: to === undefined ? undefined : idOf(to) };
}
