// Prints the tests that a change can affect, for `scripts/test --changed`.
//
//   node scripts/affected.mjs [--base REV]
//
// A file is changed if it differs from the commit where this branch left REV: in a commit, not committed yet, or new and not
// ignored. A renamed file counts under both names. Without --base, REV is main, or origin/main on main itself. If neither
// exists, only uncommitted changes count.
//
// Prints a line for each test: "swift", "web" or "browser", a tab, and the name. Prints a summary to stderr.
//
// If in doubt, a test is included. A file uses another if it contains the other's path, or that of its folder, in
// quotes: an import, the style sheet of a page, a file that a test reads. A file that nothing uses, such as a
// document, affects nothing.
import { realpathSync } from 'node:fs';
import { posix as path } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { changeSince, dumpPackage, exists, usualBase } from './checkout.mjs';

/**
 * @typedef {object} Target of the Swift package
 * @property {string} name
 * @property {string} type for example `test`, `plugin` or `executable`
 * @property {string} folder
 * @property {string[]} dependencies other targets and plugins in the package
 */

/** @typedef {import('./checkout.mjs').Checkout & {targets: Target[]}} Change */

/** @typedef {{swift: string[], web: string[], browser: string[]}} Tests `swift` has names of targets, the others have files */

/** Scripts on which every test depends. If one changes, all tests run. */
const everything = /^scripts\/(test|environment|steps)$/;
/** Files that determine the build of the whole package. */
const manifest = /^Package(@[^/]*)?\.(swift|resolved)$/;
/** Files that tell node how to load the scripts in and below their folder. */
const nodeManifest = /(^|\/)package\.json$/;
/** Scripts that every browser test needs. */
const browserSetup = /^scripts\/browser-(setup|tests)$/;
/** Files embedded in the executable. `Plugins/EmbedWeb` has the same folders. */
const embedded = /^web\/(app|lib|socket\.io)\//;
/** The source files in which the server maps URLs to pages. */
const routing = /^Sources\/Server\/Gateway\/[^/]+\.swift$/;
/** The target that the browser tests start. */
const executable = 'Command';
/** The target that browser tests with the app start in addition to the server. */
const appHost = 'AppHost';

/** Returns all tests that `scripts/test` runs. @param {Pick<Change, 'targets' | 'files'>} change @returns {Tests} */
export function allTests({ targets, files }) {
  return {
    swift: targets.filter(({ type }) => type === 'test').map(({ name }) => name),
    web: files.filter((file) => /^web\/test\/unit[^/]*\/(.*\/)?[^/]*\.test\.[^/]*js$/.test(file)).sort(),
    browser: files.filter((file) => /^web\/test\/browser\/[^/]+\.test\.mjs$/.test(file)).sort(),
  };
}

/** Returns the tests that a change can affect. @param {Change} change @returns {Tests} */
export function affected({ targets, ...change }) {
  const checkout = new Checkout(change);
  const all = allTests({ targets, files: change.files });
  const has = (/** @type {RegExp} */ pattern) => [...checkout.changed].some((file) => pattern.test(file));
  if (has(everything)) return all;

  const known = withExecutable(checkout, targets);
  const reached = reachedTargets(checkout, known);
  const readers = has(embedded) ? pageTests(known) : [];
  const isReached = (/** @type {string} */ test) => browserReached(checkout, test, reached);
  return {
    swift: has(manifest) ? all.swift : all.swift.filter((name) => reached.has(name) || readers.includes(name)),
    web: has(nodeManifest) ? all.web : all.web.filter((test) => checkout.touches([test])),
    browser: [manifest, nodeManifest, browserSetup].some(has) ? all.browser : all.browser.filter(isReached),
  };
}

/** The files of a checkout, and which files use which. */
class Checkout {
  /** Maps each path, including those through links, to the file's path without links. @type {Map<string, string>} */
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
    // Deleted files count, because other files may still refer to them.
    for (const file of new Set([...files, ...changed])) for (const place of places(file)) this.#add(place, file);
    /** Maps the server's URLs to files. @type {Map<string, string>} */
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

  /** Returns all files below a folder. @param {string} folder */
  inside(folder) {
    return this.#folders.get(folder) ?? [];
  }

  /** Returns the text of a file without comments on separate lines. @param {string} file */
  text(file) {
    return this.#read(this.#places.get(file) ?? file).replace(/^\s*\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
  }

  /** Returns the files that a file names, if they exist. @param {string} file @returns {string[]} */
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
    // Ignore paths of parent folders, which contain nearly every file. They are only the beginning of a longer path.
    if (/^[./]*$/.test(name)) return [];
    const beside = path.join(path.dirname(from), name);
    let paths = [beside];
    if (name.startsWith('/')) {
      const route = this.routes.get(name);
      // In web files, this is a URL of the server, which may be mapped to a file. A link to a page does not load the
      // page.
      const served = from.endsWith('.swift') ? [] : [`web${name}`, ...(route && !route.endsWith('.html') ? [route] : [])];
      paths = [...served, name.slice(1)];
    } else if (!name.startsWith('.')) {
      paths = [beside, name];
    }
    // Relative references in a page start at its URL, whose path differs from that of its file.
    if (from.endsWith('.html')) paths.push(`web/${name.replace(/^(\.\.?\/)+/, '')}`);
    return paths.map((each) => each.replace(/\/$/, '')).flatMap((each) => {
      if (this.#places.has(each)) return [each];
      // A name without a slash is rarely meant as a folder.
      return name.includes('/') ? this.inside(each) : [];
    });
  }

  /** Returns true if one of these files, or a file that they use directly or indirectly, changed. @param {string[]} files */
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
 * Returns possible paths in a text: quoted texts, up to an inserted value, a query or a fragment, and lists of words like the
 * arguments of `path.join`. The text after an inserted value could be the rest of a URL.
 *
 * @param {string} file @param {string} text @returns {string[]}
 */
function namesIn(file, text) {
  if (file.endsWith('.py')) return [...text.matchAll(/^\s*(?:from|import) +(\w+)/gm)].map(([, name]) => `./${name}.py`);
  // Skip types such as `import('./types.js').State`: they do not load the file.
  const quoted = text.matchAll(/['"`})(]((?:\.{0,2}\/)?[\w.@-][\w./@-]*)(?=['"`$?#\\)])(?!['"]\)\.[A-Z])/g);
  const rows = text.matchAll(/'[\w.@-]+'(?:, '[\w.@-]+')+/g);
  return [...[...quoted].map(([, name]) => name), ...[...rows].map(([row]) => row.slice(1, -1).split("', '").join('/'))];
}

/** Returns pairs of a URL and a file on the same line. @param {string} text @returns {[string, string][]} */
function routesIn(text) {
  return [...text.matchAll(/"(\/[^"\n]*)"(?=[^\n]*"(app\/[^"\n]+)")/g)].map(([, address, file]) => [address, `web/${file}`]);
}

/** Returns the targets in the output of `swift package dump-package`. @param {{targets: any[]}} dump @returns {Target[]} */
export function targetsOf({ targets }) {
  const own = new Set(targets.map(({ name }) => name));
  const parents = new Map([['test', 'Tests'], ['plugin', 'Plugins']]);
  return targets.map(({ name, type, path: folder, dependencies, pluginUsages = [] }) => ({
    name, type, folder: folder ?? `${parents.get(type) ?? 'Sources'}/${name}`,
    // Each dependency is `{byName: [name, condition]}`, `{product: [name, package, …]}` or similar.
    dependencies: [...dependencies, ...pluginUsages].map((each) => Object.values(each)[0][0]).filter((each) => own.has(each)),
  }));
}

/**
 * Adds the executable as a dependency of tests that run it. Package.swift does not list it.
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

/** Returns the targets that changed, and those that depend on them. @param {Checkout} checkout @param {Target[]} targets */
function reachedTargets(checkout, targets) {
  /** @type {Set<string>} */
  const reached = new Set();
  for (const file of checkout.changed) {
    if (file.endsWith('.md')) continue;
    const owner = targets.find(({ folder }) => file.startsWith(`${folder}/`));
    if (owner) reached.add(owner.name);
    // The file is in the folder of a target that no longer exists, so any target may be affected.
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
 * Returns the test targets that a changed page can affect. Pages are compiled into the target with the plugin, and
 * everything that depends on this target is rebuilt. But only its own tests request pages, and the tests that attack
 * the executable. No other test uses the text of a page.
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

/** @param {Checkout} checkout @param {string} test @param {Set<string>} reached the affected targets, not counting changed pages */
function browserReached(checkout, test, reached) {
  if (checkout.touches([test])) return true;
  const pieces = piecesOf(checkout, test);
  // Tests that start no server, or a fake one, are tests of the test tools.
  if (!pieces.some((piece) => /(?<!function )\bstartServer\((?!\{ binary\b)/.test(piece))) return false;
  if (reached.has(appHost) && pieces.some((piece) => /(?<!function )\bstartPhone\(/.test(piece))) return true;
  return reached.has(executable) || checkout.touches(pagesIn(checkout, pieces));
}

/** Returns the pages that this code opens. @param {Checkout} checkout @param {string[]} pieces @returns {string[]} */
function pagesIn(checkout, pieces) {
  const addresses = pieces.flatMap((piece) => [...piece.matchAll(/\.goto\(([^;]*)/g)]).map(([, argument]) => {
    const [given] = /\/[\w./-]*/.exec(argument.replace(/\$\{[^}]*\}/g, '')) ?? [];
    // An address without a path is the front page's. Any other address is known only when the test runs, so it may be
    // any page's.
    return given ?? (/`|\burl\b/.test(argument) ? '/' : 'anywhere');
  });
  return [...new Set(addresses)].flatMap((address) => {
    const page = checkout.routes.get(address);
    return page ? [page] : checkout.inside('web/app').filter((file) => file.endsWith('.html'));
  });
}

/**
 * Returns the code that can run in a test: its own file, the imported names of each module, and what those use. Whole modules
 * would be too much: the module that starts the server for every test also opens the front page for some.
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
      // Include code without a name, because it runs whenever the module is loaded.
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

/** Splits a module into pieces, which begin at each unindented word. @param {string} file @param {string} text */
function moduleOf(file, text) {
  /** Imports by local name. Without `name`, the whole module is imported. @type {Map<string, {file: string, name?: string}>} */
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

/** @param {string[]} args @returns {number} the exit status */
function main(args) {
  const isUnderstood = args.length === 0 || (args.length === 2 && args[0] === '--base');
  const base = args[1] ?? usualBase();
  if (!isUnderstood || !exists(base)) {
    process.stderr.write(`${isUnderstood ? `There is no revision "${base}" here.` : 'Usage: node scripts/affected.mjs [--base REV]'}\n`);
    return 2;
  }
  const change = { ...changeSince(base), targets: targetsOf(dumpPackage()) };
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
