// The rules for room names (protocol §15).

const maxCharacters = 64;
const maxBytes = 256;
/**
 * Matches the slash, and control, private-use and other invisible characters, except those used in emoji and in some
 * scripts.
 */
const forbidden = /[/\p{Cc}\p{Co}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d\u{e0020}-\u{e007f}])\p{Cf}/u;
const visible = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]/u;

/**
 * Checks a room name that the user typed.
 * @param {string} text
 * @returns {{name: string} | {error: 'nameMissing' | 'nameInvalid'}}
 */
export function roomNameIn(text) {
  const name = text.trim().normalize('NFC');
  if (name === '') return { error: 'nameMissing' };
  const isTooLong = [...name].length > maxCharacters || new TextEncoder().encode(name).length > maxBytes;
  if (isTooLong || name === '.' || name === '..' || forbidden.test(name) || !visible.test(name)) return { error: 'nameInvalid' };
  return { name };
}
