// The front page and `/rooms`: the ways in, each one press away, and a newcomer's way to a second person. The pages behind them have
// tests of their own.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { keepGiven, source } from './in-page.mjs';
import { seesColor } from './media.mjs';
import { says } from './roommate.mjs';
import { inspect } from './screenshots.mjs';
import { assertNoComplaints, serve } from './stranger.mjs';

const { chromium } = sharedBrowsers();

/** Opens a page of the server. */
async function open(t, server, path) {
  const browser = await chromium();
  const page = await browser.newPage({ color: 'red' });
  t.after(() => page.close());
  await page.goto(server.url + path);
  return page;
}

/** Checks `/rooms` with rooms of before, and what it says about a name that is none. */
async function inspectRooms(page) {
  await page.evaluate(async () => {
    const { recentRooms } = await import(new URL('app/shared/recent-rooms.js', location.href).href);
    for (const name of ['garden', 'The book club that meets every second Thursday evening in spring']) recentRooms(true).remember(name);
  });
  await page.reload();
  await page.find('link', 'garden');
  await page.click('button', 'Join');
  await page.until('it asks for a name', async () => /name/i.test(await page.alerts()));
  return inspect(page, 'rooms');
}

/** Makes a room on `/rooms`, and waits for its page, with this query. */
async function makeRoom(page, query) {
  await page.click('button', 'New room');
  await page.waitFor('the page of a new room is open', (wanted) => (
    /[/]room[/][a-z]{3}-[a-z]{4}-[a-z]{3}$/.test(location.pathname) && location.search === wanted), { args: [query], why: 'location.pathname + location.search' });
}

const isAt = (page, url) => page.waitFor(`the page is ${url}`, (wanted) => location.href === wanted, { args: [url], why: 'location.href' });

test('below a path of a site, a guest reaches each way in from the front page, and stays a guest; that page and the one of rooms have no faults', async (t) => {
  const server = await serve(t, {}, { path: '/video' });
  const page = await open(t, server, '/?guest=1');
  assert.deepEqual(await inspect(page, 'front'), []);
  for (const [name, path] of [['People nearby', '/nearby'], ['Rooms', '/rooms'], ['Strangers', '/strangers']]) {
    await page.click('link', name);
    await isAt(page, `${server.url}${path}?guest=1`);
    if (path === '/rooms') {
      assert.deepEqual(await inspectRooms(page), []);
      await makeRoom(page, '?guest=1');
      await page.goto(`${server.url}/rooms?guest=1`);
      // The two of before, and not the one whose page was only opened.
      assert.equal(await page.evaluate("document.querySelectorAll('#recent-rooms li').length"), 2);
      await page.click('checkbox', 'Peer-to-peer (small groups)');
      await makeRoom(page, '?guest=1&media=mesh');
    }
    await page.goto(`${server.url}/?guest=1`);
  }
  assertNoComplaints(page);
});

test('a site offers only the features that it chose, and the only one is its front page', async (t) => {
  const some = await serve(t, { CONFAB_WEB_FEATURES: 'rooms, strangers' });
  const page = await open(t, some, '/');
  await page.find('link', 'Rooms');
  assert.equal(await page.has('link', 'People nearby'), false);
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('.card')].slice(0, 2).map(({ pathname }) => pathname)), ['/rooms', '/strangers']);
  assert.equal(await page.evaluate("document.getElementById('new-room').previousElementSibling.pathname"), '/rooms');
  assert.equal((await fetch(`${some.url}/nearby`)).status, 404);
  const none = await serve(t, { CONFAB_WEB_FEATURES: 'strangers, nearby' });
  await page.goto(none.url);
  await page.find('link', 'People nearby');
  assert.equal(await page.has('button', 'New room'), false);
  const one = await serve(t, { CONFAB_WEB_FEATURES: 'rooms' });
  await page.goto(one.url);
  await page.find('textbox', 'Room name');
  assert.equal(await page.has('link', 'Strangers'), false);
});

/** The loopback address of the newest protocol that this machine has. */
const loopback = Object.values(networkInterfaces()).flat().some(({ address }) => address === '::1') ? '::1' : '127.0.0.1';

test('a newcomer opens a new room from the front page over IPv6, and its address in another tab: the two see each other after four presses', async (t) => {
  const { url } = await serve(t, {}, { flags: ['--host', loopback] });
  assert.equal(new URL(url).hostname, loopback === '::1' ? '[::1]' : loopback);
  const browser = await chromium();
  const presses = [];
  const press = (page, role, name) => {
    presses.push(name);
    return page.click(role, name);
  };
  const tab = await browser.newPage({ color: 'red', label: 'the first', scripts: [source(keepGiven)] });
  t.after(() => tab.close());
  await tab.goto(url);
  await press(tab, 'button', 'New room');
  await tab.waitFor('the page of a room is open', () => location.pathname.startsWith('/room/') && document.getElementById('leave'));
  await press(tab, 'button', 'Join');
  await press(tab, 'button', 'Copy link');
  await tab.waitForStatus(says.copied);
  const link = await tab.evaluate('location.href');
  assert.equal(await tab.evaluate("document.getElementById('alone-link').textContent"), link);
  const second = await browser.newPage({ color: 'green', label: 'the second', sharing: tab });
  t.after(() => second.close());
  await second.goto(link);
  await press(second, 'button', 'Join');
  await Promise.all([seesColor(tab, 'green'), seesColor(second, 'red')]);
  assert.ok(presses.length <= 4, `they pressed ${presses.join(', ')}`);

  await tab.click('button', 'Invite');
  await tab.click('button', 'Copy link');
  await tab.waitForStatus(says.copied);
  await tab.click('button', 'Share…');
  const name = new URL(link).pathname.split('/').at(-1);
  assert.deepEqual(await tab.evaluate('window.__given'), [
    ['clipboard', link], ['clipboard', link], ['share', { title: 'Confab', text: `Join me in ${name} on Confab.`, url: link }],
  ]);
  assertNoComplaints(tab, second);
});
