// Explains a network condition to users, and says what they can do about it.

/** @typedef {import('../../lib/media/condition.js').Condition} Condition */

/**
 * Returns the text of a tile's network indicator.
 * @param {Condition} condition
 * @param {{whose: 'mine' | 'theirs', name?: string}} tile `mine`: media that this user sends; `theirs`: media received from someone else
 * @param {import('./strings.js').Strings['network']} words
 * @returns {{name: string, why: string}} the button's name, and the sentence that it shows
 */
export function explain({ networkCondition: level, networkConditionReason: reason, networkDegradationSource: source }, { whose, name: person = '' }, words) {
  const name = words.names[whose](words.levels[level], person);
  if (level === 'good' || reason === null) return { name, why: words.good[whose] };
  const side = whose === 'mine' ? 'upload' : source === 'remote' ? 'remote' : 'download';
  /** @type {Record<string, string>} */
  const sentences = words[side];
  return { name, why: sentences[reason] ?? words.unknown };
}
