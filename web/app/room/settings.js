// The media settings of this device, which are those of the app PerchRTC: the choices, and their conversion to SDK
// options.

/** @typedef {import('./types.js').Settings} Settings */

export const sizes = ['352x288', '480x360', '640x480', '960x540', '1280x720', '1280x960', '1920x1080'];
export const rates = [15, 20, 24, 30];
export const candidates = /** @type {const} */ (['any', 'local', 'stun', 'turn']);
export const protocols = /** @type {const} */ (['any', 'udp', 'tcp']);
const videoCodecs = /** @type {const} */ (['any', 'vp8', 'h264']);
/** PerchRTC also offered iSAC, which browsers no longer support. G.722 is the remaining alternative for wideband speech. */
const audioCodecs = /** @type {const} */ (['any', 'opus', 'g722']);

/** @type {Settings} */
export const usual = { candidates: 'any', protocol: 'any', size: '640x480', rate: 30, videoCodec: 'any', audioCodec: 'any' };

/** @param {any} kept the stored value, which may be invalid @returns {Settings} */
export function knownSettings(kept) {
  const given = kept ?? {};
  /** @template T @param {readonly T[]} all @param {T} value @param {T} otherwise @returns {T} */
  const oneOf = (all, value, otherwise) => (all.includes(value) ? value : otherwise);
  return {
    candidates: oneOf(candidates, given.candidates, usual.candidates),
    protocol: oneOf(protocols, given.protocol, usual.protocol), size: oneOf(sizes, given.size, usual.size), rate: oneOf(rates, given.rate, usual.rate),
    videoCodec: oneOf(videoCodecs, given.videoCodec, usual.videoCodec), audioCodec: oneOf(audioCodecs, given.audioCodec, usual.audioCodec),
  };
}

/**
 * Returns the names of the codecs that this browser can send, in lower case; null if the browser does not report them.
 * @param {'audio' | 'video'} kind
 * @param {{getCapabilities?: (kind: string) => {codecs: {mimeType: string}[]} | null}} [sender]
 * @returns {string[] | null}
 */
export function codecsToSend(kind, sender = globalThis.RTCRtpSender) {
  const codecs = sender?.getCapabilities?.(kind)?.codecs ?? [];
  return codecs.length ? codecs.map(({ mimeType }) => mimeType.split('/')[1].toLowerCase()) : null;
}

/**
 * Returns the choices for a codec. A codec that this browser cannot send, such as H.264 in Firefox before its download has
 * finished, stays in the list. If it is selected, the SDK sends another one.
 * @param {Record<string, string>} names
 * @param {string[] | null} sendable
 * @param {(name: string) => string} missing returns the label of an unsupported codec
 */
export function codecChoices(names, sendable, missing) {
  return Object.entries(names).map(([value, name]) => {
    const isMissing = value !== 'any' && sendable !== null && !sendable.includes(value);
    return { value, text: isMissing ? missing(name) : name, isMissing };
  });
}

/**
 * Returns the options of the SDK's publisher that correspond to the settings.
 * @param {Settings} settings
 */
export function publisherOptions({ size, rate, videoCodec, audioCodec }) {
  return {
    resolution: size, frameRate: rate,
    ...videoCodec === 'any' ? {} : { videoCodec },
    ...audioCodec === 'any' ? {} : { audioCodec },
  };
}

/**
 * Returns the ICE configuration for the SDK's client and room that corresponds to the settings.
 * @param {Settings} settings
 * @returns {import('../../lib/media/ice.js').IceConfig}
 */
export function iceConfigOf({ candidates: kind, protocol }) {
  return {
    ...kind === 'any' ? {} : { candidates: kind },
    ...protocol === 'any' ? {} : { protocol },
  };
}
