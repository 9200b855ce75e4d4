// Simulcast: a publisher sends video in several sizes at once, called layers, and the server forwards the best layer
// to each subscriber. Only the layers that the server requests are encoded. A publisher starts with the largest layer
// alone, which is enough for a call between two people. A video without layers is encoded only while it has a viewer.

import { codecOf } from './codecs.js';
import { isScreen, isTrack } from './constraints.js';

/** Maximum bitrate of a video, in bit/s. It is enough for faces, while browsers would use up to 2.5 Mbit/s. */
export const maxVideoBitrate = 1_500_000;
/** Minimum length of a video's shorter side for simulcast, in pixels. */
const leastSide = 480;
/**
 * Minimum area for three layers, in pixels. For a smaller frame, Chromium encodes only the first two layers, even if
 * others are active. Its threshold lies a tenth of the way down from the area of 960 × 540 (518,400) to that of
 * 640 × 360 (230,400), which is 489,600. It is rounded up here.
 */
const leastAreaOfThree = 490_000;

/** @typedef {readonly RTCRtpEncodingParameters[]} Layers starting with the preferred one (RFC 8853 §5.2) */

/** @type {Layers} */
export const three = [
  { rid: 'f', scaleResolutionDownBy: 1, maxBitrate: maxVideoBitrate, active: true },
  { rid: 'h', scaleResolutionDownBy: 2, maxBitrate: 500_000, active: false },
  { rid: 'q', scaleResolutionDownBy: 4, maxBitrate: 150_000, active: false },
];

/** @type {Layers} */
export const two = [
  { rid: 'f', scaleResolutionDownBy: 1, maxBitrate: maxVideoBitrate, active: true },
  { rid: 'h', scaleResolutionDownBy: 2, maxBitrate: 300_000, active: false },
];

/** @type {Layers} a video without simulcast */
export const single = [{ maxBitrate: maxVideoBitrate }];

/**
 * What the server asks a publisher to encode.
 * @typedef {object} Wanted
 * @property {string[]} rids the ids of the layers to encode
 * @property {boolean} [video] whether to encode a video without layers; default: yes
 * @property {number} [codec] the payload type of the codec to send, if subscribers cannot decode the preferred one
 */

/** @type {Wanted} what to encode before the server's first request */
export const wantedAtFirst = { rids: ['f'] };

/** @param {Layers} layers @returns {RTCRtpEncodingParameters[]} a copy, which the browser may keep */
export const encodingsOf = (layers) => layers.map((layer) => ({ ...layer }));

/**
 * @typedef {object} ScalableOptions
 * @property {boolean} [scalableVideo] false: never use simulcast
 * @property {boolean} [scalableScreenshare] true: use simulcast for screens too
 */

/** The first version of Firefox that sends more than one layer of H.264. */
const firefoxWithLayers = 136;

/**
 * Returns whether the browser sends several layers of a codec. If it sends only one although more were negotiated, the server might
 * request a layer that never arrives.
 * @param {string | undefined} codec in lower case; undefined for the default codec
 * @param {string} [userAgent]
 */
export function sendsLayers(codec, userAgent = globalThis.navigator?.userAgent ?? '') {
  if (codec === undefined || codec === 'vp8') return true;
  // Chromium puts the layers of VP9 and AV1 into one stream, and Firefox does not support layers for them.
  if (codec !== 'h264') return false;
  const [, version] = /\bFirefox\/(\d+)/.exec(userAgent) ?? [];
  return version === undefined || Number(version) >= firefoxWithLayers;
}

/**
 * Returns the layers of a publisher's video: three or two, depending on its size, or a single one without simulcast.
 * @param {ScalableOptions & import('./constraints.js').SourceOptions & import('./codecs.js').CodecOptions} options
 * @param {MediaStreamTrack | null} track the video track, if there is one
 * @returns {Layers}
 */
export function layersOf({ scalableVideo = true, scalableScreenshare = false, videoSource, resolution = '640x480', ...codecs }, track) {
  if (!scalableVideo || videoSource === null || videoSource === false || !sendsLayers(codecOf('video', codecs))) return single;
  if (isScreen(videoSource) && !scalableScreenshare) return single;
  const known = track ?? (isTrack(videoSource) ? videoSource : null);
  const [wide, high] = resolution.split('x').map(Number);
  // Before the camera is open, assume the size that will be requested.
  const { width = wide, height = high } = known?.getSettings() ?? {};
  if (Math.min(width, height) < leastSide) return single;
  return width * height < leastAreaOfThree ? two : three;
}

/**
 * Encodes exactly the wanted layers. If none are wanted, encodes the smallest one, so that a new subscriber gets video
 * immediately. A video without layers has no small layer, so it is encoded only if `video` is true.
 * @param {RTCRtpSender} sender
 * @param {Wanted} wanted
 */
export async function activate(sender, { rids, video = true }) {
  const parameters = sender.getParameters?.();
  // Firefox has no encodings before the answer.
  const encodings = parameters?.encodings ?? [];
  const [smallest] = [...encodings].sort((one, other) => scaleOf(other) - scaleOf(one));
  const isWanted = encodings.some(({ rid }) => rid !== undefined && rids.includes(rid));
  let isNews = false;
  for (const encoding of encodings) {
    const active = encodings.length === 1 ? video : isWanted ? rids.includes(encoding.rid ?? '') : encoding === smallest;
    if ((encoding.active ?? true) === active) continue;
    encoding.active = active;
    isNews = true;
  }
  if (isNews) await sender.setParameters(parameters);
}

/** @param {RTCRtpEncodingParameters} encoding */
const scaleOf = ({ scaleResolutionDownBy = 1 }) => scaleResolutionDownBy;
