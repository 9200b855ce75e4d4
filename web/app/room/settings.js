// The settings of the media on this device, as PerchRTC had them: what they offer, and what the SDK makes of them. Pure.

/** @typedef {import('./types.js').Settings} Settings */

export const sizes = ['352x288', '480x360', '640x480', '960x540', '1280x720', '1280x960', '1920x1080'];
export const rates = [15, 20, 24, 30];
export const candidates = /** @type {const} */ (['any', 'local', 'stun', 'turn']);
export const protocols = /** @type {const} */ (['any', 'udp', 'tcp']);

/** @type {Settings} */
export const usual = { candidates: 'any', protocol: 'any', size: '640x480', rate: 30 };

/** @param {any} kept what the browser has stored, which may be anything @returns {Settings} */
export function knownSettings(kept) {
  const given = kept ?? {};
  /** @template T @param {readonly T[]} all @param {T} value @param {T} otherwise @returns {T} */
  const oneOf = (all, value, otherwise) => (all.includes(value) ? value : otherwise);
  return {
    candidates: oneOf(candidates, given.candidates, usual.candidates),
    protocol: oneOf(protocols, given.protocol, usual.protocol), size: oneOf(sizes, given.size, usual.size), rate: oneOf(rates, given.rate, usual.rate),
  };
}

/**
 * Returns the options of the SDK's publisher.
 * @param {Settings} settings
 */
export function publisherOptions({ size, rate }) {
  return { resolution: size, frameRate: rate };
}

/**
 * Returns the ICE settings of the SDK's client and room.
 * @param {Settings} settings
 * @returns {import('../../lib/media/ice.js').IceConfig}
 */
export function iceConfigOf({ candidates: kind, protocol }) {
  return {
    ...kind === 'any' ? {} : { candidates: kind },
    ...protocol === 'any' ? {} : { protocol },
  };
}
