// Computes the share of documented declarations of each Swift target, and checks that it does not fall.
//
//   node scripts/documented.mjs            compares with scripts/documented.json; exit status 1 if a share fell
//   node scripts/documented.mjs --missing [TARGET]   lists the declarations without a documentation comment
//   node scripts/documented.mjs --write    updates scripts/documented.json
//
// A declaration counts if it is `public` or `package`: types, functions, properties, and the cases and requirements of such
// enumerations and protocols. Initializers, operators and the members for coding and printing do not count, because their
// meaning is defined by the language. In some targets, each type of any access must also have a comment that says what it is for.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Members whose meaning is defined by a protocol of the language or of `Wire`'s codec. */
const conventional = new Set([
  'encode', 'fields', 'visit', 'visitWithoutFailing', 'read', 'write', 'readers', 'hash', 'description', 'debugDescription', 'rawValue',
  'CodingKeys', 'next', 'makeIterator', 'errorDescription',
]);

const modifiers = String.raw`(?:(?:static|final|mutating|nonmutating|nonisolated(?:\(unsafe\))?|indirect|class|override|consuming|borrowing|`
  + String.raw`lazy|weak|unowned|distributed|(?:private|fileprivate|internal)\(set\))\s+)*`;
const declaration = new RegExp(
  String.raw`^(\s*)(?:@\w+(?:\([^)]*\))?\s+)*(?:(public|package)\s+)?${modifiers}`
  + String.raw`(func|var|let|struct|enum|class|actor|protocol|typealias|associatedtype|case)\s+` + '`?([A-Za-z_]\\w*)`?');

/** Targets in which each type has a documentation comment. */
const describedTargets = ['AppModel', 'RTC', 'SFU', 'Server'];

const typeDeclaration = new RegExp(
  String.raw`^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private|final|indirect|nonisolated)\s+)*`
  + String.raw`(?:struct|class|enum|actor|protocol)\s+([A-Za-z_]\w*)\b.*[:{]`);

/**
 * Returns the types of one file's text that have no documentation comment.
 * @param {string} source
 * @returns {{ name: string, line: number }[]}
 */
export function undescribedTypes(source) {
  let isDescribed = false;
  return source.split('\n').flatMap((text, index) => {
    const trimmed = text.trim();
    if (trimmed.startsWith('///')) {
      isDescribed = true;
      return [];
    }
    if (/^@\w+(\(.*\))?$/.test(trimmed)) return [];
    const name = typeDeclaration.exec(text)?.[1];
    const found = name && !isDescribed && !conventional.has(name) ? [{ name, line: index + 1 }] : [];
    isDescribed = false;
    return found;
  });
}

/** Words that add nothing to a name. */
const fillers = new Set(
  ['a', 'an', 'the', 'of', 'is', 'are', 'this', 'that', 'its', 'it', 'returns', 'gets', 'whether', 'if', 'true', 'for', 'to', 'value']);

/** Splits a text or a name into words: `lastPacketAt` → `last`, `packet`, `at`. */
function words(text) {
  return text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase().match(/[a-z0-9]+/g) ?? [];
}

/** Returns true if every word of the comment is in the name or is a filler. */
export function repeatsName(comment, name) {
  const known = new Set(words(name).flatMap((word) => [word, `${word}s`, word.replace(/s$/, '')]));
  const added = words(comment).filter((word) => !fillers.has(word) && !known.has(word));
  return words(comment).length > 0 && added.length === 0;
}

/**
 * Returns the declarations in a file's text that count.
 * @param {string} source
 * @returns {{ name: string, line: number, comment: string }[]}
 */
export function declarations(source) {
  const found = [];
  /** The open types: where they are indented, and whether their cases or requirements count. */
  const open = [];
  let comment = [];
  source.split('\n').forEach((text, index) => {
    const trimmed = text.trim();
    if (trimmed.startsWith('///')) {
      comment.push(trimmed.slice(3).trim());
      return;
    }
    // Attributes and plain comments may stand between a declaration and its documentation.
    if (/^@\w+(\(.*\))?$/.test(trimmed) || (trimmed.startsWith('//') && comment.length > 0)) return;
    const indent = text.length - text.trimStart().length;
    while (open.length > 0 && trimmed !== '' && indent <= open.at(-1).indent) open.pop();
    const [, , access, keyword, name] = declaration.exec(text) ?? [];
    if (keyword) {
      const type = open.at(-1);
      const isMember = type !== undefined && indent === type.indent + 4
        && (type.keyword === 'enum' ? keyword === 'case' : keyword !== 'case');
      if ((access || isMember) && !conventional.has(name)) found.push({ name, line: index + 1, comment: comment.join(' ') });
      // Members of a private extension or type are not visible from outside.
      if ((keyword === 'enum' || keyword === 'protocol') && (access || isMember) && trimmed.endsWith('{')) open.push({ indent, keyword });
    }
    comment = [];
  });
  return found;
}

/** Returns the share in percent, rounded down to a tenth. */
export const share = ({ documented, total }) => Math.floor((documented * 1000) / Math.max(total, 1)) / 10;

/**
 * Returns the differences between the current figures and the stored ones.
 * @param {Record<string, { documented: number, total: number }>} today
 * @param {Record<string, number>} kept shares in percent
 */
export function faults(today, kept) {
  return Object.entries(today).flatMap(([target, count]) => {
    const before = kept[target] ?? 0;
    return share(count) >= before ? [] : [
      `${target}: ${share(count)} % of the declarations are documented, ${before} % were. `
      + `"node scripts/documented.mjs --missing ${target}" lists the others.`,
    ];
  });
}

function main() {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const keptPath = join(root, 'scripts/documented.json');
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'Sources/*.swift'], { cwd: root, encoding: 'utf8' })
    .split('\n').filter((file) => file && existsSync(join(root, file)));
  const today = {};
  const problems = [];
  const [option, only] = process.argv.slice(2);
  for (const file of files) {
    const target = file.split('/')[1];
    const count = today[target] ??= { documented: 0, total: 0 };
    const source = readFileSync(join(root, file), 'utf8');
    for (const { name, line } of describedTargets.includes(target) ? undescribedTypes(source) : []) {
      problems.push(`${file}:${line}: no comment says what the type ${name} is for.`);
    }
    for (const { name, line, comment } of declarations(source)) {
      count.total += 1;
      if (comment) count.documented += 1;
      if (comment && repeatsName(comment, name)) problems.push(`${file}:${line}: the comment only repeats the name "${name}".`);
      if (!comment && option === '--missing' && (!only || only === target)) console.log(`${file}:${line}: ${name}`);
    }
  }
  if (option === '--missing') return 0;
  if (option === '--write') {
    const shares = Object.fromEntries(Object.entries(today).sort().map(([target, count]) => [target, share(count)]));
    writeFileSync(keptPath, `${JSON.stringify(shares, null, 2)}\n`);
    for (const [target, count] of Object.entries(today)) console.log(`${target}: ${count.documented} of ${count.total}, ${share(count)} %`);
    return 0;
  }
  problems.push(...faults(today, JSON.parse(readFileSync(keptPath, 'utf8'))));
  for (const problem of problems) console.log(problem);
  return problems.length > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exit(main());
