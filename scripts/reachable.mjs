// Checks that an app for Apple platforms can depend on the SDK: the products for apps must not reach, in this package, any target
// with unsafe flags or C code, or any system library. Xcode 16 rejects such a dependency.
//
//   node scripts/reachable.mjs      prints the forbidden targets that are reached, and the path to each
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { targetsOf } from './affected.mjs';
import { dumpPackage, root } from './checkout.mjs';

/** The products that an app may depend on. `ConfabHeadless` is for Linux, and needs OpenSSL. */
export const products = ['Confab', 'ConfabUI', 'OpenTokCompat', 'AppModel'];

/**
 * Returns a sentence for each forbidden target that a product reaches.
 *
 * @param {{products: any[], targets: any[]}} dump the output of `swift package dump-package`
 * @param {(folder: string) => boolean} hasC whether there is C code in the folder of a target
 * @returns {string[]}
 */
export function faults(dump, hasC) {
  const targets = new Map(targetsOf(dump).map((target) => [target.name, target]));
  const settings = new Map(dump.targets.map(({ name, settings: list = [] }) => [name, list]));
  /** @param {import('./affected.mjs').Target} target */
  const whatIsWrong = ({ name, type, folder }) => {
    if (type === 'system') return 'is a system library';
    if (settings.get(name).some((/** @type {any} */ { kind }) => 'unsafeFlags' in kind)) return 'has unsafe flags';
    return hasC(folder) ? 'has C code' : null;
  };
  return products.flatMap((product) => {
    const own = dump.products.find(({ name }) => name === product);
    if (!own) return [`There is no product ${product}.`];
    /** @type {Map<string, string[]>} the path to each target */
    const ways = new Map(own.targets.map((/** @type {string} */ name) => [name, [name]]));
    // Iterating a Map also visits what was added during the loop.
    for (const [name, way] of ways) {
      for (const next of targets.get(name)?.dependencies ?? []) if (!ways.has(next)) ways.set(next, [...way, next]);
    }
    return [...ways].flatMap(([name, way]) => {
      const target = targets.get(name);
      const wrong = target && whatIsWrong(target);
      return wrong ? [`The product ${product} must not need ${name}, which ${wrong}: ${way.join(' → ')}`] : [];
    });
  });
}

/** @param {string} folder of a target @returns {boolean} */
function hasC(folder) {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return files.some((file) => /\.(c|cc|cpp|cxx|m|mm|s|S|h|modulemap)$/.test(file));
}

const started = process.argv[1];
if (started && realpathSync(started) === fileURLToPath(import.meta.url)) {
  const found = faults(dumpPackage(), hasC);
  for (const fault of found) process.stdout.write(`${fault}\n`);
  process.exitCode = found.length > 0 ? 1 : 0;
}
