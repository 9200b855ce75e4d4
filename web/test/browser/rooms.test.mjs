// People meet in a room in real browsers through the built server: everyone sees everyone, and hosts decide who comes in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { soundArrives } from './media.mjs';
import { approach, come, endings, ended, enter, leave, moderate, openChat, press, reads, says, seesAll, setOption, setPassword, write } from './roommate.mjs';
import { assertNoComplaints, assertNothingThrown, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();
const room = 'garden';
const ann = { name: 'Ann', color: 'red', room };
const bob = { name: 'Bob', color: 'green', room };
const cat = { name: 'Cat', color: 'blue', room };

/** Waits until each of these people sees exactly the others. */
function everyoneSeesEveryone(people) {
  return Promise.all(people.map(({ page }) => seesAll(page, Object.fromEntries(
    people.filter((other) => other.page !== page).map(({ name, color }) => [name, color])))));
}

test('three people in one room see and hear each other, chat, and a late one reads what was written', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const time = stopwatch();
  const one = await come(t, browser, url, ann);
  await one.waitForStatus(says.alone);
  assert.ok(await one.has('group', 'You'), 'the own picture is named You');
  const other = await come(t, browser, url, bob);
  await everyoneSeesEveryone([{ page: one, ...ann }, { page: other, ...bob }]);
  await write(one, 'Hello, <b>Bob</b> & https://example.org', other);
  const third = await come(t, browser, url, cat);
  await everyoneSeesEveryone([{ page: one, ...ann }, { page: other, ...bob }, { page: third, ...cat }]);
  t.diagnostic(`all three saw each other after ${time()}`);
  await Promise.all([one, other, third].map((page) => soundArrives(page)));
  await openChat(third);
  await reads(third, 'Hello, <b>Bob</b> & https://example.org');
  assert.equal(await third.evaluate("document.querySelectorAll('#log a, #log b').length"), 0, 'markup and links stay text');
  await leave(other);
  await everyoneSeesEveryone([{ page: one, ...ann }, { page: third, ...cat }]);
  assertNoComplaints(one, other, third);
});

test('two tabs of one browser with one name are two people, and each sees the other', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const tab = await come(t, browser, url, ann);
  const second = await come(t, browser, url, { ...ann, color: 'green', sharing: tab });
  await Promise.all([seesAll(tab, { Ann: 'green' }), seesAll(second, { Ann: 'red' })]);
});

test('a full room refuses the next person with a sentence, until there is a place', async (t) => {
  const { url } = await serve(t, { CONFAB_ROOMS_CAPACITY: '2' });
  const browser = await chromium();
  const one = await come(t, browser, url, ann);
  const other = await come(t, browser, url, bob);
  const third = await approach(t, browser, url, { ...cat, label: 'Cat' });
  await press(third, cat);
  await ended(third, endings.full);
  await leave(other);
  await third.click('button', 'Join again');
  await Promise.all([seesAll(one, { Cat: 'blue' }), seesAll(third, { Ann: 'red' })]);
});

test('in a lobby people wait until the host admits or denies them', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const host = await come(t, browser, url, ann);
  await setOption(host, 'lobby', true);
  const guest = await approach(t, browser, url, { ...bob, label: 'Bob' });
  await press(guest, bob);
  await guest.waitForStatus(says.waiting);
  await host.click('button', 'Admit');
  await Promise.all([seesAll(host, { Bob: 'green' }), seesAll(guest, { Ann: 'red' })]);
  const third = await approach(t, browser, url, { ...cat, label: 'Cat' });
  await press(third, cat);
  await third.waitForStatus(says.waiting);
  await host.click('button', 'Deny');
  await ended(third, endings.refused);
  assertNoComplaints(host, guest);
});

test('a locked room lets nobody in, and one with a password those who know it', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const host = await come(t, browser, url, ann);
  await setOption(host, 'locked', true);
  const guest = await approach(t, browser, url, { ...bob, label: 'Bob' });
  await press(guest, bob);
  await ended(guest, endings.locked);
  await setOption(host, 'locked', false);
  await setPassword(host, 'open sesame');
  await guest.click('button', 'Join again');
  await press(guest, { password: 'open barley' });
  await guest.until('it says that the password is wrong', async () => /not the password/.test(await guest.alerts()));
  await press(guest, { password: 'open sesame' });
  await Promise.all([seesAll(host, { Bob: 'green' }), seesAll(guest, { Ann: 'red' })]);
});

test('the host mutes and removes a guest, whose token no longer works, and a new host follows one who leaves', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const host = await come(t, browser, url, ann);
  const scripts = [keepTokens];
  const guest = await come(t, browser, url, { ...bob, scripts });
  const third = await come(t, browser, url, cat);
  await everyoneSeesEveryone([{ page: host, ...ann }, { page: guest, ...bob }, { page: third, ...cat }]);
  await moderate(host, 'Bob', 'Mute this person');
  await guest.waitForStatus(says.muted);
  await guest.click('button', 'Mute');
  await moderate(host, 'Bob', 'Remove');
  await host.find('dialog');
  await host.click('button', 'Remove');
  await ended(guest, endings.removed);
  await everyoneSeesEveryone([{ page: host, ...ann }, { page: third, ...cat }]);
  assert.equal(await guest.evaluate(joinWithToken), 'token_match_ended');
  await leave(host);
  await third.waitForStatus(says.host);
  await third.waitForStatus(says.alone);
  assertNothingThrown(host, guest, third);
});

/** Keeps the token of the room in `window.__joined`. Source text, because it runs before the page. */
const keepTokens = `{
  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(...args) {
      super(...args);
      this.addEventListener('message', ({ data }) => {
        const message = JSON.parse(data);
        if (message.type === 'room.joined') window.__joined = message;
      });
    }
  };
}`;

/** Runs in the page. Joins the session with the token of the room on another connection; returns the refusal's code, or "joined". */
async function joinWithToken() {
  const { Client } = await import('/lib/index.js');
  const { sessionId, token } = window.__joined;
  const client = new Client({});
  try {
    await client.connect();
    await client.request('session.join', { sessionId, token });
    return 'joined';
  } catch (error) {
    return error.code;
  } finally {
    client.leave();
  }
}

test('the host hands over, and the new host decides', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const host = await come(t, browser, url, ann);
  const guest = await come(t, browser, url, bob);
  await seesAll(host, { Bob: 'green' });
  await moderate(host, 'Bob', 'Make host');
  await host.find('dialog');
  await host.click('button', 'Make host');
  await guest.waitForStatus(says.host);
  await moderate(guest, 'Ann', 'Make guest');
  await host.waitFor('the former host has no room settings', "document.getElementById('more-options').hidden");
});

test('from the page of a room, two tabs see each other after one press each', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const tab = await approach(t, browser, url, { ...ann, label: 'first' });
  await enter(tab, {});
  const link = await tab.evaluate("document.getElementById('alone-link').textContent");
  assert.equal(link, `${url}/room/${room}`);
  const second = await approach(t, browser, url, { ...bob, label: 'second', sharing: tab });
  await enter(second, {});
  await tab.waitFor('the other person is seen', "document.querySelector('.person-tile video')?.videoWidth > 0");
  await second.waitFor('the first person is seen', "document.querySelector('.person-tile video')?.videoWidth > 0");
});

testInFull('six people see each other, in twelve rounds of leaving and joining again in random order',
  'rooms.test.mjs "three people in one room see and hear each other, chat, and a late one reads what was written"; '
  + 'unit/rooms-recovery', { timeout: 900_000 }, async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const seed = Number(process.env.CONFAB_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed}`);
  const random = randomFrom(seed);
  const names = { Ann: 'red', Bob: 'green', Cat: 'blue', Dan: 'yellow', Eve: 'cyan', Fay: 'magenta' };
  const people = [];
  for (const [name, color] of Object.entries(names)) people.push({ name, color, page: await come(t, browser, url, { name, color, room }) });
  await everyoneSeesEveryone(people);
  for (let round = 1; round <= 12; round += 1) {
    const time = stopwatch();
    // Each leaves and comes back on their own, so all orders and overlaps occur.
    const order = [...people].map((one) => ({ one, at: random() })).sort((a, b) => a.at - b.at).map(({ one }) => one);
    await Promise.all(order.map(async ({ page }) => {
      await leave(page);
      await page.click('button', 'Join again');
      await page.find('button', 'Leave');
    }));
    await everyoneSeesEveryone(people);
    t.diagnostic(`round ${round}: ${order.map(({ name }) => name).join(', ')} after ${time()}`);
  }
  assertNothingThrown(...people.map(({ page }) => page));
});

/** A small generator of pseudo-random numbers from 0 to 1 (mulberry32). @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
