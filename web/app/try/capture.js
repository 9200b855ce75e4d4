// Says that a session is being recorded or broadcast live, and what to ask its members.

/**
 * What a session of the SDK says about its recordings and broadcasts.
 * @typedef {object} Captured
 * @property {boolean} isRecorded
 * @property {boolean} isBroadcast
 * @property {boolean} asksConsent whether a recording waits for the answer of this person
 * @property {boolean} asksBroadcastConsent whether a broadcast does
 */
/** @typedef {{of: 'recording' | 'broadcast', text: string, accept: string}} Question */

/**
 * @param {Captured} session
 * @param {import('../shared/strings.js').Strings['session']} words
 * @returns {{status: string, question: Question | null}} `status` is empty if the session is neither recorded nor broadcast
 */
export function captureWords({ isRecorded, isBroadcast, asksConsent, asksBroadcastConsent }, words) {
  const status = isRecorded && isBroadcast ? words.recordedAndBroadcast : isRecorded ? words.recorded : isBroadcast ? words.broadcast : '';
  if (asksConsent) return { status, question: { of: 'recording', text: words.askRecording, accept: words.beRecorded } };
  if (asksBroadcastConsent) return { status, question: { of: 'broadcast', text: words.askBroadcast, accept: words.beBroadcast } };
  return { status, question: null };
}
