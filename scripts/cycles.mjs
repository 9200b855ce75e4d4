// Counts how many types of a Swift target need each other, from the source text, and checks that no folder needs a folder of a
// higher floor. Prints what is not allowed; exit status 1 if there is anything.
//
//   node scripts/cycles.mjs            checks the targets below
//   node scripts/cycles.mjs TARGET     lists every cycle of a target, with the place of each reference in it
//
// A type needs another if its declaration, its nested types or its extensions name the other, in a signature or in a body. A nested
// type counts as the type around it. Uses of free functions, and of types that are only inferred, are not found.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The largest number of types in one cycle, for each target. */
const largest = { Signaling: 2, Server: 6 };

/**
 * The folders of a target by floor, the lowest first. A file may name only types of its floor and of lower ones. `.`
 * stands for the target's folder itself.
 */
const floors = {
  Signaling: [
    ['Letters'], ['LetterCoding'], ['.', 'Tokens'],
    ['Archives', 'Broadcasts', 'Calls', 'Clients', 'Compositions', 'Guests', 'Operators', 'People', 'Presence', 'Rooms', 'Roulette', 'Samples', 'Sessions'], ['Hub'],
  ],
};

/** Replaces comments and the text of string literals by spaces, but keeps interpolated code. @param {string} source */
export function bare(source) {
  const blank = (/** @type {string} */ text) => text.replace(/[^\n]/g, ' ');
  return source.replace(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|"""[\s\S]*?"""|"(?:\\\((?:[^()]|\([^()]*\))*\)|\\.|[^"\\\n])*"/g, (text) => {
    if (text[0] !== '"') return blank(text);
    let kept = 0;
    return [...text.matchAll(/\\\(((?:[^()]|\([^()]*\))*)\)/g)].reduce((all, part) => {
      const whole = all + blank(text.slice(kept, part.index)) + part[0].replace('\\', ' ');
      kept = part.index + part[0].length;
      return whole;
    }, '') + blank(text.slice(kept));
  });
}

const declaration = /\b(struct|class|enum|actor|protocol|extension|typealias)\s+([A-Z]\w*)((?:\.\w+)*)/g;

/**
 * Returns the outermost declarations and extensions of a file.
 * @param {string} source
 * @returns {{ keyword: string, name: string, text: string, line: number }[]}
 */
export function blocks(source) {
  const text = bare(source);
  const found = [];
  let depth = 0;
  let start = 0;
  for (const { 0: part, 1: keyword, 2: name, index } of text.matchAll(new RegExp(`[{}]|${declaration.source}`, 'g'))) {
    if (part === '{') depth += 1;
    else if (part === '}') depth -= 1;
    else if (depth === 0) found.push({ keyword, name, start: index });
    start = index;
  }
  return found.map((block, index) => ({
    keyword: block.keyword,
    name: block.name,
    text: text.slice(block.start, found[index + 1]?.start ?? start + 1),
    line: text.slice(0, block.start).split('\n').length,
  }));
}

/**
 * Returns the path of each outermost type, and for each outermost declaration the types that it names, with the places
 * of these names.
 * @param {Map<string, string>} sources
 */
function parts(sources) {
  const found = [...sources].flatMap(([path, source]) => blocks(source).map((block) => ({ ...block, path })));
  const types = new Map(found.filter(({ keyword }) => keyword !== 'extension').map(({ name, path }) => [name, path]));
  /** For each type, the names that are not references in it: its own and those of its nested types. @type {Map<string, Set<string>>} */
  const own = new Map(found.map(({ name }) => [name, new Set()]));
  for (const { name, text } of found) for (const [, , nested] of text.matchAll(declaration)) own.get(name)?.add(nested);
  const named = found.map(({ name, path, text, line }) => ({
    name,
    path,
    // Skip a name after a dot: it is nested in the type before the dot, which is found itself.
    others: [...text.matchAll(/(?<![.\w])[A-Z]\w*/g)].filter(([other]) => types.has(other) && !own.get(name)?.has(other)).map(
      ({ 0: other, index }) => ({ other, place: `${path}:${line + text.slice(0, index).split('\n').length - 1}` })),
  }));
  return { types, named };
}

/**
 * Returns, for each type, the types that it names, with the place of the first such name.
 * @param {Map<string, string>} sources
 * @returns {Map<string, Map<string, string>>}
 */
export function references(sources) {
  const { types, named } = parts(sources);
  const graph = new Map([...types.keys()].map((name) => [name, new Map()]));
  for (const { name, others } of named) {
    for (const { other, place } of others) {
      const edges = graph.get(name);
      if (edges && !edges.has(other)) edges.set(other, place);
    }
  }
  return graph;
}

/**
 * Returns a sentence for each place that names a type of a higher floor, and for each file that is on no floor.
 * @param {Map<string, string>} sources by path in the target
 * @param {string[][]} levels
 */
export function climbs(sources, levels) {
  const { types, named } = parts(sources);
  const floor = (/** @type {string} */ path) => {
    const folder = path.includes('/') ? path.split('/')[0] : '.';
    return levels.findIndex((folders) => folders.includes(folder));
  };
  return named.flatMap(({ path, others }) => [
    ...(floor(path) < 0 ? [`${path} is on no floor.`] : []),
    ...others.filter(({ other }) => floor(types.get(other) ?? '') > floor(path))
      .map(({ other, place }) => `${place} names ${other}, which is on a higher floor.`),
  ]);
}

/**
 * Returns the cycles of a graph, the largest first. Each is a list of types that can all reach each other.
 * @param {Map<string, Map<string, string>>} graph
 * @returns {string[][]}
 */
export function cycles(graph) {
  /** @type {string[][]} */
  const found = [];
  const numbers = new Map();
  const lows = new Map();
  /** @type {string[]} */
  const stack = [];
  const visit = (/** @type {string} */ name) => {
    numbers.set(name, numbers.size);
    lows.set(name, numbers.get(name));
    stack.push(name);
    for (const other of graph.get(name)?.keys() ?? []) {
      if (!numbers.has(other)) visit(other);
      if (stack.includes(other)) lows.set(name, Math.min(lows.get(name), lows.get(other)));
    }
    if (lows.get(name) !== numbers.get(name)) return;
    const group = stack.splice(stack.indexOf(name));
    if (group.length > 1) found.push(group.sort());
  };
  for (const name of graph.keys()) if (!numbers.has(name)) visit(name);
  return found.sort((left, right) => right.length - left.length || (left[0] < right[0] ? -1 : 1));
}

function main() {
  const root = fileURLToPath(new URL('..', import.meta.url));
  /** Returns the texts of a target's files, keyed by their paths in the target's folder. */
  const read = (/** @type {string} */ target) => {
    const folder = `Sources/${target}/`;
    const paths = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', `${folder}*.swift`], { cwd: root, encoding: 'utf8' });
    const files = paths.split('\n').filter((path) => path !== '' && existsSync(join(root, path)));
    return new Map(files.map((path) => [path.slice(folder.length), readFileSync(join(root, path), 'utf8')]));
  };
  const faults = [];
  const [shown] = process.argv.slice(2);
  for (const [target, most] of Object.entries(shown ? { [shown]: 1 } : largest)) {
    const graph = references(read(target));
    for (const group of cycles(graph).filter(({ length }) => length > most)) {
      faults.push(`${target}: ${group.length} types need each other: ${group.join(', ')}.`);
      for (const name of group) {
        const edges = [...graph.get(name) ?? []].filter(([other]) => group.includes(other));
        faults.push(...edges.map(([other, place]) => `  ${name} needs ${other}: ${place}`));
      }
    }
  }
  if (!shown) faults.push(...Object.entries(floors).flatMap(([target, levels]) => climbs(read(target), levels).map((text) => `${target}: ${text}`)));
  for (const fault of faults) console.log(fault);
  if (!shown && faults.length > 0) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
