// Prints text for judging the project's English: a sample of comments, and every text that users see.
//
//   node scripts/reading-sample.mjs comments [SEED]   100 comments; the seed is the current commit unless given
//   node scripts/reading-sample.mjs errors            sentences of errors, close reasons and refusals
//   node scripts/reading-sample.mjs interface         texts of the pages, command-line help and settings

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
const files = (...patterns) => git('ls-files', '--', ...patterns).split('\n').filter(Boolean);
const text = (file) => readFileSync(`${root}/${file}`, 'utf8');
const at = (file, source, index) => `${file}:${source.slice(0, index).split('\n').length}`;

/** Returns the comments of a file. Comment lines that follow each other are one comment. */
function comments(file) {
  const found = [];
  let block = [];
  let start = 0;
  const end = () => {
    const words = block.join(' ').trim();
    if (words.split(/\s+/).length > 3 && !/^(MARK|swift-|@ts-|SPDX)/.test(words)) found.push(`${file}:${start}: ${words}`);
    block = [];
  };
  text(file).split('\n').forEach((line, index) => {
    const match = /^\s*(?:\/\/\/?|\/\*\*|\*(?!\/))\s?(.*?)(?:\*\/)?\s*$/.exec(line);
    if (!match) return end();
    if (block.length === 0) start = index + 1;
    block.push(match[1]);
  });
  end();
  return found;
}

/** Sorts the values by a hash of each with the seed, so that the order is reproducible but arbitrary. */
function shuffled(values, seed) {
  const key = (value) => createHash('sha256').update(`${seed}\n${value}`).digest('hex');
  return values.map((value) => [key(value), value]).sort(([left], [right]) => (left < right ? -1 : 1)).map(([, value]) => value);
}

/**
 * Returns each match of a pattern: its place, and the text of group 1. A Swift string may continue with `+` on the
 * next line.
 */
function matches(patterns, pattern) {
  return files(...patterns).flatMap((file) => {
    const source = text(file).replace(/"\s*\+\s*"/g, '');
    return [...source.matchAll(pattern)].map((match) => `${at(file, source, match.index)}: ${match[1].replace(/\s+/g, ' ').trim()}`);
  });
}

const literal = '"((?:[^"\\\\]|\\\\.)*)"';
const printers = {
  comments(seed = git('rev-parse', 'HEAD')) {
    const all = files('Sources/*.swift', 'web/lib/*.js', 'web/app/*.js', 'Tests/*.swift', 'Benchmarks/*.swift', 'Fuzz/*.swift').flatMap(comments);
    console.log(`# 100 of ${all.length} comments, seed ${seed}`);
    return shuffled(all, seed).slice(0, 100);
  },
  errors: () => [
    ...matches(['Sources/*.swift'], new RegExp(`(?:WireError|StorageError)\\(\\s*\\.?\\w+,\\s*${literal}`, 'g')),
    ...matches(['Sources/*.swift'], new RegExp(`(?:DataDirectoryError|ConfigurationError|CommandError|ValidationError|RobotError|refusal)\\((?:\\d+, )?\\s*${literal}`, 'g')),
    ...matches(['Sources/*.swift'], new RegExp(`\\.close\\([^"\\n]*${literal}`, 'g')),
    ...matches(['web/lib/*.js'], /(?:fault|fail|Error|error)\([^'`\n]*(?:['`][\w.]+['`],\s*)?['`]([A-Z][^'`]*\s[^'`]*)['`]/g),
  ],
  interface: () => [
    ...matches(['web/app/*.html'], />\s*([^<>{}]*[a-zA-Z]{2}[^<>{}]*?)\s*</g),
    ...matches(['web/app/*.html'], /(?:aria-label|title|placeholder|alt|content)="([^"]*[a-zA-Z]{2}[^"]*)"/g),
    ...matches(['web/app/*strings.js', 'web/app/*/strings.js', 'web/app/sw.js', 'web/app/try/*.js'], /['`]([A-Z][^'`\n]*)['`]/g),
    ...matches(['Sources/Command/*.swift'], new RegExp(`(?:help|abstract|discussion):\\s*\\.?(?:init\\(\\s*)?${literal}`, 'g')),
    ...matches(['Sources/Server/Configuration/*.swift'], new RegExp(`"[a-zA-Z.]+", \\\\[^"]*${literal}`, 'g')),
  ],
};

const [what, seed] = process.argv.slice(2);
if (!(what in printers)) {
  console.error('Usage: node scripts/reading-sample.mjs comments [SEED] | errors | interface');
  process.exit(2);
}
for (const line of printers[what](seed)) console.log(line);
