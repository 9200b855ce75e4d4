// Prints the fuzz targets whose code a change touches, for `scripts/fuzz --changed`.
//
//   node scripts/fuzz-changed.mjs [BASE]
//
// Prints one name per line. A target uses a source file if the target's own file names a type or function that the
// source file declares or extends. It also uses every file that this source file uses. If in doubt, a target is
// included.
import { realpathSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { changeSince, exists, usualBase } from './checkout.mjs';

const targetFolder = 'Fuzz/Sources/FuzzTargets/';

/** @param {import('./checkout.mjs').Checkout} checkout @returns {string[]} the names of the targets */
export function touchedTargets({ changed, files, links = new Map(), read }) {
  const isHowTheyRun = changed.some((file) => /^(scripts\/fuzz|Fuzz\/Package\.swift|Fuzz\/Sources\/fuzz\/.*)$/.test(file));
  // In the fuzz package, the code under test consists of symbolic links.
  const places = [targetFolder, ...[...links].filter(([link]) => link.startsWith('Fuzz/Sources/')).map(([, place]) => place)];
  const sources = files.filter((file) => file.endsWith('.swift') && places.some((place) => file.startsWith(place)));
  const texts = new Map(sources.map((file) => [file, withoutComments(read(file))]));
  const declaring = declarations(texts);
  const uses = new Map([...texts].map(([file, text]) => [file, filesNamed(file, text, declaring)]));
  const changes = new Set(changed);
  const touched = [];
  for (const file of sources.filter((source) => source.startsWith(targetFolder))) {
    const isReached = [...reached(file, uses)].some((source) => changes.has(source));
    for (const { name, dictionary, seeds } of targetsIn(texts.get(file) ?? '')) {
      const inputs = [`Fuzz/Corpora/${name}/`, `Fuzz/Findings/${name}/`, ...seeds.map((seed) => `${seed}/`)];
      const isFed = changed.some((path) => path === `Fuzz/Dictionaries/${dictionary}.dict`
        || inputs.some((folder) => path.startsWith(folder)));
      if (isHowTheyRun || isReached || isFed) touched.push(name);
    }
  }
  return touched;
}

/** @param {string} text */
function withoutComments(text) {
  return text.replace(/\/\/.*$/gm, '');
}

/**
 * Maps each name to the files that declare or extend it at their top level. Nested names are too often the same. Extensions of
 * types from other modules are left out, and so is the type that the file of every target extends.
 *
 * @param {Map<string, string>} texts
 */
function declarations(texts) {
  const pattern = /^(?:@\S+ )*(?:(?:public|package|internal|final|indirect) )*(struct|class|enum|protocol|actor|typealias|extension|func) (\w+)/gm;
  const found = [...texts].flatMap(([file, text]) => [...text.matchAll(pattern)].map(([, kind, name]) => ({ file, kind, name })));
  const ours = new Set(found.filter(({ kind }) => kind !== 'extension').map(({ name }) => name));
  ours.delete('FuzzTarget');
  /** @type {Map<string, Set<string>>} */
  const declaring = new Map();
  for (const { file, name } of found) {
    if (ours.has(name)) declaring.set(name, (declaring.get(name) ?? new Set()).add(file));
  }
  return declaring;
}

/**
 * For some modules, the modules whose declarations they can use. An equal name in another module is another
 * declaration.
 */
const imports = new Map([
  ['Wire', ['Wire']], ['Cluster', ['Cluster']], ['Signaling', ['Wire', 'Cluster', 'Signaling']], ['RTC', ['RTC']], ['MediaFiles', ['Wire', 'RTC', 'MediaFiles']], ['Layout', ['Layout']], ['LiveComposing', ['Wire', 'Layout', 'LiveComposing']],
  ['Broadcasting', ['Wire', 'MediaFiles', 'Broadcasting']], ['Redis', ['Wire', 'Redis']],
]);

/** @param {string} file @param {string} text @param {Map<string, Set<string>>} declaring */
function filesNamed(file, text, declaring) {
  const allowed = imports.get(file.split('/')[1]);
  const named = [...new Set(text.match(/\w+/g))].flatMap((word) => [...declaring.get(word) ?? []]);
  return new Set(named.filter((other) => !allowed || allowed.includes(other.split('/')[1])));
}

/** @param {string} from @param {Map<string, Set<string>>} uses */
function reached(from, uses) {
  const found = new Set([from]);
  for (const file of found) for (const next of uses.get(file) ?? []) found.add(next);
  return found;
}

/** Returns the targets that a file declares. @param {string} text */
function targetsIn(text) {
  return [...text.matchAll(/\bFuzzTarget\(\s*"([\w-]+)"([^{]*)/g)].map(([, name, rest]) => ({
    name,
    dictionary: /dictionary: "([\w-]+)"/.exec(rest)?.[1],
    seeds: [.../seeds: \[([^\]]*)\]/.exec(rest)?.[1].matchAll(/"([^"]+)"/g) ?? []].map(([, seed]) => seed),
  }));
}

/** @param {string[]} args @returns {number} the exit status */
function main([base = usualBase()]) {
  if (!exists(base)) {
    process.stderr.write(`There is no revision "${base}" here.\n`);
    return 2;
  }
  for (const name of touchedTargets(changeSince(base))) process.stdout.write(`${name}\n`);
  return 0;
}

// Do nothing when a test imports this module.
const started = process.argv[1];
if (started && realpathSync(started) === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));
