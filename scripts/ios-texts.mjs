// Finds the texts that the iOS app shows: the literals that SwiftUI looks up in the string catalog.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the Swift files below a folder, sorted by path. */
export function swiftFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.swift'))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** Returns the calls that look up their first argument: types and modifiers that the stand-in declares with a LocalizedStringKey. */
export function localizedCalls(standIn) {
  const calls = new Set();
  let type;
  for (const line of standIn.split('\n')) {
    type = /^(?:public |@\S+ )*(?:extension|struct|enum|class) (\w+)/.exec(line)?.[1] ?? type;
    if (/\binit\(_ \w+: LocalizedStringKey/.test(line)) calls.add(type);
    const modifier = /\bfunc (\w+)(?:<[^(]*>)?\((?:_|named) \w+: LocalizedStringKey/.exec(line)?.[1];
    if (modifier) calls.add(`.${modifier}`);
  }
  return calls;
}

const literal = '"((?:[^"\\\\]|\\\\.)*)"';

/** Returns the texts in one file, with their places. A text with an interpolation is reported as undefined. */
export function textsIn(source, calls) {
  const names = [...calls].map((name) => (name.startsWith('.') ? `\\.${name.slice(1)}` : `(?<![\\w.])${name}`)).join('|');
  const found = [];
  for (const match of source.matchAll(new RegExp(`(?:${names})\\(\\s*(?:named: )?${literal}`, 'g'))) {
    const line = source.slice(0, match.index).split('\n').length;
    const text = match[1].includes('\\(') ? undefined : JSON.parse(`"${match[1]}"`);
    found.push({ line, text });
  }
  return found;
}

/** Returns all texts of the app in this folder. */
export function shownTexts(ios) {
  const calls = localizedCalls(readFileSync(join(ios, 'StandIns/SwiftUI.swiftinterface'), 'utf8'));
  const texts = new Set();
  for (const file of swiftFiles(join(ios, 'Confab'))) {
    for (const { text } of textsIn(readFileSync(file, 'utf8'), calls)) if (text !== undefined) texts.add(text);
  }
  return texts;
}
