// A publisher's preferred codec. Encoders use the first supported codec in the other side's description, so this module reorders
// that description. It reorders local offers too, for peers that answer in the order of the offer. Codecs are never
// removed: if the other side does not support the preferred codec, another one is used. If a subscriber cannot decode
// the preferred codec, the server may request another one, which then comes first.

/** @typedef {'vp8' | 'vp9' | 'h264' | 'av1'} VideoCodec */
/** @typedef {'opus' | 'g722' | 'pcmu' | 'pcma'} AudioCodec */
/** @typedef {{videoCodec?: VideoCodec, audioCodec?: AudioCodec}} CodecOptions */
/** @typedef {'audio' | 'video'} Kind */

/**
 * @param {Kind} kind
 * @param {CodecOptions} options
 * @returns {string | undefined} the preferred codec in lower case; undefined if there is none
 */
export const codecOf = (kind, { videoCodec, audioCodec }) => (kind === 'video' ? videoCodec : audioCodec)?.toLowerCase();

/**
 * Returns the codecs with the preferred ones first. Redundant audio (RFC 2198) contains Opus, so it moves together with Opus.
 * @template T
 * @param {T[]} all
 * @param {string} codec
 * @param {(one: T) => string | undefined} nameOf returns what to compare with `codec`, such as the name in lower case
 */
function ordered(all, codec, nameOf) {
  const isPreferred = (/** @type {T} */ one) => nameOf(one) === codec || (codec === 'opus' && nameOf(one) === 'red');
  return [...all.filter(isPreferred), ...all.filter((one) => !isPreferred(one))];
}

/**
 * Puts the publisher's preferred codec first in the transceiver's offers and answers. If there is none, or the
 * browser does not know it, restores the browser's order.
 * @param {RTCRtpTransceiver | undefined} transceiver
 * @param {Kind} kind
 * @param {CodecOptions} options
 */
export function preferCodec(transceiver, kind, options) {
  const codec = codecOf(kind, options);
  // Firefox before 128 lacks this method. In these versions, only the order in the other side's description counts
  // (`withCodecsFirst`).
  if (!transceiver?.setCodecPreferences) return;
  const known = globalThis.RTCRtpReceiver?.getCapabilities?.(kind)?.codecs ?? [];
  const nameOf = (/** @type {{mimeType: string}} */ { mimeType }) => mimeType.split('/')[1].toLowerCase();
  // An empty list restores the browser's own order, for a transceiver that another publisher used before.
  const isKnown = codec !== undefined && known.some((one) => nameOf(one) === codec);
  try {
    transceiver.setCodecPreferences(isKnown ? ordered(known, codec, nameOf) : []);
  } catch {
    // Some browser versions reject codecs that they can only receive. In that case only the order in the other side's
    // description counts.
  }
}

/**
 * Puts codecs first in the other side's description.
 * @param {string} sdp
 * @param {(kind: Kind, mid: string) => string | number | undefined} codecAt returns the preferred codec of a section:
 *   its name in lower case, or its payload type; undefined leaves the section unchanged
 */
export function withCodecsFirst(sdp, codecAt) {
  return sdp.split(/^(?=m=)/m).map((section) => {
    const [line, head, kind, list] = /^(m=(audio|video) \S+ \S+ )([\d ]+)/.exec(section) ?? [];
    if (line === undefined) return section;
    const codec = codecAt(/** @type {Kind} */ (kind), /^a=mid:(\S+)/m.exec(section)?.[1] ?? '');
    if (codec === undefined) return section;
    const names = new Map([...section.matchAll(/^a=rtpmap:(\d+) ([^/\s]+)/gm)].map(([, type, name]) => [type, name.toLowerCase()]));
    // Static payload types need no `rtpmap` (RFC 3551 §6).
    const fixed = /** @type {Record<string, string>} */ ({ 0: 'pcmu', 8: 'pcma', 9: 'g722' });
    const nameOf = (/** @type {string} */ type) => names.get(type) ?? (kind === 'audio' ? fixed[type] : undefined);
    const types = ordered(list.trim().split(/ +/), `${codec}`, typeof codec === 'number' ? (type) => type : nameOf);
    return head + types.join(' ') + section.slice(line.length);
  }).join('');
}
