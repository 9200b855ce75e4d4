// The two things we read or change in a session description.

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
