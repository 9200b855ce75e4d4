// Keys by name, for both protocols.

/**
 * The keys. `code` and `virtual` are for the DevTools protocol, `bidi` is WebDriver's private-use character, and `text` is the
 * typed text.
 */
const named = {
  Enter: { virtual: 13, bidi: '\uE007', text: '\r' },
  Tab: { virtual: 9, bidi: '\uE004' },
  Escape: { virtual: 27, bidi: '\uE00C' },
  Space: { key: ' ', virtual: 32, bidi: ' ', text: ' ' },
  Backspace: { virtual: 8, bidi: '\uE003' },
  Delete: { virtual: 46, bidi: '\uE017' },
  Home: { virtual: 36, bidi: '\uE011' },
  End: { virtual: 35, bidi: '\uE010' },
  PageUp: { virtual: 33, bidi: '\uE00E' },
  PageDown: { virtual: 34, bidi: '\uE00F' },
  ArrowLeft: { virtual: 37, bidi: '\uE012' },
  ArrowUp: { virtual: 38, bidi: '\uE013' },
  ArrowRight: { virtual: 39, bidi: '\uE014' },
  ArrowDown: { virtual: 40, bidi: '\uE015' },
};

/** The modifier keys. `bit` is for the DevTools protocol. */
const modifiers = {
  Alt: { bit: 1, virtual: 18, bidi: '\uE00A' },
  Control: { bit: 2, virtual: 17, bidi: '\uE009' },
  Meta: { bit: 4, virtual: 91, bidi: '\uE03D' },
  Shift: { bit: 8, virtual: 16, bidi: '\uE008' },
};

/** Splits a description such as "Shift+Tab" into the key and its modifiers. */
export function chord(description) {
  const parts = description === '+' ? ['+'] : description.split('+');
  const last = parts.pop();
  return {
    key: named[last] ? { key: last, code: last, ...named[last] } : character(last),
    held: parts.map((part) => {
      if (!modifiers[part]) throw new Error(`there is no modifier key "${part}" in "${description}"`);
      return { key: part, code: `${part}Left`, ...modifiers[part] };
    }),
  };
}

/** Returns the key that types one character. */
export function character(text) {
  if ([...text].length !== 1) throw new Error(`there is no key "${text}"`);
  if (text === '\n') return { key: 'Enter', code: 'Enter', ...named.Enter };
  const letter = /^[a-z]$/i.test(text);
  const virtual = /^[a-z0-9 ]$/i.test(text) ? text.toUpperCase().charCodeAt(0) : 0;
  return { key: text, code: letter ? `Key${text.toUpperCase()}` : '', virtual, bidi: text, text };
}
