// People nearby, in real browsers: live lists, locations, names, links, blocks, and deleting everything.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import {
  ann, approach, bob, call, cat, come, enter, find, findNobody, firstRow, isFree, isQuiet, lists, listsNot, moveTo, openMenu, places,
  rings, rowsOf, says, serveNearby, turnTo, switchHere,
} from './neighbor.mjs';
import { arrive, assertNoComplaints, assertNothingThrown, keepInTouch, meet } from './stranger.mjs';
import { testInFull } from './tier.mjs';

const { chromium } = sharedBrowsers();

/** Starts a server and opens its page for these people. */
async function gather(t, ...people) {
  const [{ url }, browser] = await Promise.all([serveNearby(t), chromium()]);
  const pages = await Promise.all(people.map((person) => come(t, browser, url, person)));
  return { url, browser, pages };
}

test('people appear in each other’s lists automatically, with a rough distance, and disappear when they leave', async (t) => {
  const { url, browser, pages: [a] } = await gather(t, ann);
  await a.waitFor('the list is empty', () => /no one else/i.test(document.getElementById('people-none').textContent));
  const [b, c] = await Promise.all([
    come(t, browser, url, { ...bob, at: places.nextDoor }), come(t, browser, url, { ...cat, at: places.nextTown }),
  ]);
  await lists(a, 'Bob', /^within [25] miles$/);
  await lists(a, 'Cat', /^within (50|100) miles$/);
  assert.deepEqual((await rowsOf(a)).map(({ name }) => name), ['Bob', 'Cat'], 'nearer people first, without oneself');
  await b.close();
  await listsNot(a, 'Bob');
  assertNoComplaints(a, c);
});

// A page sends its next location only after ten seconds.
testInFull('an impossible jump is rejected with a message',
  'SignalingTests NearbyTests.aLeapIsRefusedAndTheLocationStays; unit-app/nearby-words: every rejection has a text', async (t) => {
  const { pages: [a, b] } = await gather(t, ann, { ...cat, at: places.nextTown });
  await lists(a, 'Cat', /^within (50|100) miles$/);
  await moveTo(b, places.nextDoor);
  await b.until('the jump is refused', async () => /changed too fast/i.test(await b.alerts()));
  await lists(a, 'Cat', /^within (50|100) miles$/);
});

testInFull('a name with a bidirectional override is rejected with a message, and another is accepted',
  'SignalingTests PresenceTests.invalidNamesAreRefusedAndNothingChanges; unit-app/nearby-state: a rejected name', async (t) => {
  const { url } = await serveNearby(t);
  const page = await approach(t, await chromium(), url);
  await page.evaluate(() => {
    const name = document.getElementById('name');
    name.value = 'Ann\u202egpj.exe';
    name.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await page.click('checkbox', 'I am 18 or older and agree to the rules');
  await page.click('button', 'Go online');
  await page.until('the name is refused', async () => /name cannot be used/i.test(await page.alerts()));
  await enter(page, { name: 'Ann' });
  assert.match(await page.status(), /Ann/);
});

/** Chooses an option of a list box with the keyboard. */
async function choose(page, label, value) {
  const box = await page.find('combobox', label);
  await box.evaluate(function (wanted) {
    this.value = wanted;
    this.dispatchEvent(new Event('change', { bubbles: true }));
  }, value);
}

test('every setting works: no name, radius, unit, do not disturb, invisible, who may call', async (t) => {
  const { pages: [a, b, c, abroad] } = await gather(
    t, ann, { ...bob, at: places.nextDoor }, { ...cat, at: places.nextTown }, { name: '', at: places.abroad },
  );
  assert.match(await abroad.status(), /You are online as .*[A-Z]\p{L}+ [A-Z]\p{L}+/u, 'a missing name is generated');
  assertNoComplaints(abroad);

  await lists(a, 'Bob', /miles/);
  await lists(a, 'Cat');
  assert.deepEqual((await rowsOf(a)).map(({ name }) => name), ['Bob', 'Cat'], 'no one from abroad');
  await choose(a, 'Within', '5');
  await listsNot(a, 'Cat');
  await a.reload();
  await a.waitForStatus(says.here);
  assert.equal(await a.evaluate("document.getElementById('radius').value"), '5', 'remembered');
  await choose(a, 'Within', '200');
  await lists(a, 'Cat');
  await turnTo(a, 'settings');
  await choose(a, 'Show distances in', 'km');
  await turnTo(a, 'people');
  await lists(a, 'Bob', /^within [38] km$/);

  await turnTo(b, 'settings');
  await b.click('checkbox', 'Do not disturb');
  await b.waitForStatus(/saved/i);
  await call(a, 'Bob');
  await a.waitForStatus(says.busy);
  await isFree(a);
  assert.ok(!await b.has('button', 'Accept'));
  await turnTo(b, 'log');
  await firstRow(b, 'log', { name: 'Ann' });
  await turnTo(b, 'settings');
  await b.click('checkbox', 'Show me to people nearby');
  await listsNot(a, 'Bob');
  await turnTo(b, 'people');
  await lists(b, 'Ann');

  await turnTo(c, 'settings');
  await choose(c, 'Who may call me', 'contacts');
  await c.waitForStatus(/saved/i);
  await call(a, 'Cat');
  await a.until('the caller is notified', async () => /does not accept calls from you/i.test(await a.alerts()));
  await isQuiet(c);
  assertNothingThrown(a, b, c);
});

test('without a location no one is listed, and people find each other by a pasted or opened link', async (t) => {
  const { url, browser, pages: [a, b] } = await gather(t, { ...ann, at: null }, { ...bob, at: null });
  await a.find('button', 'Share my location');
  assert.deepEqual(await rowsOf(a), []);
  const link = await b.evaluate("document.getElementById('own-link').textContent");
  assert.ok(link.startsWith(`${url}/nearby#person=`));
  await find(a, link);
  await firstRow(a, 'found', { name: 'Bob', online: 'yes' });
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await b.click('button', 'Decline');
  await a.waitForStatus(says.declined);
  await findNobody(a, 'f'.repeat(32));

  const c = await approach(t, browser, url, { ...cat, hash: `#person=${b.personId}` });
  await enter(c, { name: 'Cat' });
  await firstRow(c, 'found', { name: 'Bob', online: 'yes' });
  assertNothingThrown(a, b, c);
});

test('blocked people cannot see or call the person who blocked them; unblocking undoes it', async (t) => {
  const { pages: [a, b] } = await gather(t, ann, bob);
  await Promise.all([lists(a, 'Bob'), lists(b, 'Ann')]);
  await openMenu(b, 'Ann');
  await b.click('button', 'Block');
  await b.find('dialog');
  await b.evaluate(() => document.getElementById('question-yes').click());
  await b.waitForStatus(/blocked/i);
  await Promise.all([listsNot(a, 'Bob'), listsNot(b, 'Ann')]);
  await find(a, b.personId);
  await firstRow(a, 'found', { name: 'Bob', online: 'no' });
  await turnTo(b, 'settings');
  // The server sends no ID with which a blocked person could be found. So the page cannot look up a stored name for it.
  await b.waitFor('there is a person to unblock', () => document.querySelector('#blocked button') !== null);
  await b.evaluate(() => document.querySelector('#blocked button').click());
  await lists(a, 'Bob');
});

test('two tabs of one browser are one person with one row, and a guest tab is another person', async (t) => {
  const { url, browser, pages: [a, b] } = await gather(t, ann, bob);
  const second = await approach(t, browser, url, { sharing: b });
  await second.waitForStatus(says.here);
  const guest = await come(t, browser, url, { name: 'Guest', sharing: b, guest: true });
  await lists(a, 'Guest');
  await lists(a, 'Bob');
  assert.equal((await rowsOf(a)).length, 2);
  assert.notEqual(guest.personId, b.personId);
});

test('all data can be downloaded; Delete my account leaves no row, and the next visit is a new person', async (t) => {
  const { pages: [a, b] } = await gather(t, ann, bob);
  await lists(a, 'Bob');
  await b.evaluate(() => {
    const native = URL.createObjectURL;
    URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return native(blob); };
    HTMLAnchorElement.prototype.click = () => {};
  });
  await turnTo(b, 'settings');
  await b.click('button', 'Download my data');
  const held = JSON.parse(await b.waitFor('there is a download', 'window.saved'));
  t.diagnostic(`held: ${Object.keys(held).join(', ')}`);
  assert.ok(JSON.stringify(held).includes('Bob'));

  const before = b.personId;
  await b.click('button', 'Delete my account');
  await b.click('button', 'Delete account');
  await b.find('button', 'Go online');
  await b.until('it says so', async () => /account was deleted/i.test(await b.alerts()));
  await listsNot(a, 'Bob');
  await enter(b, { name: 'Bob' });
  assert.notEqual(b.personId, before);
  await findNobody(a, before);
});

test('strangers who both press Keep in touch after a roulette chat find each other in their contacts', async (t) => {
  const { url } = await serveNearby(t);
  const browser = await chromium();
  const [red, green] = await Promise.all(['red', 'green'].map((color) => arrive(t, browser, url, { color })));
  await meet([red, 'red'], [green, 'green']);
  await keepInTouch(red, green);
  await red.click('button', 'Stop');
  await switchHere(green, url, { name: 'Green' });
  await switchHere(red, url, { name: 'Red' });
  await turnTo(red, 'contacts');
  await firstRow(red, 'contacts', { name: 'Green', online: 'yes' });
  await call(red, 'Green');
  await rings(green, 'Red');
});
