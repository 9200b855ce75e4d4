// Compares the names of rooms as the server does (protocol §15).

const ignored = /[\p{Default_Ignorable_Code_Point}\u{e0000}-\u{e007f}]/gu;
const blanks = /[\p{White_Space}\u2800]+/gu;

/**
 * Returns the form in which names of rooms are compared. Names that differ only in case, spaces or invisible
 * characters have the same form.
 * @param {string} name
 */
const folded = (name) => name.replace(ignored, '').replace(blanks, ' ').trim().toUpperCase().toLowerCase().normalize('NFC');

/** @param {string} one @param {string} other @returns {boolean} whether both name the same room */
export const isSameRoom = (one, other) => folded(one) === folded(other);
