// Says which tests a change can reach; `scripts/test --changed` runs those.
//
//   node scripts/affected.mjs [--base REV]
//
// Changed is what differs from the commit where this branch left REV: in commits, not committed yet, or new and not ignored.
// A renamed file counts under both names. Without --base, REV is main; on main itself it is origin/main; where there is
// neither, only what is not committed counts.
//
// Prints a line for each test, "swift", "web" or "browser" before a tab, and a summary to stderr.
//
// When in doubt, a test is included. Whatever a source file has in quotes and is the path of a file or a folder counts as a use of
// it: an import, a page's style sheet, a file that a test reads. What nothing uses, such as a document, reaches nothing.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { posix as path } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { changeSince, exists, root, usualBase } from './checkout.mjs';

/**
 * @typedef {object} Target of the Swift package
 * @property {string} name
 * @property {string} type such as `test`, `plugin` or `executable`
 * @property {string} folder
 * @property {string[]} dependencies other targets and plugins of the package
 */

/** @typedef {import('./checkout.mjs').Checkout & {targets: Target[]}} Change */

/** @typedef {{swift: string[], web: string[], browser: string[]}} Tests targets of the Swift package, and files */

/** How all tests are run. */
const everything = /^scripts\/(test|environment|steps)$/;
/** What the whole package is built by. */
const manifest = /^Package(@[^/]*)?\.(swift|resolved)$/;
/** What tells node how to read the scripts beneath it. */
const nodeManifest = /(^|\/)package\.json$/;
/** What no browser test runs without. */
const browserSetup = /^scripts\/browser-(setup|tests)$/;
/** What the executable carries; `Plugins/EmbedWeb` has the same folders. */
const embedded = /^web\/(app|lib|socket\.io)\//;
/** Where the server says which address has which page. */
const routing = /^Sources\/Server\/Gateway\/[^/]+\.swift$/;
/** The target that the browser tests start. */
const executable = 'Command';

/** The same files that `scripts/test` runs. @param {Pick<Change, 'targets' | 'files'>} change @returns {Tests} */
export function allTests({ targets, files }) {
  return {
    swift: targets.filter(({ type }) => type === 'test').map(({ name }) => name),
    web: files.filter((file) => /^web\/test\/unit[^/]*\/(.*\/)?[^/]*\.test\.[^/]*js$/.test(file)).sort(),
    browser: files.filter((file) => /^web\/test\/browser\/[^/]+\.test\.mjs$/.test(file)).sort(),
  };
}

/** The tests that a change can reach. @param {Change} change @returns {Tests} */
export function affected({ targets, ...change }) {
  const checkout = new Checkout(change);
  const all = allTests({ targets, files: change.files });
  const has = (/** @type {RegExp} */ pattern) => [...checkout.changed].some((file) => pattern.test(file));
  if (has(everything)) return all;

  const known = withExecutable(checkout, targets);
  const reached = reachedTargets(checkout, known);
  const readers = has(embedded) ? pageTests(known) : [];
  const isReached = (/** @type {string} */ test) => browserReached(checkout, test, reached.has(executable));
  return {
    swift: has(manifest) ? all.swift : all.swift.filter((name) => reached.has(name) || readers.includes(name)),
    web: has(nodeManifest) ? all.web : all.web.filter((test) => checkout.touches([test])),
    browser: [manifest, nodeManifest, browserSetup].some(has) ? all.browser : all.browser.filter(isReached),
  };
}

/** The files of a checkout, and which of them use which. */
class Checkout {
  /** Each path, also through links, and the path of the same file without them. @type {Map<string, string>} */
  #places = new Map();
  /** @type {Map<string, string[]>} */
  #folders = new Map();
  /** @type {Map<string, string[]>} */
  #uses = new Map();
  /** @type {Change['read']} */
  #read;

  /** @param {Omit<Change, 'targets'>} change */
  constructor({ changed, files, links = new Map(), read }) {
    const places = (/** @type {string} */ file) => [file, ...[...links]
      .filter(([, to]) => file === to || file.startsWith(`${to}/`))
      .map(([link, to]) => link + file.slice(to.length))];
    this.#read = read;
    this.changed = new Set(changed.flatMap(places));
    // Deleted files count: other files may still refer to them.
    for (const file of new Set([...files, ...changed])) for (const place of places(file)) this.#add(place, file);
    /** The files at the server's addresses. @type {Map<string, string>} */
    this.routes = new Map(files.filter((file) => routing.test(file)).flatMap((file) => routesIn(this.text(file))));
  }

  /** @param {string} place @param {string} file */
  #add(place, file) {
    this.#places.set(place, file);
    for (let folder = path.dirname(place); folder !== '.'; folder = path.dirname(folder)) {
      if (!this.#folders.has(folder)) this.#folders.set(folder, []);
      this.#folders.get(folder)?.push(place);
    }
  }

  /** Everything beneath it. @param {string} folder */
  inside(folder) {
    return this.#folders.get(folder) ?? [];
  }

  /** The text of a file without the comments that have lines of their own. @param {string} file */
  text(file) {
    return this.#read(this.#places.get(file) ?? file).replace(/^\s*\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
  }

  /** What a file names, as far as it is here. @param {string} file @returns {string[]} */
  uses(file) {
    const known = this.#uses.get(file);
    if (known) return known;
    const isSource = /\.(m?js|html|css|svg|webmanifest|swift|py)$/.test(file);
    const names = isSource ? namesIn(file, this.text(file)) : [];
    const found = [...new Set(names.flatMap((name) => this.#find(file, name)))];
    this.#uses.set(file, found);
    return found;
  }

  /** @param {string} from @param {string} name @returns {string[]} */
  #find(from, name) {
    // Nearly everything lies beneath the folders above a file: they are where a longer path begins.
    if (/^[./]*$/.test(name)) return [];
    const beside = path.join(path.dirname(from), name);
    let paths = [beside];
    if (name.startsWith('/')) {
      const route = this.routes.get(name);
      // An address of the server's, unless it is the server's own code that handles it. A link to a page does not load it.
      const served = from.endsWith('.swift') ? [] : [`web${name}`, ...(route && !route.endsWith('.html') ? [route] : [])];
      paths = [...served, name.slice(1)];
    } else if (!name.startsWith('.')) {
      paths = [beside, name];
    }
    return paths.map((each) => each.replace(/\/$/, '')).flatMap((each) => {
      if (this.#places.has(each)) return [each];
      // A single word is rarely a folder.
      return name.includes('/') ? this.inside(each) : [];
    });
  }

  /** Whether something changed among these and all that they use, directly or not. @param {string[]} files */
  touches(files) {
    const seen = new Set(files);
    for (const file of seen) {
      if (this.changed.has(file)) return true;
      for (const used of this.uses(file)) seen.add(used);
    }
    return false;
  }
}

/**
 * What could be paths in a text: all in quotes, up to where a value is inserted, a query or a fragment begins; and words in a
 * row as `path.join` takes them. What comes after an inserted value could be the rest of an address.
 *
 * @param {string} file @param {string} text @returns {string[]}
 */
function namesIn(file, text) {
  if (file.endsWith('.py')) return [...text.matchAll(/^\s*(?:from|import) +(\w+)/gm)].map(([, name]) => `./${name}.py`);
  // `import('./types.js').State` is a type, which nothing loads.
  const quoted = text.matchAll(/['"`})(]((?:\.{0,2}\/)?[\w.@-][\w./@-]*)(?=['"`$?#\\)])(?!['"]\)\.[A-Z])/g);
  const rows = text.matchAll(/'[\w.@-]+'(?:, '[\w.@-]+')+/g);
  return [...[...quoted].map(([, name]) => name), ...[...rows].map(([row]) => row.slice(1, -1).split("', '").join('/'))];
}

/** Addresses and files that stand in one line. @param {string} text @returns {[string, string][]} */
function routesIn(text) {
  return [...text.matchAll(/"(\/[^"\n]*)"(?=[^\n]*"(app\/[^"\n]+)")/g)].map(([, address, file]) => [address, `web/${file}`]);
}

/** Those that `swift package dump-package` tells of. @param {{targets: any[]}} dump @returns {Target[]} */
export function targetsOf({ targets }) {
  const own = new Set(targets.map(({ name }) => name));
  const parents = new Map([['test', 'Tests'], ['plugin', 'Plugins']]);
  return targets.map(({ name, type, path: folder, dependencies, pluginUsages = [] }) => ({
    name, type, folder: folder ?? `${parents.get(type) ?? 'Sources'}/${name}`,
    // Each is `{byName: [name, condition]}`, `{product: [name, package, …]}` or the like.
    dependencies: [...dependencies, ...pluginUsages].map((each) => Object.values(each)[0][0]).filter((each) => own.has(each)),
  }));
}

/**
 * Tests that look for the executable run it, and Package.swift does not say so.
 *
 * @param {Checkout} checkout @param {Target[]} targets @returns {Target[]}
 */
function withExecutable(checkout, targets) {
  return targets.map((target) => {
    const sources = target.type === 'test' ? checkout.inside(target.folder).filter((file) => file.endsWith('.swift')) : [];
    const runs = sources.some((file) => checkout.text(file).includes('"CONFAB_BINARY"'));
    return runs ? { ...target, dependencies: [...target.dependencies, executable] } : target;
  });
}

/** The targets that changed, and those that depend on them. @param {Checkout} checkout @param {Target[]} targets */
function reachedTargets(checkout, targets) {
  /** @type {Set<string>} */
  const reached = new Set();
  for (const file of checkout.changed) {
    if (file.endsWith('.md')) continue;
    const owner = targets.find(({ folder }) => file.startsWith(`${folder}/`));
    if (owner) reached.add(owner.name);
    // A target that this package does not have, or has no more.
    else if (/^(Sources|Tests|Plugins)\//.test(file)) for (const { name } of targets) reached.add(name);
  }
  for (const { name, folder } of targets) {
    const sources = checkout.inside(folder).filter((file) => file.endsWith('.swift'));
    if (sources.some((file) => checkout.uses(file).some((used) => checkout.changed.has(used)))) reached.add(name);
  }
  // Iterating a Set also visits members added during the loop.
  for (const name of reached) {
    for (const target of targets) if (target.dependencies.includes(name)) reached.add(target.name);
  }
  return reached;
}

/**
 * Those that see a changed page. It is compiled into the target that the plugin serves, and all that depends on this target is
 * built again; but only its own tests ask for pages, and those that attack the executable. To all others a page is text that
 * they never ask for.
 *
 * @param {Target[]} targets @returns {string[]}
 */
function pageTests(targets) {
  const plugins = targets.filter(({ type }) => type === 'plugin').map(({ name }) => name);
  const carriers = targets.filter(({ dependencies }) => dependencies.some((name) => plugins.includes(name)));
  const own = carriers.map(({ name }) => `${name}Tests`);
  const asking = targets.filter(({ name, dependencies }) => own.includes(name) || dependencies.includes(executable));
  return asking.map(({ name }) => name);
}

/** @param {Checkout} checkout @param {string} test @param {boolean} isServerReached other than by its pages */
function browserReached(checkout, test, isServerReached) {
  if (checkout.touches([test])) return true;
  const pieces = piecesOf(checkout, test);
  // Tests of the tests start no server, or a stand-in.
  if (!pieces.some((piece) => /(?<!function )\bstartServer\((?!\{ binary\b)/.test(piece))) return false;
  return isServerReached || checkout.touches(pagesIn(checkout, pieces));
}

/** The pages that are opened. @param {Checkout} checkout @param {string[]} pieces @returns {string[]} */
function pagesIn(checkout, pieces) {
  const addresses = pieces.flatMap((piece) => [...piece.matchAll(/\.goto\(([^;]*)/g)]).map(([, argument]) => {
    const [given] = /\/[\w./-]*/.exec(argument.replace(/\$\{[^}]*\}/g, '')) ?? [];
    // Only a server's name, with at most a query after it.
    return given ?? (/`|\burl\b/.test(argument) ? '/' : 'anywhere');
  });
  return [...new Set(addresses)].flatMap((address) => {
    const page = checkout.routes.get(address);
    return page ? [page] : checkout.inside('web/app').filter((file) => file.endsWith('.html'));
  });
}

/**
 * What can run in a test: its own file, and of each module what is imported by name, and what that uses. Whole modules would
 * not do: the one that starts the server for every test also opens the front page for some.
 *
 * @param {Checkout} checkout @param {string} test @returns {string[]}
 */
function piecesOf(checkout, test) {
  /** @type {Map<string, ReturnType<typeof moduleOf>>} */
  const modules = new Map();
  /** @type {Set<{text: string}>} */
  const found = new Set();
  const visit = (/** @type {string} */ file, /** @type {string | undefined} */ name) => {
    const module = modules.get(file) ?? moduleOf(file, checkout.text(file));
    modules.set(file, module);
    for (const piece of module.pieces) {
      // What has no name runs whenever the module is loaded.
      if (found.has(piece) || (name && piece.name && piece.name !== name)) continue;
      found.add(piece);
      for (const word of new Set(piece.text.match(/\w+/g))) {
        if (module.names.has(word)) visit(file, word);
        const source = module.imports.get(word);
        if (source) visit(source.file, source.name);
      }
      for (const [, whole] of piece.text.matchAll(/(?:\bimport\s*\(?|^export [{*][^'"]*from)\s*['"](\.[^'"]+)/gm)) {
        visit(path.join(path.dirname(file), whole), undefined);
      }
    }
  };
  visit(test, undefined);
  return [...found].map(({ text }) => text);
}

/** A module, cut wherever a line begins with a word. @param {string} file @param {string} text */
function moduleOf(file, text) {
  /** Without a name it is the whole module. @type {Map<string, {file: string, name?: string}>} */
  const imports = new Map();
  for (const [, clause, from] of text.matchAll(/^import\s+([^'"]*?)\s+from\s+['"](\.[^'"]+)/gm)) {
    for (const item of clause.match(/[\w*]+(\s+as\s+\w+)?/g) ?? []) {
      const [name, local = name] = item.split(/\s+as\s+/);
      imports.set(local, { file: path.join(path.dirname(file), from), name: clause.startsWith('{') ? name : undefined });
    }
  }
  const pieces = text.split(/^(?=\w)/m).filter((piece) => !/^import\s[^'"(]*from/.test(piece)).map((piece) => ({
    name: /^(?:export )?(?:default )?(?:async )?(?:function\*?|class|const|let|var) (\w+)/.exec(piece)?.[1], text: piece,
  }));
  return { imports, pieces, names: new Set(pieces.map(({ name }) => name)) };
}

/** The package's targets. With a folder of its own, SwiftPM waits for no build that runs. @returns {Target[]} */
function packageTargets() {
  const scratch = mkdtempSync(path.join(tmpdir(), 'confab-affected-'));
  const args = ['package', 'dump-package', '--package-path', root, '--scratch-path', scratch];
  try {
    return targetsOf(JSON.parse(execFileSync('swift', args, { encoding: 'utf8', maxBuffer: 2 ** 28 })));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** @param {string[]} args @returns {number} the exit status */
function main(args) {
  const isUnderstood = args.length === 0 || (args.length === 2 && args[0] === '--base');
  const base = args[1] ?? usualBase();
  if (!isUnderstood || !exists(base)) {
    process.stderr.write(`${isUnderstood ? `There is no revision "${base}" here.` : 'Usage: node scripts/affected.mjs [--base REV]'}\n`);
    return 2;
  }
  const change = { ...changeSince(base), targets: packageTargets() };
  const tests = affected(change);
  for (const [stage, names] of Object.entries(tests)) for (const name of names) process.stdout.write(`${stage}\t${name}\n`);

  const all = allTests(change);
  const count = change.changed.length;
  const parts = [
    `${tests.swift.length} of ${all.swift.length} Swift test targets`, `${tests.web.length} of ${all.web.length} web test files`,
    `${tests.browser.length} of ${all.browser.length} browser test files`,
  ];
  process.stderr.write(`${count} ${count === 1 ? 'file' : 'files'} changed since ${base}: ${parts.join(', ')}\n`);
  return 0;
}

// Do nothing when a test imports this module.
const started = process.argv[1];
if (started && realpathSync(started) === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));
