// Turns the verdicts of a check into text: a line for each row, the sentence for support, and the report. All functions are pure.
import { problemsOf, verdictsOf } from '../../lib/check/verdicts.js';

/** @typedef {import('../../lib/check/verdicts.js').Measurements} Measurements */
/** @typedef {import('../../lib/check/verdicts.js').Verdict} Verdict */
/** @typedef {import('./strings.js').Strings} Strings */

/** The most problems that the sentence names. */
const maxProblems = 3;

/** @param {import('./strings.js').Word | undefined} word @param {Measurements} measured */
const spoken = (word, measured) => (typeof word === 'function' ? word(measured) : word ?? '');

/**
 * @param {Verdict} verdict
 * @param {Measurements} measured
 * @param {Strings} strings
 * @returns {{name: string, level: string, says: string, todo: string, short: string}} `todo` and `short` are empty if there is nothing
 *   to do
 */
export function lineOf({ row, level, code }, measured, { check }) {
  const { name, findings } = check.rows[row];
  const { says, todo, short } = findings[code];
  const isProblem = level === 'bad' || level === 'fair';
  const ifProblem = (/** @type {import('./strings.js').Word | undefined} */ word) => (isProblem ? spoken(word, measured) : '');
  const shown = code === 'notOffered' || code === 'mediaOff' ? 'notOffered' : level;
  return { name, level: check.levels[shown], says: spoken(says, measured), todo: ifProblem(todo), short: ifProblem(short) };
}

/**
 * Returns one sentence about the whole check, and what to do first.
 * @param {Measurements} measured
 * @param {Strings} strings
 * @returns {{sentence: string, todo: string}} `todo` is empty if everything works
 */
export function summaryOf(measured, strings) {
  const lines = problemsOf(verdictsOf(measured)).map((verdict) => lineOf(verdict, measured, strings)).filter(({ short }) => short !== '');
  if (lines.length === 0) return { sentence: strings.check.allGood(measured), todo: '' };
  const text = [...new Set(lines.map(({ short }) => short))].slice(0, maxProblems).join('; ');
  return { sentence: `${text[0].toUpperCase()}${text.slice(1)}.`, todo: lines[0].todo };
}

/** @param {number} at @param {string} language @returns {string} in UTC, because the reader may be in another time zone */
export const timeText = (at, language) => (
  `${new Date(at).toLocaleString(language, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })} UTC`);

/**
 * @param {Measurements} measured
 * @param {string} link
 * @param {Strings} strings
 * @param {string} language
 * @returns {string} the report in lines, for an email or a chat
 */
export function reportOf(measured, link, strings, language) {
  const { check } = strings;
  const lines = verdictsOf(measured).map((verdict) => {
    const { name, level, says } = lineOf(verdict, measured, strings);
    return `- ${name}: ${verdict.level === 'none' ? '' : `${level}. `}${says}`;
  });
  const title = check.reportTitle(measured.host, timeText(measured.at, language), measured.browser);
  return [title, summaryOf(measured, strings).sentence, '', ...lines, '', link].join('\n');
}

/**
 * @param {string} userAgent
 * @returns {string} the browser and its version, such as `Firefox 140`; empty if unknown
 */
export function browserOf(userAgent) {
  // Chromium's descendants also contain the name of Chrome, and that of Safari.
  for (const [pattern, name] of /** @type {[RegExp, string][]} */ ([
    [/\bEdgA?\/(\d+)/, 'Edge'], [/\bOPR\/(\d+)/, 'Opera'], [/\bSamsungBrowser\/(\d+)/, 'Samsung'], [/\b(?:Firefox|FxiOS)\/(\d+)/, 'Firefox'],
    [/\b(?:HeadlessChrome|Chrome|CriOS)\/(\d+)/, 'Chrome'], [/\bVersion\/(\d+)[\d.]* (?:Mobile\/\w+ )?Safari\//, 'Safari'],
  ])) {
    const [, version] = pattern.exec(userAgent) ?? [];
    if (version) return `${name} ${version}`;
  }
  return '';
}
