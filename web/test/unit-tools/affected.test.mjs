// Tests `scripts/affected.mjs` on invented checkouts with a few files, and on this checkout.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { affected, allTests, targetsOf } from '../../../scripts/affected.mjs';

/** @param {string} name @param {string} type @param {string} folder @param {string[]} dependencies */
const target = (name, type, folder, ...dependencies) => ({ name, type, folder, dependencies });

const targets = [
  target('Words', 'regular', 'Sources/Words'),
  target('Rules', 'regular', 'Sources/Rules', 'Words'),
  target('Tool', 'executable', 'Sources/Tool'),
  target('Pages', 'plugin', 'Plugins/Pages', 'Tool'),
  target('Server', 'regular', 'Sources/Server', 'Rules', 'Pages'),
  target('Command', 'executable', 'Sources/Command', 'Server'),
  target('WordsTests', 'test', 'Tests/WordsTests', 'Words'),
  target('RulesTests', 'test', 'Tests/RulesTests', 'Rules'),
  target('ServerTests', 'test', 'Tests/ServerTests', 'Server'),
  target('ReplayTests', 'test', 'Tests/ReplayTests', 'Server'),
  target('AttackTests', 'test', 'Tests/AttackTests', 'Words'),
];
const lines = (/** @type {string[]} */ ...all) => `${all.join('\n')}\n`;
const every = allTests({ targets, files: [] }).swift;

/** @type {Record<string, string>} */
const checkout = {
  'README.md': 'Words.',
  'deploy/sample.conf': 'listen 80;',
  'kept/words/a': 'a',
  'Replay/Sources/Parser.swift': '/// Reads `deploy/sample.conf`.\nlet seeds = ["kept/words"]',
  'Sources/Server/Gateway/Files.swift': 'case "/": "app/front.html"\ncase "/map": "app/map.html"\ncase "/sw.js": "app/worker.js"',
  'Sources/Rules/Rule.swift': 'struct Rule {}',
  'Tests/AttackTests/Runner.swift': 'let named = environment["CONFAB_BINARY"]',
  'Tests/RulesTests/RuleTests.swift': 'let folder = own.appending(path: "../../kept/words/\\(name).txt")',
  'Tests/ServerTests/ServerTests.swift': 'let sample = root.appending(path: "deploy/sample.conf")',
  'web/package.json': '{}',
  'web/lib/index.js': "export { talk } from './talk.js';",
  'web/lib/talk.js': lines(
    "/** @typedef {import('./types.js').Talk} Talk */", "export const talk = (/** @type {import('./types.js').Talk} */ to) => to;",
  ),
  'web/lib/types.js': '/** @typedef {string} Talk */',
  'web/app/front.html': '<script src="app/front.js"></script> <a href="map">Map</a> <use href="app/icons.svg#logo">',
  'web/app/front.js': "import { talk } from '../lib/index.js';",
  'web/app/icons.svg': '<svg/>',
  'web/app/map.html': '<link href="../app/map.css"> <script src="../app/map.js"></script>',
  'web/app/map.css': 'a { background: url("pin.svg") }',
  'web/app/pin.svg': '<svg/>',
  'web/app/map.js': "import('../lib/index.js'); navigator.serviceWorker.register('/sw.js');",
  'web/app/worker.js': "clients.openWindow('/map');",
  'web/test/unit/talk.test.mjs': "import { person } from './person.mjs';",
  'web/test/unit/person.mjs': "import {\n  talk,\n} from '../../lib/index.js';\nconst web = new URL('../..', import.meta.url);",
  'web/test/unit/reading.test.mjs': lines(
    "readFileSync(new URL('../../app/worker.js', import.meta.url));",
    "readdirSync(new URL('../../../kept/', import.meta.url));",
  ),
  'web/test/unit/every.test.mjs': 'for (const page of pages) readFileSync(new URL(`../../app/${page}`, import.meta.url));',
  'web/test/browser/start.mjs': lines(
    '// At `/map` too.', 'export async function startServer({ binary }) {}', "export const root = new URL('../../..', import.meta.url);",
  ),
  'web/test/browser/person.mjs': lines(
    "import { startServer } from './start.mjs';",
    'export async function serve(t) {', '  return startServer({ ...t });', '}',
    '/** Waits. */', 'const delay = 3;',
    'export async function arrive(page, url) {', "  await page.goto(`${url}/${guest ? '?guest=1' : ''}`);", '  return delay;', '}',
    'export const find = (page, url) => page.goto(`${url}/map#${name}`);',
  ),
  'web/test/browser/front.test.mjs': lines("import { serve, arrive as come } from './person.mjs';", "test('a', () => come(page, serve().url));"),
  'web/test/browser/front-again.test.mjs': lines("process.env.AGAIN = '1';", "await import('./front.test.mjs');"),
  'web/test/browser/map.test.mjs': lines("import { find, serve } from './person.mjs';", "test('b', () => find(page, serve().url));"),
  'web/test/browser/near.mjs': lines(
    "import { find } from './person.mjs';", "await import('./loud.mjs');", 'export const look = () => find();', "export const say = 'Hello';",
  ),
  'web/test/browser/loud.mjs': lines("import { startServer } from './start.mjs';", 'await startServer();'),
  'web/test/browser/wire.test.mjs': lines(
    "import { say } from './near.mjs';", "test('c', () => run(path.join(root, 'web', 'test', 'peers', 'peer.py'), say));",
  ),
  'web/test/peers/peer.py': 'import json\nfrom driven import tell\n',
  'web/test/peers/driven.py': 'def tell(): pass',
  'web/test/peers/other.py': 'def tell(): pass',
  'web/test/browser/tools.test.mjs': lines(
    "import { root, startServer } from './start.mjs';", "test('d', async () => (await startServer({ binary: 'x' })).goto(root));",
  ),
};

/** @param {string[]} changed @param {Record<string, string>} [more] additional files, or files with other contents */
function reached(changed, more = {}) {
  const all = { ...checkout, ...more };
  const links = new Map([['Tests/ReplayTests/Parsers', 'Replay/Sources']]);
  const { swift, web, browser } = affected({
    changed, targets, links, files: [...Object.keys(all), ...links.keys()], read: (file) => all[file] ?? '',
  });
  const short = (/** @type {string[]} */ files) => files.map((file) => file.replace(/.*\/|\.test\.mjs/g, ''));
  return { swift, web: short(web), browser: short(browser) };
}

const nothing = { swift: [], web: [], browser: [] };
/** The tests that start the server. */
const served = ['front-again', 'front', 'map', 'wire'];

describe('A change reaches tests in Swift', () => {
  test('of its own target and of those that depend on it', () => {
    assert.deepEqual(reached(['Tests/RulesTests/RuleTests.swift']).swift, ['RulesTests']);
    assert.deepEqual(reached(['Sources/Rules/Rule.swift']).swift, ['RulesTests', 'ServerTests', 'ReplayTests', 'AttackTests']);
    assert.deepEqual(reached(['Sources/Words/shim.h']).swift, every);
  });

  test('of what a plugin builds', () => {
    for (const file of ['Plugins/Pages/plugin.swift', 'Sources/Tool/main.swift']) {
      assert.deepEqual(reached([file]).swift, ['ServerTests', 'ReplayTests', 'AttackTests'], file);
    }
  });

  test('that run the executable and do not depend on it', () => {
    assert.deepEqual(reached(['Sources/Command/Serve.swift']).swift, ['AttackTests']);
  });

  test('through a symbolic link', () => {
    assert.deepEqual(reached(['Replay/Sources/Parser.swift']).swift, ['ReplayTests']);
  });

  test('that name the file or its folder, whether it is there or not', () => {
    assert.deepEqual(reached(['deploy/sample.conf']).swift, ['ServerTests'], 'a file name in a comment does not count');
    assert.deepEqual(reached(['kept/words/a']).swift, ['RulesTests', 'ReplayTests']);
    assert.deepEqual(reached(['kept/words/new']).swift, ['RulesTests', 'ReplayTests']);
    assert.deepEqual(reached(['kept/sounds/a']).swift, []);
  });

  test('that see its page, and no others that are built with it', () => {
    assert.deepEqual(reached(['web/app/map.css']).swift, ['ServerTests', 'AttackTests']);
    assert.deepEqual(reached(['web/test/unit/person.mjs']).swift, []);
  });

  test('all of them, from Package.swift or a folder without a target', () => {
    assert.deepEqual(reached(['Package.swift']).swift, every);
    assert.deepEqual(reached(['Sources/Gone/Gone.swift']).swift, every);
  });
});

describe('A change reaches tests of the web', () => {
  test('that import it, directly or not', () => {
    for (const file of ['web/test/unit/talk.test.mjs', 'web/test/unit/person.mjs', 'web/lib/talk.js']) {
      assert.ok(reached([file]).web.includes('talk'), file);
      assert.ok(!reached([file]).web.includes('reading'), file);
    }
  });

  test('that read it, or the folder it is in', () => {
    assert.deepEqual(reached(['web/app/worker.js']).web, ['every', 'reading']);
    assert.deepEqual(reached(['web/app/new.html']).web, ['every']);
    assert.deepEqual(reached(['kept/words/new']).web, ['reading']);
  });

  test('that import a deleted file', () => {
    assert.deepEqual(reached(['web/test/unit/gone.mjs'], { 'web/test/unit/talk.test.mjs': "import './gone.mjs';" }).web, ['talk']);
  });

  test('but not through types in comments', () => {
    assert.deepEqual(reached(['web/lib/types.js']).web, []);
  });

  test('in every folder of unit tests, and in no other', () => {
    const files = ['web/test/unit-tools/deep/a.test.js', 'web/test/unit/person.mjs', 'web/test/browser/a.test.mjs', 'web/a.test.mjs'];
    assert.deepEqual(allTests({ targets, files }), { swift: every, web: files.slice(0, 1), browser: files.slice(2, 3) });
  });
});

describe('A change reaches tests in browsers', () => {
  test('that import it, directly or not', () => {
    assert.deepEqual(reached(['web/test/browser/person.mjs']).browser, served);
    assert.deepEqual(reached(['web/test/browser/start.mjs']).browser, [...served.slice(0, 3), 'tools', 'wire']);
    assert.deepEqual(reached(['web/test/browser/front.test.mjs']).browser, ['front-again', 'front']);
  });

  test('that run it in another process', () => {
    assert.deepEqual(reached(['web/test/peers/driven.py']).browser, ['wire']);
    assert.deepEqual(reached(['web/test/peers/other.py']).browser, []);
  });

  test('that open a page which loads it', () => {
    assert.deepEqual(reached(['web/app/front.js']).browser, ['front-again', 'front']);
    assert.deepEqual(reached(['web/app/icons.svg']).browser, ['front-again', 'front']);
    assert.deepEqual(reached(['web/lib/talk.js']).browser, ['front-again', 'front', 'map']);
    for (const file of ['map.html', 'map.css', 'pin.svg', 'worker.js']) {
      assert.deepEqual(reached([`web/app/${file}`]).browser, ['map'], file);
    }
  });

  test('that could open such a page with any part of a module', () => {
    const more = { 'web/test/browser/wire.test.mjs': lines(
      "import { serve } from './person.mjs';", "import * as person from './person.mjs';", "test('c', () => person[what](serve()));",
    ) };
    assert.deepEqual(reached(['web/app/front.js'], more).browser, ['front-again', 'front', 'wire']);
  });

  test('that start the server it is part of', () => {
    assert.deepEqual(reached(['Sources/Rules/Rule.swift']).browser, served, 'one of them starts the server while it is loaded');
    assert.deepEqual(reached(['Tests/RulesTests/RuleTests.swift']).browser, []);
  });

  test('that open an address without a known page', () => {
    const opening = (/** @type {string} */ address) => reached(['web/app/map.css'], { 'web/test/browser/wire.test.mjs': lines(
      "import { serve } from './person.mjs';", 'const server = serve();', `test('c', () => page.goto(${address}));`,
    ) }).browser;
    assert.deepEqual(opening('`${server.url}/where`'), ['map', 'wire']);
    assert.deepEqual(opening('somewhere'), ['map', 'wire']);
    assert.deepEqual(opening('server.url'), ['map'], 'the front page has no path');
    assert.deepEqual(opening('`${server.url}?${query}`'), ['map'], 'nor does it with a query');
  });
});

describe('A change of no code', () => {
  test('of documents reaches nothing', () => {
    assert.deepEqual(reached(['README.md', 'docs/new.md', 'Sources/Rules/README.md', 'web/tsconfig.json']), nothing);
    assert.deepEqual(reached([]), nothing);
  });

  test('of a test runner reaches every test that it runs', () => {
    const web = ['every', 'reading', 'talk'];
    const browser = ['front-again', 'front', 'map', 'tools', 'wire'];
    for (const file of ['scripts/test', 'scripts/environment', 'scripts/steps']) {
      assert.deepEqual(reached([file]), { swift: every, web, browser }, file);
    }
    assert.deepEqual(reached(['Package.resolved']), { swift: every, web: [], browser });
    for (const file of ['scripts/browser-setup', 'scripts/browser-tests']) {
      assert.deepEqual(reached([file]), { swift: [], web: [], browser }, file);
    }
    assert.deepEqual(reached(['web/package.json']), { swift: [], web, browser });
  });
});

test('the SwiftPM description of a package is parsed', () => {
  const dump = { targets: [
    { name: 'Words', type: 'regular', dependencies: [{ product: ['Crypto', 'swift-crypto', null, null] }] },
    { name: 'CThing', type: 'system', path: 'Tests/CThing', dependencies: [] },
    { name: 'Pages', type: 'plugin', dependencies: [{ target: ['CThing', null] }] },
    { name: 'WordsTests', type: 'test', dependencies: [{ byName: ['Words', null] }], pluginUsages: [{ plugin: ['Pages', null] }] },
  ] };
  assert.deepEqual(targetsOf(dump), [
    target('Words', 'regular', 'Sources/Words'),
    target('CThing', 'system', 'Tests/CThing'),
    target('Pages', 'plugin', 'Plugins/Pages', 'CThing'),
    target('WordsTests', 'test', 'Tests/WordsTests', 'Words', 'Pages'),
  ]);
});

describe('In this checkout', () => {
  const root = new URL('../../../', import.meta.url);
  /** @param {string} folder @returns {string[]} */
  const filesIn = (folder) => readdirSync(new URL(folder, root)).flatMap((name) => (
    name.includes('.') && name !== 'socket.io' ? [folder + name] : filesIn(`${folder}${name}/`)
  ));
  const files = ['web/app/', 'web/lib/', 'web/socket.io/', 'web/test/', 'Sources/Server/Gateway/'].flatMap(filesIn);
  const read = (/** @type {string} */ file) => readFileSync(new URL(file, root), 'utf8');
  const real = [
    target('Server', 'regular', 'Sources/Server'), target('Command', 'executable', 'Sources/Command', 'Server'),
    target('AppHost', 'executable', 'Tests/AppHost'),
  ];
  const browser = (/** @type {string} */ file) => affected({ changed: [file], targets: real, files, read })
    .browser.map((test) => test.replace(/.*\/|\.test\.mjs/g, ''));

  test('the tests of people nearby open that page, and the protocol tests open none', () => {
    const tests = browser('web/app/nearby/view.js');
    for (const name of ['nearby', 'calls', 'push']) assert.ok(tests.includes(name), name);
    for (const name of ['try', 'roulette', 'durability', 'roulettetok-polls']) assert.ok(!tests.includes(name), name);
  });

  test('the RouletteTok script affects the tests with its page', () => {
    const tests = browser('web/socket.io/socket.io.js');
    assert.ok(tests.includes('roulettetok-mixed'), tests.join());
    assert.ok(!tests.includes('roulette'), tests.join());
  });

  test('the tests behind nginx are affected like those without it', () => {
    const tests = browser('web/app/strangers/setup.css');
    assert.ok(tests.includes('roulette') && tests.includes('roulette-nginx'), tests.join());
  });

  test('the program with the app\'s model affects the tests with a phone', () => {
    assert.deepEqual(browser('Tests/AppHost/AppHost.swift'), ['app-calls']);
  });

  test('only tests of the test tools and of HAProxy need no server', () => {
    const tests = browser('Sources/Server/Server.swift');
    const all = browser('Package.swift');
    assert.deepEqual(all.filter((name) => !tests.includes(name)), ['drivers', 'haproxy', 'scaffolding']);
  });
});
