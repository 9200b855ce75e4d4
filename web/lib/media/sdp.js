// The few things we read or change in a session description.

/**
 * Gives the streams in a description the names others know them by. A browser makes up the ids of its `MediaStream`s and
 * never looks at its own `msid` again, so renaming in what is *sent* is safe, and the receiver's `MediaStream.id` is then the
 * stream's id in every engine (RFC 8830; protocol §4).
 * @param {string} sdp
 * @param {Map<string, string>} names from `MediaStream.id` to stream id
 */
export function nameStreams(sdp, names) {
  return sdp.replace(/^a=(?:msid:|msid-semantic:|ssrc:\d+ (?:msid|mslabel):).*$/gm, (line) => {
    let renamed = line;
    for (const [id, name] of names) renamed = renamed.replaceAll(id, name);
    return renamed;
  });
}

/**
 * Which `RTCPeerConnection` wrote this: the session id of its `o=` line, the same in all its descriptions (RFC 8829 §5.2.1).
 * @param {string} sdp
 */
export function originOf(sdp) {
  return /^o=\S+ (\S+) /m.exec(sdp)?.[1];
}

/**
 * Who begins the DTLS handshake, as this answer says: its writer, or whoever reads it (RFC 5763 §5).
 * @param {string} sdp
 * @returns {'active' | 'passive' | undefined} the writer's part
 */
export function roleOf(sdp) {
  return /** @type {any} */ (/^a=setup:(active|passive)\s*$/m.exec(sdp)?.[1]);
}

/**
 * An offer that says which part its writer has already. Firefox 153 answers `active` to every `actpass`, also where it is the
 * passive one since the first answer, and Chromium refuses such an answer; told `active`, it answers `passive`.
 * @param {string} sdp
 * @param {'active' | 'passive' | undefined} role
 */
export function keepRole(sdp, role) {
  return role === 'active' ? sdp.replace(/^a=setup:actpass$/gm, 'a=setup:active') : sdp;
}

/**
 * Whether a Mozilla engine wrote it: its `o=` line begins with the name.
 * @param {string | undefined} sdp
 */
export function isMozilla(sdp) {
  return /^o=mozilla/m.test(sdp ?? '');
}
