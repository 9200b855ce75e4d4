// `OT.log` and `OT.setLogLevel`: what the SDK would like a developer to see, on the console.

export const logLevels = { NONE: 0, ERROR: 1, WARN: 2, INFO: 3, LOG: 4, DEBUG: 5 };

let level = logLevels.ERROR;

/** @param {number} wanted one of `logLevels` */
export function setLogLevel(wanted) {
  level = wanted;
}

/** @param {'error' | 'warn' | 'info' | 'log' | 'debug'} method @param {any[]} words */
function say(method, words) {
  if (level >= logLevels[/** @type {'ERROR'} */ (method.toUpperCase())]) console[method]('Confab:', ...words);
}

/** @param {...any} words */
export const error = (...words) => say('error', words);
/** @param {...any} words */
export const warn = (...words) => say('warn', words);
/** @param {...any} words */
export const info = (...words) => say('info', words);
/** @param {...any} words */
export const log = (...words) => say('log', words);
/** @param {...any} words */
export const debug = (...words) => say('debug', words);
