// What the pages have in common in their HTML.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import test from 'node:test';
import { pageText } from './page-text.mjs';

const app = new URL('../../app/', import.meta.url);
const read = (path) => readFile(new URL(path, app), 'utf8');
const folders = (await readdir(app, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
const found = await Promise.all(folders.map(async (name) => [name, await pageText(name).catch(() => null)]));
/** @type {Map<string, string>} the text of each page by its folder */
const pages = new Map(found.filter(([, text]) => text !== null));

/** Without scripts: it leads to another page. */
const isPlain = (name) => name === 'lan';
/** Not for everyone: it has no description for search, and nobody installs the app from there. */
const isInternal = (name) => ['lan', 'try', 'admin'].includes(name);

/** From a page's address to the server's: `/room/<name>` is one folder further down than all others. */
const up = (name) => (name === 'room' ? '../' : '');

const headOf = (text) => /<head>\n([\s\S]*?)\n<\/head>/.exec(text)[1].split('\n').map((line) => line.trim());

test('all pages are found', () => {
  assert.deepEqual([...pages.keys()].sort(), ['admin', 'check', 'front', 'lan', 'nearby', 'room', 'rooms', 'strangers', 'try']);
});

test('all pages have the same lines in their heads, but for what is their own', () => {
  for (const [name, text] of pages) {
    assert.deepEqual(headOf(text).slice(0, 6).map((line) => line.replace(`href="${up(name)}`, 'href="')), headOf(pages.get('front')).slice(0, 6), name);
    assert.match(text, /content="width=device-width, initial-scale=1, viewport-fit=cover(, interactive-widget=resizes-content)?">/, name);
  }
});

test('each page has a title, a description unless it is internal, and its own script', () => {
  for (const [name, text] of pages) {
    const head = headOf(text);
    const count = (start) => head.filter((line) => line.startsWith(start)).length;
    assert.equal(count('<title>Confab – '), 1, name);
    assert.deepEqual([count('<meta name="description"'), count('<link rel="manifest"')], isInternal(name) ? [0, 0] : [1, 1], name);
    const scripts = head.filter((line) => line.startsWith('<script'));
    assert.deepEqual(scripts, isPlain(name) ? [] : [`<script type="module" src="${up(name)}app/${name}/main.js"></script>`], name);
  }
  const titles = [...pages.values()].map((text) => /<title>(.*)<\/title>/.exec(text)[1]);
  assert.equal(new Set(titles).size, titles.length, 'tabs can be distinguished');
});

test('each page loads the shared style first, only shared and own styles, and none twice', () => {
  for (const [name, text] of pages) {
    const styles = headOf(text).flatMap((line) => /rel="stylesheet" href="(?:\.\.\/)?app\/([^"]+)"/.exec(line)?.[1] ?? []);
    assert.equal(styles[0], 'shared/style.css', name);
    assert.equal(new Set(styles).size, styles.length, `${name}: ${styles}`);
    for (const style of styles) assert.ok(['shared', name].includes(style.split('/')[0]), `${name}: ${style}`);
  }
});

test('all references of the pages and the manifest are relative to their addresses, so that a proxy can serve them below a path', async () => {
  const files = new Set((await readdir(app, { recursive: true })).map((file) => `app/${file}`));
  const addresses = ['strangers', 'nearby', 'rooms', 'check', 'ca.crt', '.'];
  for (const [name, text] of pages) {
    const references = [...text.matchAll(/\s(?:href|src|action|data|poster)="([^"]*)"/g)].map(([, reference]) => reference);
    assert.ok(references.length > 3, name);
    for (const reference of references) {
      assert.ok(!/^([/]|[a-z]+:)/.test(reference), `${name}: ${reference}`);
      const address = name === 'front' ? '' : name === 'room' ? 'room/tea' : name;
      const { pathname } = new URL(reference, `https://example.org/video/${address}`);
      const found = pathname.startsWith('/video/') ? pathname.slice('/video/'.length) || '.' : '';
      assert.ok(files.has(found) || addresses.includes(found), `${name}: ${reference} leads to ${pathname}`);
    }
  }
  const manifest = JSON.parse(await read('manifest.webmanifest'));
  const at = (reference) => new URL(reference, 'https://example.org/video/app/manifest.webmanifest').pathname;
  assert.deepEqual([manifest.start_url, manifest.scope, manifest.icons[0].src].map(at), ['/video/', '/video/', '/video/app/favicon.svg']);
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
