// Staying in touch after a chat or a call: both have to say so, each of them once. Pure; the roulette and the page of calls
// keep a list of these.

/**
 * @typedef {object} Keeping
 * @property {string} meeting the match or the call by which two people know each other
 * @property {boolean} mine we said it
 * @property {boolean} theirs the other said it
 * @property {boolean} agreed both did: they are contacts
 */

/** Meetings remembered: the present one, the one before, and room for an answer that comes late. */
const keptMeetings = 4;

/** @param {Keeping[]} list @param {string | null | undefined} meeting @returns {Keeping} */
export function keepingOf(list, meeting) {
  return list.find((one) => one.meeting === meeting) ?? { meeting: meeting ?? '', mine: false, theirs: false, agreed: false };
}

/**
 * @param {Keeping[]} list @param {string} meeting @param {Partial<Keeping>} change
 * @returns {Keeping[]}
 */
export function changeKeeping(list, meeting, change) {
  const changed = { ...keepingOf(list, meeting), ...change };
  return [...list.filter((one) => one.meeting !== meeting), changed].slice(-keptMeetings);
}

/** @typedef {'keepPromise' | 'keepTold' | 'keepAsked' | 'keepAgreed'} KeepWords */

/**
 * What is said beside the button: what pressing it does, and how it stands.
 * @param {Keeping} keeping @returns {KeepWords}
 */
export function keepWords({ mine, theirs, agreed }) {
  if (agreed) return 'keepAgreed';
  if (mine) return 'keepTold';
  return theirs ? 'keepAsked' : 'keepPromise';
}
