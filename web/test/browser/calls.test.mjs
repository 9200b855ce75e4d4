// People nearby call each other in real browsers, through the built server and its media plane: every kind of call.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { unplugMicrophone } from './in-page.mjs';
import { framesRise, remoteColor, seesColor } from './media.mjs';
import {
  ann, bob, call, cat, come, dan, firstRow, isFree, isQuiet, lists, openMenu, places, rings, rowsOf, says, see, serveNearby, talk,
  turnTo,
} from './neighbor.mjs';
import { assertNoComplaints, assertNothingThrown, keepReceiving } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();

/** Two people in each other's lists. */
async function two(t, env, others = chromium, options = {}) {
  const [server, browser, other] = await Promise.all([serveNearby(t, env, options), chromium(), others()]);
  const [a, b] = await Promise.all([
    come(t, browser, server.url, ann), come(t, other, server.url, { ...bob, at: places.nextDoor }),
  ]);
  await Promise.all([lists(a, 'Bob'), lists(b, 'Ann')]);
  return { server, browser, a, b };
}

test('below a path of a site, a person nearby is listed, called and accepts, and both see and hear each other', async (t) => {
  const { server, a, b } = await two(t, {}, chromium, { path: '/video' });
  const link = await a.evaluate("document.getElementById('own-link').textContent");
  assert.ok(link.startsWith(`${server.url}/nearby#person=`), link);
  await a.waitFor('the QR code of the link is shown', "document.querySelector('#own-qr img')?.naturalWidth > 0");
  await lists(a, 'Bob', /within [25] miles/);
  const time = stopwatch();
  await call(a, 'Bob');
  await rings(b, 'Ann');
  t.diagnostic(`it rang after ${time()}`);
  await a.waitForStatus(says.ringing);
  for (const name of ['Accept', 'Accept without video', 'Decline']) assert.ok(await b.has('button', name), name);
  assert.ok(await a.has('button', 'Cancel'));
  await b.click('button', 'Accept');
  await Promise.all([see(a, bob), see(b, ann)]);
  t.diagnostic(`both saw each other after ${time()}`);
  await keepReceiving(a, b);
  for (const name of ['Mute', 'Camera off', 'Switch camera', 'End', 'Keep in touch']) assert.ok(await a.has('button', name), name);
  const own = await (await a.find('video', 'You')).evaluate(function () {
    const box = this.closest('#you').getBoundingClientRect();
    return { width: box.width, height: box.height, mirrored: this.style.transform };
  });
  assert.deepEqual(own, { width: 120, height: 120, mirrored: 'scaleX(-1)' });
  await a.waitFor('the clock of the call goes', () => /^(?!0:00)\d+:\d\d$/.test(document.getElementById('elapsed').textContent));
  await a.click('button', 'End');
  await b.waitForStatus(says.hungUp);
  await a.waitForStatus(says.ended);
  await Promise.all([isFree(a), isFree(b)]);
  await turnTo(a, 'log');
  await firstRow(a, 'log', { name: 'Bob', hint: /^You called .*0:\d\d$/, missed: false });
  await turnTo(b, 'log');
  await firstRow(b, 'log', { name: 'Ann', hint: /^Called you/ });
  assertNoComplaints(a, b);
});

test('Chromium calls Firefox: it rings there, both see and hear each other, and Firefox calls back', async (t) => {
  const { a, b } = await two(t, {}, firefox);
  await talk([a, ann], [b, bob]);
  await keepReceiving(a, b);
  await b.click('button', 'End');
  await a.waitForStatus(says.hungUp);
  await Promise.all([isFree(a), isFree(b)]);
  await talk([b, bob], [a, ann]);
  assertNothingThrown(a, b);
});

test('a call is canceled; declined, repeated and accepted; unanswered and missed: both are notified, and the call history shows it', async (t) => {
  const { a, b } = await two(t, { CONFAB_CALL_RING_TIMEOUT: '5s' });
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await a.click('button', 'Cancel');
  await b.waitForStatus(says.cancelled);
  await Promise.all([isFree(a), isQuiet(b)]);

  await call(a, 'Bob');
  await rings(b, 'Ann');
  await b.click('button', 'Decline');
  await a.waitForStatus(says.declined);
  await Promise.all([isFree(a), isQuiet(b)]);
  await a.click('button', 'Call again');
  await rings(b, 'Ann');
  await b.click('button', 'Accept');
  await Promise.all([see(a, bob), see(b, ann)]);
  await a.click('button', 'End');
  await b.waitForStatus(says.hungUp);
  await Promise.all([isFree(a), isFree(b)]);

  await call(a, 'Bob');
  await rings(b, 'Ann');
  // The texts disappear after a while.
  await Promise.all([a.waitForStatus(says.unanswered), b.waitForStatus(says.missed)]);
  await isQuiet(b);
  assert.equal(await b.evaluate("document.getElementById('missed').textContent"), '1');
  await turnTo(b, 'log');
  await firstRow(b, 'log', { name: 'Ann', hint: /^Missed/, missed: true });
  assert.equal(await b.evaluate("document.getElementById('missed').textContent"), '');
  assertNothingThrown(a, b);
});

test('during a call one more may ring, further callers get busy; accepting the waiting call ends the first', async (t) => {
  const { server, browser, a, b } = await two(t);
  const [c, d] = await Promise.all([cat, dan].map((person) => come(t, browser, server.url, person)));
  await Promise.all([lists(c, 'Bob'), lists(d, 'Bob')]);
  await talk([a, ann], [b, bob]);
  await call(c, 'Bob');
  await rings(b, 'Cat');
  assert.match(await b.evaluate("document.getElementById('waiting-text').textContent"), /ends the current call/);
  await call(d, 'Bob');
  await d.waitForStatus(says.busy);
  await b.click('button', 'Accept');
  await a.waitForStatus(says.hungUp);
  await Promise.all([see(b, cat), see(c, bob)]);
  await keepReceiving(b, c);
  await isFree(a);
  assertNothingThrown(a, b, c, d);
});

testInFull('a waiting call can be declined, and the first continues',
  'SignalingTests CallDeviceTests.decliningTheWaitingCallLeavesTheFirst; nearby-look: a call looks right from the first ring', async (t) => {
  const { server, browser, a, b } = await two(t);
  const c = await come(t, browser, server.url, cat);
  await lists(c, 'Bob');
  await talk([a, ann], [b, bob]);
  await call(c, 'Bob');
  await rings(b, 'Cat');
  await b.click('button', 'Decline');
  await c.waitForStatus(says.declined);
  await Promise.all([see(a, bob), see(b, ann), keepReceiving(a, b)]);
});

test('two devices linked by a code ring together; one answers, and the other shows where', async (t) => {
  const { server, browser, a, b } = await two(t);
  const second = await come(t, browser, server.url, { name: 'Phone', color: 'cyan', at: places.nextDoor });
  await turnTo(b, 'settings');
  await b.click('button', 'Link another device');
  const code = await b.waitFor('there is a code', "document.getElementById('code-text').textContent");
  assert.match(code, /^[0-9A-Z]{4}-[0-9A-Z]{4}$/);
  await b.waitFor('its QR code is shown', "document.querySelector('#code-qr img')?.naturalWidth > 0");
  await turnTo(second, 'settings');
  await second.fill('textbox', 'Code from your other device', code);
  await second.click('button', 'Link this device');
  await second.click('button', 'Link');
  await second.until('it is the same person', async () => (await rowsOf(second, 'devices')).length === 2);
  assert.equal(await second.evaluate("document.getElementById('own-name').value"), 'Bob');
  await turnTo(second, 'people');
  await lists(second, 'Ann');

  await call(a, 'Bob');
  await Promise.all([rings(b, 'Ann'), rings(second, 'Ann')]);
  await second.click('button', 'Accept');
  await b.waitForStatus(says.answeredElsewhere);
  await isQuiet(b);
  await Promise.all([see(a, { name: 'Bob', color: 'cyan' }), see(second, ann)]);
  // A code works only once.
  await a.click('button', 'End');
  await isFree(a);
  await turnTo(a, 'settings');
  await a.fill('textbox', 'Code from your other device', code);
  await a.click('button', 'Link this device');
  await a.click('button', 'Link');
  await a.until('the code is refused', async () => /wrong|used/i.test(await a.alerts()));
  assertNothingThrown(a, b, second);
});

testInFull('two people who call each other at the same moment end up in one call',
  'SignalingTests CallDeviceTests.mutualCallsMergeIntoOne; scripts/calls: two people who call each other continue in one call', async (t) => {
  const { a, b } = await two(t);
  await Promise.all([call(a, 'Bob'), call(b, 'Ann')]);
  // The clicks may be further apart than the calls take to ring.
  await Promise.all([a, b].map((page) => page.until('it is a call', async () => {
    // The button may disappear before it is clicked, because the two calls were merged.
    if (await page.has('button', 'Accept')) await page.click('button', 'Accept', { timeout: 1_000 }).catch(() => {});
    return page.has('button', 'End');
  })));
  await Promise.all([see(a, bob), see(b, ann)]);
  await keepReceiving(a, b);
  for (const page of [a, b]) assert.ok(!await page.has('button', 'Accept'), 'no other call rings');
  await a.click('button', 'End');
  await b.waitForStatus(says.hungUp);
  await Promise.all([isFree(a), isFree(b)]);
  assertNothingThrown(a, b);
});

testInFull('closing the caller\'s tab while it rings cancels the call',
  'SignalingTests CallTests.theCallersTabIsClosedWhileItRings; unit/client-page: sends bye when the page unloads', async (t) => {
  const { a, b } = await two(t, { CONFAB_CONNECTION_RESUME_GRACE: '300s' });
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await a.close();
  await b.waitForStatus(says.cancelled);
  await isQuiet(b);
});

testInFull('closing the tab during a call hangs up',
  'SignalingTests CallTests.closingThePageHangsUp; unit/client-page: sends bye when the page unloads', async (t) => {
  const { a, b } = await two(t, { CONFAB_CONNECTION_RESUME_GRACE: '300s' });
  await talk([a, ann], [b, bob]);
  await b.close();
  await a.waitForStatus(says.hungUp);
  await isFree(a);
});

test('a voice call rings as one; a video call accepted without video opens no camera, and it can be turned on in the call', async (t) => {
  const { a, b } = await two(t);
  await openMenu(a, 'Bob');
  await a.click('button', 'Voice call');
  await rings(b, 'Ann');
  assert.match(await b.evaluate("document.getElementById('incoming-title').textContent"), /^Voice call/);
  assert.ok(!await b.has('button', 'Accept without video'));
  await b.click('button', 'Accept');
  await Promise.all([a, b].map((page) => page.waitForStatus(says.talking)));
  assert.equal(await a.evaluate("window.__peers.flatMap((peer) => peer.getSenders()).filter((sender) => sender.track?.kind === 'video').length"), 0);
  await a.click('button', 'End');
  await b.waitForStatus(says.hungUp);
  await Promise.all([isFree(a), isFree(b)]);

  await b.evaluate(() => {
    window.asked = [];
    const native = navigator.mediaDevices.getUserMedia;
    navigator.mediaDevices.getUserMedia = (constraints) => { window.asked.push(Boolean(constraints.video)); return native(constraints); };
  });
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await b.click('button', 'Accept without video');
  await see(b, ann);
  await a.waitForStatus(says.talking);
  assert.deepEqual(await b.evaluate('window.asked'), [false]);
  assert.notEqual(await remoteColor(a), 'green');
  await b.click('button', 'Camera off');
  await seesColor(a, 'green');
  await b.click('button', 'Camera off');
  await a.until('the green video is gone', async () => await remoteColor(a) !== 'green' || !await a.has('video', 'Bob'));
  await keepReceiving(b);
  assertNothingThrown(a, b);
});

testInFull('unplugging the only microphone shows a notice, and plugging it in restores the audio; the call continues',
  'unit-app/nearby-media: the only microphone, when unplugged; unit-app/nearby-call: a microphone unplugged in a call', async (t) => {
  const { a, b } = await two(t);
  await talk([a, ann], [b, bob]);
  await b.evaluate(unplugMicrophone);
  await b.until('it says so', async () => /microphone was disconnected.*reconnect it/i.test(await b.alerts()));
  await Promise.all([see(a, bob), see(b, ann), framesRise(a), keepReceiving(b)]);
  await b.evaluate('window.plugIn()');
  await b.until('nothing is said any more', async () => await b.alerts() === '');
  await keepReceiving(a, b);
  assertNothingThrown(a, b);
});

testInFull('both press Keep in touch in a call, and become contacts who see each other go online and offline',
  'SignalingTests ContactTests.bothMustAgreeToBecomeContacts and contactsAreNotifiedOfPresence; nearby: strangers who both press Keep in touch', async (t) => {
  const { a, b } = await two(t);
  await talk([a, ann], [b, bob]);
  await a.click('button', 'Keep in touch');
  await b.waitFor('the other person is notified', () => /would like to keep in touch/.test(document.getElementById('keep-words').textContent));
  await b.click('button', 'Keep in touch');
  await Promise.all([a, b].map((page) => page.waitFor('they are contacts', () => /are now contacts/.test(document.getElementById('keep-words').textContent))));
  await a.click('button', 'End');
  await isFree(a);
  await turnTo(a, 'contacts');
  await firstRow(a, 'contacts', { name: 'Bob', online: 'yes' });
  await b.close();
  await firstRow(a, 'contacts', { name: 'Bob', online: 'no' });
  await call(a, 'Bob');
  await a.waitForStatus(says.unreachable);
  assertNothingThrown(a);
});

testInFull('a person is never in a call and a roulette chat at once',
  'SignalingTests CallHostileTests.callingWhileInTheRouletteIsRefused; unit-app/words: every rejection of a search', async (t) => {
  const { server, browser, a, b } = await two(t);
  await talk([a, ann], [b, bob]);
  const tab = await browser.newPage({ color: 'magenta', sharing: a });
  t.after(() => tab.close());
  await tab.goto(`${server.url}/strangers`);
  await tab.click('button', 'Start');
  await tab.until('the other tab is named as the reason', async () => /another tab/i.test(await tab.alerts()));
  await Promise.all([see(a, bob), see(b, ann)]);
});

test('a page without a user gesture shows that it cannot play the ringtone', async (t) => {
  const { a, b } = await two(t);
  // A returning user goes online without pressing anything, so there is no user gesture.
  await b.reload();
  await b.waitForStatus(says.here);
  await lists(a, 'Bob');
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await b.waitFor('it says so', () => /to hear the ringtone/.test(document.getElementById('incoming-note').textContent));
});
