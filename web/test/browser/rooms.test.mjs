// People meet in a room in real browsers through the built server: everyone sees everyone, and hosts decide who comes in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { addDevices, source } from './in-page.mjs';
import { framesRise, soundArrives, soundStops } from './media.mjs';
import { approach, choose, come, drop, endings, ended, enter, hasNoFile, isPressed, leave, moderate, openChat, press, reads, removeFile, saveFile, says, seesAll, sendFile, setOption, setPassword, write } from './roommate.mjs';
import { freePort } from './server.mjs';
import { siteWithFrame } from './site.mjs';
import { assertNoComplaints, assertNothingThrown, serve } from './stranger.mjs';
import { isFull, testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();
const room = 'garden';
const ann = { name: 'Ann', color: 'red', room };
const bob = { name: 'Bob', color: 'green', room };
const cat = { name: 'Cat', color: 'blue', room };

/** Waits until each of these people sees exactly the others. @param {{timeout?: number}} [options] */
function everyoneSeesEveryone(people, options) {
  return Promise.all(people.map(({ page }) => seesAll(page, Object.fromEntries(
    people.filter((other) => other.page !== page).map(({ name, color }) => [name, color])), options)));
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

test('below a path of a site, a file that one person sends is saved by another with the same bytes, until a host removes it', async (t) => {
  const { url } = await serve(t, {}, { path: '/video' });
  const browser = await chromium();
  const one = await come(t, browser, url, ann);
  const other = await come(t, browser, url, bob);
  const bytes = Array.from({ length: 70_000 }, (_, at) => (at * 7 + (at >> 8)) % 256);
  await sendFile(other, 'plan <b>für</b> Mai.html', bytes);
  await openChat(one);
  await Promise.all([one, other].map((page) => reads(page, 'plan _b_für__b_ Mai.html')));
  const saved = await saveFile(one);
  assert.deepEqual([saved.name, saved.type], ['plan _b_für__b_ Mai.html', 'application/octet-stream']);
  assert.deepEqual(saved.bytes, bytes);
  const third = await come(t, browser, url, cat);
  await openChat(third);
  await reads(third, 'plan _b_für__b_ Mai.html');
  assert.equal(await third.evaluate("document.querySelector('#log .file-remove').checkVisibility()"), false, 'guests remove only their own');
  await write(one, 'Thank you');
  await write(other, 'You are welcome', one, third);
  await sendFile(other, 'again.txt', [1]);
  await reads(one, 'again.txt');
  await write(other, 'One more', one, third);
  const named = (page) => page.evaluate("[...document.querySelectorAll('#log .line .who')].map((who) => who.textContent.replace(/[^a-z]/gi, ''))");
  assert.deepEqual(await named(third), ['Bob', 'Ann', 'Bob'], 'a name stands above all lines of a person');
  await removeFile(one);
  assert.ok(await one.evaluate("document.activeElement.id === 'log'"), 'the focus is not lost with the button');
  await removeFile(one);
  await Promise.all([one, other, third].map(hasNoFile));
  assert.equal(await one.alerts(), '', 'each file was asked for once');
  assert.deepEqual(await named(third), ['Ann', 'Bob'], 'the lines that stay keep a name');
  assertNoComplaints(one, other, third);
});

test('a file that is dropped on the chat is sent, beside it nothing happens, and two at once are refused with a sentence', async (t) => {
  const { url } = await serve(t);
  const page = await come(t, await chromium(), url, ann);
  await openChat(page);
  await page.find('button', 'Attach a file');
  assert.ok(await drop(page, '#stage', 'beside.txt'), 'the browser would show the file instead of the page');
  assert.ok(await drop(page, '#log', 'one.txt', 'two.txt'));
  await page.until('it says that it takes one at a time', async () => /one file/.test(await page.alerts()));
  assert.ok(await drop(page, '#log', 'three.txt'));
  await reads(page, 'three.txt');
  assert.equal(await page.evaluate("document.querySelectorAll('#log .line').length"), 1);
});

test('a room that is direct between devices says so, also to a person whose link does not', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const one = await browser.newPage({ color: ann.color, label: 'Ann' });
  t.after(() => one.close());
  await one.goto(`${url}/rooms`);
  await one.click('checkbox', 'Peer-to-peer (small groups)');
  await one.fill('textbox', 'Room name', room);
  await one.click('button', 'Join');
  await one.find('textbox', 'Your name');
  assert.ok(await one.evaluate("document.getElementById('mesh-note').checkVisibility()"), 'the page says that members see addresses');
  await enter(one, ann);
  assert.equal(await one.evaluate("document.getElementById('alone-link').textContent"), `${url}/room/${room}?media=mesh`);
  const other = await approach(t, browser, url, { ...bob, label: 'Bob' });
  await press(other, bob);
  await other.until('it says that members see addresses', async () => /IP addresses/.test(await other.alerts()));
  assert.equal(await one.evaluate("document.querySelectorAll('.person-tile:not([hidden])').length"), 0, 'nobody came in');
  await enter(other, {});
  await everyoneSeesEveryone([{ page: one, ...ann }, { page: other, ...bob }]);
});

test('at the server’s bandwidth limit, the page says that others do not see the newcomer, nor the newcomer them', async (t) => {
  const { url } = await serve(t, { CONFAB_MEDIA_SESSION_BITRATE: '100kbit/s' });
  const browser = await chromium();
  const one = await come(t, browser, url, ann);
  const other = await come(t, browser, url, bob);
  // Longer than the server needs to measure.
  await Promise.all([one, other].map((page) => framesRise(page, { by: 45 })));
  const third = await come(t, browser, url, cat);
  await third.until('it says why nobody sees Cat', async () => /Others cannot see or hear you yet.*bandwidth limit/.test(await third.alerts()));
  await third.waitFor('the tiles say that they show nobody yet, and not that everyone is muted', () => (
    document.querySelectorAll('.person-tile[data-away="No audio or video yet"]:not([data-muted])').length === 2));
  assertNoComplaints(one, other, third);
});

test('the address of a room with a slash at its end leads to the room', async (t) => {
  const { url } = await serve(t);
  const answer = await fetch(`${url}/room/Tea%20at%205/?guest=1`);
  assert.deepEqual([answer.status, answer.url], [200, `${url}/room/Tea%20at%205?guest=1`]);
  assert.equal((await fetch(`${url}/room/a/b/`)).status, 404);
});

test('two tabs of one browser with one name are two people, and each sees the other', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const tab = await come(t, browser, url, ann);
  const second = await come(t, browser, url, { ...ann, color: 'green', sharing: tab });
  await Promise.all([seesAll(tab, { Ann: 'green' }), seesAll(second, { Ann: 'red' })]);
});

test('in the room, another camera is seen by the others at once, and their sound can be played elsewhere', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const one = await come(t, browser, url, { ...ann, scripts: [source(addDevices, { color: 'magenta' })] });
  const other = await come(t, browser, url, bob);
  await everyoneSeesEveryone([{ page: one, ...ann }, { page: other, ...bob }]);
  await choose(one, 'Camera', 'Another picture');
  await seesAll(other, { Ann: 'magenta' });
  await choose(one, 'Speakers', 'Headphones');
  const third = await come(t, browser, url, cat);
  await Promise.all([seesAll(one, { Bob: 'green', Cat: 'blue' }), seesAll(third, { Ann: 'magenta', Bob: 'green' })]);
  assert.deepEqual(await one.evaluate("[...document.querySelectorAll('.person-tile video')].map(({ sinkId }) => sinkId)"), ['headphones', 'headphones']);
  assertNoComplaints(one, other, third);
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

test('the holder of an application\'s token comes in with its name and role, past the password and the lobby, also after a reload', async (t) => {
  const server = await serve(t);
  const browser = await chromium();
  await server.command('room', 'create', room, '--password', 'tea', '--lobby');
  const token = await server.command('room', 'token', room, '--role', 'host', '--display-name', 'Dr. Ada');
  const page = await browser.newPage({ color: 'red', label: 'Ada' });
  t.after(() => page.close());
  await page.goto(`${server.url}/room/${room}#token=${token}`);
  await page.find('button', 'Join');
  assert.ok(!await page.has('textbox', 'Your name'), 'the token has the name');
  assert.ok(!await page.has('link', 'Other rooms'), 'an application chose the room');
  assert.equal(await page.evaluate('location.hash'), '', 'the token is not in the address');
  await enter(page);
  await page.reload();
  await enter(page);
  await page.click('button', 'People');
  await page.waitFor('the name and role of the token are shown', () => /Dr\. Ada \(you\)\s*Host/.test(document.getElementById('people').innerText));
  await page.close();
  const bad = await browser.newPage({ color: 'green', label: 'Eve' });
  t.after(() => bad.close());
  await bad.goto(`${server.url}/room/${room}#token=${token.slice(0, -4)}AAAA`);
  await press(bad);
  await ended(bad, endings.invitation);
  assertNothingThrown(bad);
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
  await guest.until('it says that the password is wrong', async () => /Wrong password/.test(await guest.alerts()));
  await press(guest, { password: 'open sesame' });
  await Promise.all([seesAll(host, { Bob: 'green' }), seesAll(guest, { Ann: 'red' })]);
});

test('the host mutes a guest and everyone, removes a guest, whose token no longer works, and a new host follows one who leaves', async (t) => {
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
  await host.click('button', 'Mute everyone');
  await Promise.all([guest, third].map((page) => page.waitForStatus(says.muted)));
  assert.deepEqual(await Promise.all([guest, third, host].map((page) => isPressed(page, 'mute'))), [true, true, false], 'the host is not muted');
  await moderate(host, 'Bob', 'Remove');
  await host.find('dialog');
  await host.click('button', 'Remove');
  await ended(guest, endings.removed);
  await everyoneSeesEveryone([{ page: host, ...ann }, { page: third, ...cat }]);
  assert.equal(await guest.evaluate(joinWithToken), 'token_match_ended');
  await leave(host);
  await third.waitForStatus(says.host);
  await third.waitFor('nobody else is there', "!document.getElementById('alone').hidden"); // The status line says so seconds later.
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

testInFull('the host hands over, and the new host decides',
  'RoomModerationTests; unit-app/room-inside; rooms.test.mjs "the host mutes a guest and everyone, removes a guest, whose token no longer works, '
  + 'and a new host follows one who leaves"', async (t) => {
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

test('a guest shares a screen with its sound, until a host stops it', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const host = await come(t, browser, url, ann);
  const guest = await come(t, browser, url, { ...bob, screen: { color: 'magenta', tone: 660 } });
  await guest.click('button', 'Mute');
  await soundStops(host); // So all that is heard from here on is the screen.
  await guest.click('button', 'Share screen');
  await seesAll(host, { Bob: 'green', 'Bob’s screen': 'magenta' });
  await soundArrives(host);
  assert.ok(await isPressed(guest, 'share'));
  await moderate(host, 'Bob', 'Stop their screen share');
  await guest.waitForStatus(says.shareStopped);
  await seesAll(host, { Bob: 'green' });
  assert.ok(!await isPressed(guest, 'share'));
  const captured = await guest.evaluate("navigator.mediaDevices.__screen.getTracks().map(({ kind, readyState }) => `${kind} ${readyState}`).sort()");
  assert.deepEqual(captured, ['audio ended', 'video ended'], 'the browser captures the screen no longer');
  // The guest may share again, and ends it without help.
  await guest.click('button', 'Share screen');
  await seesAll(host, { Bob: 'green', 'Bob’s screen': 'magenta' });
  await guest.click('button', 'Share screen');
  await seesAll(host, { Bob: 'green' });
  assertNoComplaints(host, guest);
});

test('a page of an allowed origin shows a room in a frame, in which an application’s user and the others see each other', async (t) => {
  const port = await freePort();
  const site = await siteWithFrame(t);
  const server = await serve(t, { CONFAB_ALLOWED_ORIGINS: `${site.origin}, http://127.0.0.1:${port}` }, { port });
  const browser = await chromium();
  await server.command('room', 'create', room);
  const token = await server.command('room', 'token', room, '--display-name', 'Dr. Ada');
  const address = `${server.url}/room/${room}`;
  site.frame = `${address}#token=${token}`;
  const outside = await browser.newPage({ color: 'red', label: 'the application’s' });
  t.after(() => outside.close());
  await outside.goto(site.origin);
  const inside = await outside.frame(address);
  await inside.find('button', 'Join');
  assert.ok(!await inside.has('textbox', 'Your name') && !await inside.has('link', 'Other rooms'));
  const granted = await inside.evaluate("['camera', 'microphone', 'display-capture', 'clipboard-write'].filter((name) => document.featurePolicy.allowsFeature(name))");
  assert.deepEqual(granted, ['camera', 'microphone', 'display-capture', 'clipboard-write'], 'the page in the frame may use what the frame grants');
  await enter(inside);
  const other = await come(t, browser, server.url, bob);
  await Promise.all([seesAll(inside, { Bob: 'green' }), seesAll(other, { 'Dr. Ada': 'red' })]);
  await leave(inside);
  assert.ok(!await inside.has('button', 'Other rooms'));
  assertNoComplaints(outside, other);
});

const rounds = isFull ? 12 : 4;

test(`six people see each other, in ${rounds} rounds of leaving and joining again in random order`, { timeout: 900_000 }, async (t) => {
  // Six pages with thirty videos keep a small machine busy for longer than the network: packets are read late, which looks like a
  // slow path. Congestion control then pauses some, as it should, until it has found that there is room for them.
  const slowly = { timeout: 90_000 };
  const { url } = await serve(t);
  const browser = await chromium();
  const seed = Number(process.env.CONFAB_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed}`);
  const random = randomFrom(seed);
  const whole = stopwatch();
  const names = { Ann: 'red', Bob: 'green', Cat: 'blue', Dan: 'yellow', Eve: 'cyan', Fay: 'magenta' };
  const people = await Promise.all(Object.entries(names).map(async ([name, color]) => (
    { name, color, page: await come(t, browser, url, { name, color, room }) })));
  await everyoneSeesEveryone(people, slowly);
  t.diagnostic(`all six saw each other after ${whole()}`);
  for (let round = 1; round <= rounds; round += 1) {
    const time = stopwatch();
    // Each leaves and comes back on their own, so all orders and overlaps occur.
    const order = [...people].map((one) => ({ one, at: random() })).sort((a, b) => a.at - b.at).map(({ one }) => one);
    await Promise.all(order.map(async ({ page }) => {
      await leave(page);
      await page.click('button', 'Join again');
      await page.find('button', 'Leave');
    }));
    await everyoneSeesEveryone(people, slowly);
    t.diagnostic(`round ${round}: ${order.map(({ name }) => name).join(', ')} after ${time()}`);
  }
  t.diagnostic(`everything took ${whole()}`);
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
