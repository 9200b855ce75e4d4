// Turns the values on the operator's page into text.

/** @typedef {import('./strings.js').Strings['admin']} Words */
/** @typedef {import('./state.js').Report} Report */
/** @typedef {import('./state.js').Stream} Stream */
/** @typedef {import('./state.js').Switch} Switch */
/** @typedef {import('./state.js').Trouble} Trouble */

/** @param {number} value @param {string} language */
const short = (value, language) => rounded(value, value < 10 ? 1 : 0).toLocaleString(language);

/** @param {number} value @param {number} digits after the point */
const rounded = (value, digits) => Math.round(value * 10 ** digits) / 10 ** digits;

/** @param {number} bits per second @param {string} language */
export function bitrateText(bits, language) {
  const units = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s'];
  let unit = 0;
  let value = bits;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${short(value, language)} ${units[unit]}`;
}

/** @param {number} bytes @param {string} language */
export function bytesText(bytes, language) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const unit = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3));
  return `${short(bytes / 1000 ** unit, language)} ${units[unit]}`;
}

/** @param {number | null} value @param {import('./charts.js').Chart['unit']} unit @param {Words} words @param {string} language */
export function valueText(value, unit, words, language) {
  if (value === null) return words.unknown;
  switch (unit) {
    case 'count': return value.toLocaleString(language);
    case 'cores': return rounded(value, 2).toLocaleString(language);
    case 'bits': return bitrateText(value, language);
    case 'rate': return words.perSecond(short(value, language));
  }
}

/** @param {number} at milliseconds @param {string} language */
export const timeText = (at, language) => new Date(at).toLocaleString(language, { dateStyle: 'medium', timeStyle: 'short' });

/** @param {number} ms @returns {string} hours, minutes and seconds */
export function lengthText(ms) {
  const seconds = Math.floor(ms / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return parts.map((part, index) => (index ? String(part).padStart(2, '0') : part)).join(':');
}

/**
 * Shortens an identity or another long ID.
 * @param {string} id
 */
export const shortID = (id) => (id.length > 14 ? `${id.slice(0, 10)}…` : id);

/** @param {Trouble} trouble @param {Words} words */
export const troubleText = (trouble, words) => (typeof trouble === 'object' ? trouble.text : words.errors[trouble]);

/** @param {Stream} stream @param {Words} words */
export function streamText({ audio, video, kind, width, height }, words) {
  const what = kind === 'screen' && video ? 'screen' : audio && video ? 'both' : audio ? 'audio' : video ? 'video' : 'none';
  return video && width && height ? `${words.sends[what]}, ${width} × ${height}` : words.sends[what];
}

/** @param {Stream} stream @param {Words} words */
export function qualityText({ quality, qualityReason }, words) {
  const level = /** @type {Record<string, string>} */ (words.levels)[quality] ?? quality;
  const reason = qualityReason && /** @type {Record<string, string>} */ (words.qualityReasons)[qualityReason];
  return reason ? `${level}: ${reason}` : level;
}

/** @param {Switch} change @param {Words} words */
export function switchText({ paused, layer, reason }, words) {
  const why = /** @type {Record<string, string>} */ (words.switchReasons)[reason] ?? reason;
  return words.switched(paused ? words.paused : layer ? words.layer(layer) : words.video, why);
}

/**
 * How many reports of the list are against the same person.
 * @param {Report} report @param {readonly Report[]} all
 */
export const reportsAgainst = (report, all) => all.filter(({ against }) => against === report.against).length;

/** @param {NonNullable<import('./state.js').State['note']>} note @param {Words} words */
export function noteText({ tone, act, subject, text, obstacle }, words) {
  switch (act?.kind) {
    case undefined: return text || words.errors.unreachable;
    case 'warn': return tone === 'good' ? words.done.warn : obstacle === 'ignored' ? words.done.warningIgnored : words.done.notWarned;
    case 'dismiss': return words.done.dismiss;
    case 'lift': return words.done.lift(subject);
    case 'node': return words.done[act.state](subject);
    default: return words.done.ban(subject);
  }
}
