// Finds code that the fuzz package lacks, without building it: it links only some files of the server.
//
//   node scripts/fuzz-links.mjs
//
// Prints a line for each declaration that a linked file names and only a file that is not linked has: a type or function at the top
// level, or a type or static member in an extension of a type of a linked file. Members of instances are not found, because other
// types have members of the same name.
import { realpathSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { changeSince } from './checkout.mjs';

const kinds = 'struct|class|enum|protocol|actor|typealias|func|var|let';
const words = '(?:(?:public|package|internal|final|indirect|static|nonisolated) )*';

/** @param {Pick<import('./checkout.mjs').Checkout, 'files' | 'links' | 'read'>} checkout @returns {string[]} sentences */
export function missingFiles({ files, links = new Map(), read }) {
  const places = [...links].filter(([link]) => link.startsWith('Fuzz/Sources/')).map(([, place]) => place);
  const sources = files.filter((file) => file.startsWith('Sources/') && file.endsWith('.swift'));
  const linked = sources.filter((file) => places.some((place) => file === place || file.startsWith(`${place}/`)));
  const texts = new Map(sources.map((file) => [file, withoutTexts(read(file))]));
  const modules = new Set(linked.map((file) => file.split('/')[1]));
  const faults = [];
  for (const module of modules) {
    const here = linked.filter((file) => file.split('/')[1] === module);
    const missing = sources.filter((file) => file.split('/')[1] === module && !here.includes(file));
    const known = new Set(linked.flatMap((file) => names(texts.get(file) ?? '', '[ ]*')));
    const types = new Set(here.flatMap((file) => names(texts.get(file) ?? '', '')));
    /** @type {Map<string, string>} */
    const others = new Map();
    for (const file of missing) for (const name of declared(texts.get(file) ?? '', types)) others.set(name, file);
    for (const file of here) {
      for (const name of new Set((texts.get(file) ?? '').match(/\b[A-Za-z]\w*/g))) {
        const other = others.get(name);
        if (other && !known.has(name)) faults.push(`${file} uses ${name} of ${other}, which Fuzz/Sources/${module} does not link.`);
      }
    }
  }
  return faults;
}

/** @param {string} text */
function withoutTexts(text) {
  // In one pass, because a string can contain `//`, and a comment a quotation mark.
  return text.replace(
    /"""[^]*?"""|\/\/.*$|"(?:\\\((?:[^()\n]|\([^()\n]*\))*\)|\\.|[^"\\\n])*"/gm, (found) => (found.startsWith('/') ? '' : '""'),
  );
}

/** Returns the names that are declared with this indentation. @param {string} text @param {string} indentation */
function names(text, indentation) {
  const pattern = new RegExp(`^${indentation}(?:@\\S+ )*(?:(?:private|fileprivate|mutating) )*${words}(?:${kinds}|case) (\\w+)`, 'gm');
  return [...text.matchAll(pattern)].map(([, name]) => name);
}

/** Returns the names that other files can use without an instance. @param {string} text @param {Set<string>} types */
function declared(text, types) {
  const found = [...text.matchAll(new RegExp(`^(?:@\\S+ )*${words}(?:${kinds}) (\\w+)`, 'gm'))].map(([, name]) => name);
  for (const [, type, body] of text.matchAll(/^(?:\w+ )?extension (\w+)[^\n]*\{\n([^]*?)^\}/gm)) {
    if (!types.has(type)) continue;
    for (const [, kind, name] of body.matchAll(new RegExp(`^ {4}(?:@\\S+ )*(${words}(?:${kinds})) (\\w+)`, 'gm'))) {
      if (/\bstatic\b|(struct|class|enum|actor|typealias)$/.test(kind)) found.push(name);
    }
  }
  return found;
}

// Do nothing when a test imports this module.
const started = process.argv[1];
if (started && realpathSync(started) === fileURLToPath(import.meta.url)) {
  const faults = missingFiles(changeSince('HEAD'));
  for (const fault of faults) process.stdout.write(`${fault}\n`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
