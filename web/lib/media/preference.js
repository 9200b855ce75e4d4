// A subscriber's preferences for a video, as members of the protocol: OpenTok's `setPreferredResolution` and
// `setPreferredFrameRate`, and a priority.

/**
 * Without a size or frame rate, the best quality is preferred. Without a priority, it is 0.
 * @typedef {{preferredWidth?: number, preferredHeight?: number, preferredFrameRate?: number, priority?: number}} Preference
 */
/** @typedef {{width: number, height: number}} Size in pixels */

const maxPixels = 16384;
const maxFrameRate = 240;
const maxPriority = 100;

/** @param {number} value @param {number} least @param {number} most @param {string} name */
function within(value, least, most, name) {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`${name} must be a number.`);
  return Math.round(Math.min(most, Math.max(least, value)));
}

/**
 * @param {Size | null | undefined} size null for the largest
 * @returns {Preference}
 */
export function preferredResolution(size) {
  if (size === null || size === undefined) return {};
  return {
    preferredWidth: within(size.width, 0, maxPixels, 'The width'), preferredHeight: within(size.height, 0, maxPixels, 'The height'),
  };
}

/**
 * @param {number | null | undefined} frameRate null for all frames
 * @returns {Preference}
 */
export function preferredFrameRate(frameRate) {
  if (frameRate === null || frameRate === undefined) return {};
  return { preferredFrameRate: within(frameRate, 1, maxFrameRate, 'The frame rate') };
}

/**
 * @param {number | null | undefined} priority null for the default, 0
 * @returns {Preference}
 */
export function priorityOf(priority) {
  const value = within(priority ?? 0, 0, maxPriority, 'The priority');
  return value === 0 ? {} : { priority: value };
}

/**
 * Combines the preferences of all subscribers of a stream, because the stream is received only once. The largest
 * size, frame rate and priority win. A subscriber without a size or frame rate wants the best quality, so the result
 * has none either.
 * @param {Preference[]} preferences
 * @returns {Preference}
 */
export function together(preferences) {
  /** @type {Preference} */
  const result = {};
  for (const name of /** @type {const} */ (['preferredWidth', 'preferredHeight', 'preferredFrameRate'])) {
    const all = preferences.map((preference) => preference[name]);
    if (all.length > 0 && all.every((value) => value !== undefined)) result[name] = Math.max(.../** @type {number[]} */ (all));
  }
  return { ...result, ...priorityOf(Math.max(0, ...preferences.map(({ priority = 0 }) => priority))) };
}
