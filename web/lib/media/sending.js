// The sending options of a publisher: bitrates, frame rates, priorities and Opus options. Pure functions of the options, and their
// application to senders and descriptions.

import { maxVideoBitrate } from './layers.js';

/** @typedef {'very-low' | 'low' | 'medium' | 'high'} Priority */
/** @typedef {'' | 'motion' | 'detail' | 'text'} ContentHint */
/**
 * Uses OpenTok's names, except for `degradationPreference`, `networkPriority` and the codecs, which have WebRTC's names.
 * @typedef {object} SendingOptions
 * @property {number} [audioBitrate] maximum bitrate of Opus, 6000 to 510000 bit/s
 * @property {boolean} [enableStereo] send two channels, if the source has two. Requires `disableAudioProcessing`,
 *   because the audio processing mixes the channels into one
 * @property {boolean} [enableDtx] send almost nothing during silence; default: as the other side's description says
 * @property {number} [maxVideoBitrate] maximum bitrate of the largest layer, in bit/s; the others are reduced in proportion
 * @property {number} [frameRate] 30, 15, 7 or 1
 * @property {ContentHint} [videoContentHint] what the video shows: 'motion' keeps it smooth, 'detail' and 'text' keep it sharp
 * @property {RTCDegradationPreference} [degradationPreference] whether to keep the resolution or the frame rate on a slow network
 * @property {{audio?: Priority, video?: Priority}} [networkPriority] which media to send first and give a larger share of the bitrate
 * @property {import('./codecs.js').VideoCodec} [videoCodec] the codec to send if both sides support it; set before publishing. In
 *   a routed session another codec is sent while more subscribers can decode it.
 *   Simulcast needs VP8 or H.264; in Firefox before 136, it needs VP8
 * @property {import('./codecs.js').AudioCodec} [audioCodec] routed sessions use only Opus
 */
/** @typedef {{maxBitrate?: number, maxFramerate?: number, priority?: Priority, networkPriority?: Priority}} Encoding */

const audioBitrates = { least: 6000, most: 510_000 };
/** Minimum video bitrate. Less is not usable video. */
const leastVideoBitrate = 5000;

/** @param {number | undefined} value @param {number} least @param {number} most */
const clamped = (value, least, most) => (value === undefined ? undefined : Math.round(Math.min(most, Math.max(least, value))));

/**
 * Returns the parameters of one encoding.
 * @param {'audio' | 'video'} kind
 * @param {SendingOptions} options
 * @param {{maxBitrate?: number}} [layer] the layer of a simulcast video. If the options limit the bitrate, the
 *   layer keeps its share of it
 * @returns {Encoding}
 */
export function encodingOf(kind, options, layer = {}) {
  const priority = options.networkPriority?.[kind];
  const shared = priority ? { priority, networkPriority: priority } : {};
  if (kind === 'audio') return { ...shared, maxBitrate: clamped(options.audioBitrate, audioBitrates.least, audioBitrates.most) };
  const most = clamped(options.maxVideoBitrate, leastVideoBitrate, Infinity);
  const share = (layer.maxBitrate ?? maxVideoBitrate) / maxVideoBitrate;
  return { ...shared, maxBitrate: most === undefined ? layer.maxBitrate : Math.round(most * share), maxFramerate: options.frameRate };
}

/**
 * Applies the options to a sender. Browsers reject parameters that are out of date, so calls for one sender must not overlap.
 * @param {RTCRtpSender} sender
 * @param {'audio' | 'video'} kind
 * @param {SendingOptions} options
 * @param {readonly {rid?: string, maxBitrate?: number}[]} [layers]
 */
export async function tune(sender, kind, options, layers = []) {
  const parameters = sender.getParameters?.();
  // Firefox has no encodings before the answer.
  if (!parameters?.encodings?.length) return;
  let isNews = false;
  /** @param {Record<string, any>} target @param {string} name @param {unknown} value */
  const set = (target, name, value) => {
    if (target[name] === value) return;
    if (value === undefined) delete target[name];
    else target[name] = value;
    isNews = true;
  };
  for (const encoding of parameters.encodings) {
    const layer = layers.find(({ rid }) => rid === encoding.rid);
    for (const [name, value] of Object.entries(encodingOf(kind, options, layer))) set(encoding, name, value);
  }
  if (kind === 'video' && options.degradationPreference) set(parameters, 'degradationPreference', options.degradationPreference);
  if (isNews) await sender.setParameters(parameters);
}

/**
 * Returns the format parameters of Opus (RFC 7587 §6.1) that configure the local encoder. Encoders read them from the other
 * side's description.
 * @param {SendingOptions} options
 * @returns {Record<string, number>}
 */
export function opusParameters({ audioBitrate, enableStereo, enableDtx }) {
  /** @type {Record<string, number>} */
  const parameters = {};
  const most = clamped(audioBitrate, audioBitrates.least, audioBitrates.most);
  if (most !== undefined) parameters.maxaveragebitrate = most;
  if (enableStereo !== undefined) parameters.stereo = enableStereo ? 1 : 0;
  if (enableDtx !== undefined) parameters.usedtx = enableDtx ? 1 : 0;
  return parameters;
}

/**
 * Sets format parameters of Opus in a description.
 * @param {string} sdp
 * @param {(mid: string) => Record<string, number>} parametersOf returns the parameters for a section's mid
 */
export function withOpusParameters(sdp, parametersOf) {
  return sdp.split(/^(?=m=)/m).map((section) => {
    if (!section.startsWith('m=audio')) return section;
    const changes = parametersOf(/^a=mid:(\S+)/m.exec(section)?.[1] ?? '');
    const payloadType = /^a=rtpmap:(\d+) opus\/48000\/2\s*$/im.exec(section)?.[1];
    if (payloadType === undefined || Object.keys(changes).length === 0) return section;
    const known = new RegExp(`^a=fmtp:${payloadType} ([^\\r\\n]*)`, 'm');
    const list = (known.exec(section)?.[1] ?? '').split(';').map((pair) => pair.trim()).filter(Boolean);
    const kept = list.filter((pair) => !(pair.split('=')[0] in changes));
    const line = `a=fmtp:${payloadType} ${[...kept, ...Object.entries(changes).map(([name, value]) => `${name}=${value}`)].join(';')}`;
    if (known.test(section)) return section.replace(known, () => line);
    return section.replace(/^(a=rtpmap:\d+ opus\/48000\/2)(\r?\n)/im, (_, map, end) => `${map}${end}${line}${end}`);
  }).join('');
}
