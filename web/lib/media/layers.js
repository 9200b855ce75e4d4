// Simulcast: video in several sizes at once, called layers, of which the server forwards to each subscriber the one that fits.
// Only the layers that the server requests are encoded. A publisher starts with the largest one alone, which is enough for a
// call of two.

import { isScreen, isTrack } from './constraints.js';

/** Enough for faces; browsers would use up to 2.5 Mbit/s. */
export const maxVideoBitrate = 1_500_000;
/** Video with a smaller short side is not scaled down further. */
const leastSide = 480;

/**
 * The preferred layer first (RFC 8853 §5.2).
 * @type {RTCRtpEncodingParameters[]}
 */
const layers = [
  { rid: 'f', scaleResolutionDownBy: 1, maxBitrate: maxVideoBitrate, active: true },
  { rid: 'h', scaleResolutionDownBy: 2, maxBitrate: 500_000, active: false },
  { rid: 'q', scaleResolutionDownBy: 4, maxBitrate: 150_000, active: false },
];

/** The layers to encode before the server requests any. */
export const wantedAtFirst = ['f'];

/** @param {boolean} isScalable @returns {RTCRtpEncodingParameters[]} */
export function sendEncodings(isScalable) {
  return isScalable ? layers.map((layer) => ({ ...layer })) : [{ maxBitrate: maxVideoBitrate }];
}

/**
 * @typedef {object} ScalableOptions
 * @property {boolean} [scalableVideo] false: never use simulcast
 * @property {boolean} [scalableScreenshare] true: use simulcast for screens too
 */

/**
 * True if simulcast makes sense for a publisher's video.
 * @param {ScalableOptions & import('./constraints.js').SourceOptions} options
 * @param {MediaStreamTrack | null} track if there is one
 */
export function isScalable({ scalableVideo = true, scalableScreenshare = false, videoSource, resolution = '640x480' }, track) {
  if (!scalableVideo || videoSource === null || videoSource === false) return false;
  if (isScreen(videoSource) && !scalableScreenshare) return false;
  const known = track ?? (isTrack(videoSource) ? videoSource : null);
  const [wide, high] = resolution.split('x').map(Number);
  // Before the camera is open, assume the size that will be requested.
  const { width = wide, height = high } = known?.getSettings() ?? {};
  return Math.min(width, height) >= leastSide;
}

/**
 * Encodes exactly these layers. If none are wanted, encodes the smallest, so that a new subscriber gets video at once.
 * @param {RTCRtpSender} sender
 * @param {string[]} wanted
 */
export async function activate(sender, wanted) {
  const parameters = sender.getParameters?.();
  const encodings = parameters?.encodings ?? [];
  if (encodings.length < 2) return;
  const [smallest] = [...encodings].sort((one, other) => scaleOf(other) - scaleOf(one));
  const isWanted = encodings.some(({ rid }) => rid !== undefined && wanted.includes(rid));
  let isNews = false;
  for (const encoding of encodings) {
    const active = isWanted ? wanted.includes(encoding.rid ?? '') : encoding === smallest;
    if (encoding.active !== active) isNews = true;
    encoding.active = active;
  }
  if (isNews) await sender.setParameters(parameters);
}

/** @param {RTCRtpEncodingParameters} encoding */
const scaleOf = ({ scaleResolutionDownBy = 1 }) => scaleResolutionDownBy;
