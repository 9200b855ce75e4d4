// Changes a publisher's tracks: their filters, size and frame rate, and their processing by a program. The filters are those that the
// browser itself has.

import { otFailure } from '../lib/errors.js';
import { unsupported } from './unsupported.js';

/** @typedef {{type: string, [option: string]: unknown}} Filter */
/** @typedef {'audio' | 'video'} Kind */

/**
 * The constraint by which a browser applies each filter.
 * @type {Record<Kind, Record<string, string>>}
 */
const constraints = {
  video: { backgroundBlur: 'backgroundBlur' },
  audio: { advancedNoiseSuppression: 'voiceIsolation' },
};
const known = { video: ['backgroundBlur', 'backgroundReplacement'], audio: ['advancedNoiseSuppression'] };

/**
 * Turns a filter of a track on or off.
 * @param {MediaStreamTrack | null} track
 * @param {Kind} kind
 * @param {Filter} filter
 * @param {boolean} on
 */
export async function setFilter(track, kind, filter, on) {
  if (!known[kind].includes(filter?.type)) {
    throw otFailure('OT_INVALID_PARAMETER', 1011, `The type of this ${kind} filter is unknown. Use one of these: ${known[kind].join(', ')}.`);
  }
  const name = constraints[kind][filter.type];
  const values = name && /** @type {any} */ (track?.getCapabilities?.())?.[name];
  if (!track || !Array.isArray(values) || !values.includes(on)) throw unsupported(`The filter "${filter.type}" is`);
  await track.applyConstraints(/** @type {any} */ ({ ...track.getConstraints(), [name]: { exact: on } }));
}

/**
 * Changes ideal values of a track, and keeps its other constraints.
 * @param {MediaStreamTrack} track
 * @param {Partial<Record<'width' | 'height' | 'frameRate', number>>} ideals
 */
export async function prefer(track, ideals) {
  const constraints = track.getConstraints();
  for (const [name, ideal] of Object.entries(ideals)) {
    const before = constraints[/** @type {'width'} */ (name)];
    constraints[/** @type {'width'} */ (name)] = { ...typeof before === 'object' ? before : {}, ideal };
  }
  await track.applyConstraints(constraints);
}

/**
 * @param {any} connector
 * @returns {import('../lib/media/capture.js').Processor | null}
 */
export function processorOf(connector) {
  if (connector === null || typeof connector?.setTrack === 'function') return connector;
  throw otFailure('OT_INVALID_PARAMETER', 1011, 'Pass a MediaProcessorConnector, or null.');
}

/** Whether this browser gives programs the frames of a track, and makes tracks from frames. */
export function hasMediaProcessorSupport() {
  const { MediaStreamTrackProcessor, MediaStreamTrackGenerator, VideoTrackGenerator } = /** @type {any} */ (globalThis);
  return Boolean(MediaStreamTrackProcessor && (MediaStreamTrackGenerator || VideoTrackGenerator));
}
