// What a room can be called (protocol §15).

const maxCharacters = 64;
const maxBytes = 256;

/**
 * Checks the name of a room that somebody typed.
 * @param {string} text
 * @returns {{name: string} | {error: 'nameMissing' | 'nameInvalid'}}
 */
export function roomNameIn(text) {
  const name = text.trim().normalize('NFC');
  if (name === '') return { error: 'nameMissing' };
  const isTooLong = [...name].length > maxCharacters || new TextEncoder().encode(name).length > maxBytes;
  // Control characters, and those that change the direction of text.
  if (isTooLong || name === '.' || name === '..' || /[/\p{Cc}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/u.test(name)) return { error: 'nameInvalid' };
  return { name };
}
