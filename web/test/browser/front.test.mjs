// The front page and `/rooms`: the ways in, each one press away. The pages behind them have tests of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
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

const isAt = (page, path) => page.waitFor(`the page is ${path}`, (wanted) => location.pathname + location.search === wanted, {
  args: [path], why: 'location.pathname + location.search',
});

test('a guest reaches each way in from the front page, and stays a guest', async (t) => {
  const server = await serve(t);
  const page = await open(t, server, '/?guest=1');
  for (const [name, path] of [['People nearby', '/nearby'], ['Rooms', '/rooms'], ['Strangers', '/strangers']]) {
    await page.click('link', name);
    await isAt(page, `${path}?guest=1`);
    await page.goto(`${server.url}/?guest=1`);
  }
  assertNoComplaints(page);
});

test('a site offers only the ways that it chose, and the only one is its front page', async (t) => {
  const some = await serve(t, { CONFAB_WEB_WAYS: 'rooms, strangers' });
  const page = await open(t, some, '/');
  await page.find('link', 'Rooms');
  assert.equal(await page.has('link', 'People nearby'), false);
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('.card')].slice(0, 2).map(({ pathname }) => pathname)), ['/rooms', '/strangers']);
  assert.equal((await fetch(`${some.url}/nearby`)).status, 404);
  const one = await serve(t, { CONFAB_WEB_WAYS: 'rooms' });
  await page.goto(one.url);
  await page.find('textbox', 'Room name');
  assert.equal(await page.has('link', 'Strangers'), false);
});
