// OpenTok's calls take a target, properties and a callback, each of which may be left out.

/** @typedef {(error?: import('./errors.js').ConfabError) => void} Callback */

/**
 * @param {any[]} given
 * @returns {{target: import('./widget.js').Target, properties: any, callback: Callback | undefined}}
 */
export function sortArguments(given) {
  const callback = given.find((value) => typeof value === 'function');
  const target = given.find((value) => typeof value === 'string' || typeof value?.nodeType === 'number');
  const properties = given.find((value) => typeof value === 'object' && value !== null && value !== target);
  return { target, properties: properties ?? {}, callback };
}
