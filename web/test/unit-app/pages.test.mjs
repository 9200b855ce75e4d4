// What the pages have in common in their HTML. There is no build step and no template, so each page has its own copy.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import test from 'node:test';

const app = new URL('../../app/', import.meta.url);
const read = (path) => readFile(new URL(path, app), 'utf8');
const folders = (await readdir(app, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
const found = await Promise.all(folders.map(async (name) => [name, await read(`${name}/index.html`).catch(() => null)]));
/** @type {Map<string, string>} the text of each page by its folder */
const pages = new Map(found.filter(([, text]) => text !== null));

/** Without scripts: it leads to another page. */
const isPlain = (name) => name === 'lan';
/** Not for everyone: it has no description for search, and nobody installs the app from there. */
const isInternal = (name) => ['lan', 'try'].includes(name);

/** The lines of the head that are different on each page: its title, its description, its styles and its script. */
const own = /^<(title|meta name="(description|robots)"|link rel="(stylesheet|manifest)"|script)/;
/** Pages whose controls are at the bottom let the keyboard of a phone resize them. */
const resizing = ', interactive-widget=resizes-content';

const headOf = (text) => /<head>\n([\s\S]*?)\n<\/head>/.exec(text)[1].split('\n').map((line) => line.trim());

test('all pages are found', () => {
  assert.deepEqual([...pages.keys()].sort(), ['front', 'lan', 'nearby', 'room', 'rooms', 'strangers', 'try']);
});

test('all pages have the same lines in their heads, but for what is their own', () => {
  const shared = (name) => headOf(pages.get(name)).filter((line) => !own.test(line)).map((line) => line.replace(resizing, ''));
  for (const name of pages.keys()) assert.deepEqual(shared(name), shared('front'), name);
});

test('each page has a title, a description unless it is internal, and its own script', () => {
  for (const [name, text] of pages) {
    const head = headOf(text);
    const count = (start) => head.filter((line) => line.startsWith(start)).length;
    assert.equal(count('<title>Confab – '), 1, name);
    assert.deepEqual([count('<meta name="description"'), count('<link rel="manifest"')], isInternal(name) ? [0, 0] : [1, 1], name);
    const scripts = head.filter((line) => line.startsWith('<script'));
    assert.deepEqual(scripts, isPlain(name) ? [] : [`<script type="module" src="/app/${name}/main.js"></script>`], name);
  }
  const titles = [...pages.values()].map((text) => /<title>(.*)<\/title>/.exec(text)[1]);
  assert.equal(new Set(titles).size, titles.length, 'tabs can be told apart');
});

test('each page loads the shared style first, only shared and own styles, and none twice', () => {
  for (const [name, text] of pages) {
    const styles = headOf(text).flatMap((line) => /rel="stylesheet" href="\/app\/([^"]+)"/.exec(line)?.[1] ?? []);
    assert.equal(styles[0], 'shared/style.css', name);
    assert.equal(new Set(styles).size, styles.length, `${name}: ${styles}`);
    for (const style of styles) assert.ok(['shared', name].includes(style.split('/')[0]), `${name}: ${style}`);
  }
});

test('each page says the same without scripts', () => {
  const notice = (text) => /<noscript>.*<\/noscript>/.exec(text)?.[0];
  for (const [name, text] of pages) assert.equal(notice(text), isPlain(name) ? undefined : notice(pages.get('front')), name);
});

test('the color around a page is that of its background', async () => {
  const style = await read('shared/style.css');
  const pageColors = [...style.matchAll(/--page: (#\w+)/g)].map(([, color]) => color);
  const around = [...pages.get('front').matchAll(/name="theme-color" content="(#\w+)"/g)].map(([, color]) => color);
  assert.equal(around.length, 2);
  assert.deepEqual([...new Set(pageColors)], around);
});
