// What the condition of a network means to people, and what they can do.

/** @typedef {import('../../lib/media/condition.js').Condition} Condition */

/**
 * @param {Condition} condition
 * @param {{whose: 'mine' | 'theirs', name?: string}} tile `mine`: what I send; `theirs`: what I see and hear of someone else
 * @param {import('./strings.js').Strings['network']} words
 * @returns {{name: string, why: string}} the name of the button, and the sentence that it shows
 */
export function explain({ networkCondition: level, networkConditionReason: reason, networkDegradationSource: source }, { whose, name: person = '' }, words) {
  const name = words.names[whose](words.levels[level], person);
  if (level === 'good' || reason === null) return { name, why: words.good[whose] };
  const side = whose === 'mine' ? 'upload' : source === 'remote' ? 'remote' : 'download';
  /** @type {Record<string, string>} */
  const sentences = words[side];
  return { name, why: sentences[reason] ?? words.unknown };
}
