// Offers to keep in touch after a chat or a call. Two people become contacts if both agree. The pages for
// strangers and for people nearby each keep a list of `ContactOffer` objects. All functions are pure.

/**
 * @typedef {object} ContactOffer
 * @property {string} meeting the id of the match or the call in which the two people met
 * @property {boolean} mine whether this user has agreed
 * @property {boolean} theirs whether the other person has agreed
 * @property {boolean} agreed whether both have agreed and are contacts now
 */

/** How many meetings to remember: the current one, the previous one, and two more for late answers. */
const keptMeetings = 4;

/** @param {ContactOffer[]} list @param {string | null | undefined} meeting @returns {ContactOffer} */
export function keepingOf(list, meeting) {
  return list.find((one) => one.meeting === meeting) ?? { meeting: meeting ?? '', mine: false, theirs: false, agreed: false };
}

/**
 * @param {ContactOffer[]} list
 * @param {string} meeting
 * @param {Partial<ContactOffer>} change
 * @returns {ContactOffer[]}
 */
export function changeKeeping(list, meeting, change) {
  const changed = { ...keepingOf(list, meeting), ...change };
  return [...list.filter((one) => one.meeting !== meeting), changed].slice(-keptMeetings);
}

/** @typedef {'keepPromise' | 'keepSent' | 'keepAsked' | 'keepAgreed'} KeepWords */

/**
 * Returns which text to show beside the button: what pressing it does, or the current status.
 * @param {ContactOffer} keeping
 * @returns {KeepWords}
 */
export function keepWords({ mine, theirs, agreed }) {
  if (agreed) return 'keepAgreed';
  if (mine) return 'keepSent';
  return theirs ? 'keepAsked' : 'keepPromise';
}
