// Simulcast: a picture in several sizes at once, its layers, of which the server gives each subscriber the one that fits. Only
// those that the server says are wanted are made; a publisher begins with the largest alone, which is all that a call of two
// needs.

import { isScreen, isTrack } from './constraints.js';

/** More than faces need; a browser would go up to 2.5 Mbit/s. */
export const mostVideoBitrate = 1_500_000;
/** Pictures whose shorter side is smaller have nothing to give away. */
const leastSide = 480;

/**
 * The preferred first (RFC 8853 §5.2).
 * @type {RTCRtpEncodingParameters[]}
 */
const layers = [
  { rid: 'f', scaleResolutionDownBy: 1, maxBitrate: mostVideoBitrate, active: true },
  { rid: 'h', scaleResolutionDownBy: 2, maxBitrate: 500_000, active: false },
  { rid: 'q', scaleResolutionDownBy: 4, maxBitrate: 150_000, active: false },
];

/** What is wanted of a stream as long as nobody has said anything. */
export const wantedAtFirst = ['f'];

/** @param {boolean} isScalable @returns {RTCRtpEncodingParameters[]} */
export function sendEncodings(isScalable) {
  return isScalable ? layers.map((layer) => ({ ...layer })) : [{ maxBitrate: mostVideoBitrate }];
}

/**
 * @typedef {object} ScalableOptions
 * @property {boolean} [scalableVideo] false: never in several sizes
 * @property {boolean} [scalableScreenshare] true: a screen, too
 */

/**
 * Whether a publisher's picture is worth several sizes.
 * @param {ScalableOptions & import('./constraints.js').SourceOptions} options
 * @param {MediaStreamTrack | null} track once there is one
 */
export function isScalable({ scalableVideo = true, scalableScreenshare = false, videoSource, resolution = '640x480' }, track) {
  if (!scalableVideo || videoSource === null || videoSource === false) return false;
  if (isScreen(videoSource) && !scalableScreenshare) return false;
  const known = track ?? (isTrack(videoSource) ? videoSource : null);
  const [wide, high] = resolution.split('x').map(Number);
  // Before the camera answers, it is taken to have what it will be asked for.
  const { width = wide, height = high } = known?.getSettings() ?? {};
  return Math.min(width, height) >= leastSide;
}

/**
 * Makes these layers and no others; where nobody wants any, the smallest, so that whoever comes sees something at once.
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
