// Reads and changes session descriptions (SDP): stream ids, the DTLS role, and the peer connection and engine that
// wrote them.

/**
 * Renames the streams in a description to their stream ids. Browsers choose the ids of their `MediaStream`s and never read
 * their own `msid` again, so renaming in the description *sent* is safe. The receiver's `MediaStream.id` is then the stream's
 * id in every engine (RFC 8830; protocol §4).
 * @param {string} sdp
 * @param {Map<string, string>} names maps `MediaStream.id` to the stream id
 */
export function nameStreams(sdp, names) {
  return sdp.replace(/^a=(?:msid:|msid-semantic:|ssrc:\d+ (?:msid|mslabel):).*$/gm, (line) => {
    let renamed = line;
    for (const [id, name] of names) renamed = renamed.replaceAll(id, name);
    return renamed;
  });
}

/**
 * Returns the session id in the `o=` line. It identifies the `RTCPeerConnection` that wrote the description, because it is the
 * same in all descriptions of that connection (RFC 8829 §5.2.1).
 * @param {string} sdp
 */
export function originOf(sdp) {
  return /^o=\S+ (\S+) /m.exec(sdp)?.[1];
}

/**
 * Returns the DTLS role of an answer's author; undefined for an offer with `actpass`. The active peer starts the
 * handshake (RFC 5763 §5).
 * @param {string} sdp
 * @returns {'active' | 'passive' | undefined}
 */
export function roleOf(sdp) {
  return /** @type {any} */ (/^a=setup:(active|passive)\s*$/m.exec(sdp)?.[1]);
}

/**
 * Returns the offer with `active` instead of `actpass` if its author's current DTLS role is `active`. Firefox 153
 * answers `active` to every `actpass`, even if Firefox has been passive since the first answer, and Chromium rejects
 * such an answer. If the offer says `active`, Firefox answers `passive`.
 * @param {string} sdp
 * @param {'active' | 'passive' | undefined} role the author's current role
 */
export function keepRole(sdp, role) {
  return role === 'active' ? sdp.replace(/^a=setup:actpass$/gm, 'a=setup:active') : sdp;
}

/**
 * Returns true if a Mozilla engine wrote the description. Its `o=` line then begins with `mozilla`.
 * @param {string | undefined} sdp
 */
export function isMozilla(sdp) {
  return /^o=mozilla/m.test(sdp ?? '');
}

/**
 * Returns true if one peer is Firefox and the other has another engine. Between Firefox 153 and Chromium 156, an ICE
 * restart offered by Chromium leaves Firefox without media although both peers report connected, and a restart offered
 * by Firefox never connects. Between browsers with the same engine, restarts work.
 * @param {string | undefined} ours
 * @param {boolean | undefined} isTheirsMozilla undefined if it is not known yet
 */
export function areMixed(ours, isTheirsMozilla) {
  return isTheirsMozilla !== undefined && isTheirsMozilla !== isMozilla(ours);
}
