// Strangers meet in real browsers through the built server. They see and hear each other, chat, and move on.
// Run by `scripts/test browser`. Every test has its own server, and so an empty queue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { keepMessages, peerDetails, source } from './in-page.mjs';
import { framesDecoded, framesRise, remoteColor, seesColor } from './media.mjs';
import {
  arrive, assertNoComplaints, begin, keepReceiving, mediaPort, meet, reads, says, see, seesNobody, serve, write,
} from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();
/** The name that DTLS has for the cipher of RFC 7714. */
const gcm = 'SRTP_AEAD_AES_128_GCM';

test('two strangers in Chromium meet, see and hear each other, chat, mute, and exchange media only with the server', async (t) => {
  const server = await serve(t);
  await server.child.line(/guest=1/, 10_000); // The server's output explains how one person can try it.
  const browser = await chromium();
  const scripts = [source(keepMessages)];
  const red = await arrive(t, browser, server.url, { color: 'red', scripts });
  const green = await arrive(t, browser, server.url, { color: 'green', scripts });
  const time = stopwatch();
  await meet([red, 'red'], [green, 'green']);
  t.diagnostic(`both saw each other after ${time()}`);
  assert.ok(await red.has('video', 'You'), 'the user sees the preview');
  const before = await Promise.all([red, green].map(framesDecoded));
  await keepReceiving(red, green);
  t.diagnostic(`frames ${before} → ${await Promise.all([red, green].map(framesDecoded))}, with sound, after ${time()}`);

  for (const page of [red, green]) {
    const port = await mediaPort(page);
    assert.ok(server.log.some((line) => line.includes(`port=${port}`)), `${port} is the media port:\n${server.log.join('\n')}`);
    const types = await page.evaluate(() => window.__heard.map(({ text }) => JSON.parse(text).type));
    assert.ok(!types.includes('session.negotiate'), 'no negotiation with the partner');
  }

  // Text is sent by the Send button and by Enter, and markup stays text.
  const writing = stopwatch();
  await write(red, 'Hello, <b>green</b> & co. ☕', { by: 'Send' });
  await reads(green, 'Hello, <b>green</b> & co. ☕');
  await write(green, 'Hello, red.');
  await reads(red, 'Hello, red.');
  t.diagnostic(`both lines were read after ${writing()}`);
  await Promise.all([reads(red, 'Hello, <b>green</b>'), reads(green, 'Hello, red.')]);

  await red.click('button', 'Camera off');
  await green.until('the red video is gone', async () => await remoteColor(green) !== 'red');
  await red.click('button', 'Camera off');
  await seesColor(green, 'red');
  await red.click('button', 'Mute');
  const pressed = await (await red.find('button', 'Mute')).evaluate(function () { return this.getAttribute('aria-pressed'); });
  assert.equal(pressed, 'true');
  assertNoComplaints(red, green);
});

test('a stranger in Chromium and one in Firefox meet over encrypted media, and Firefox leaves when its tab closes', async (t) => {
  // The grace period is far longer than the test, so the partner is notified in time only if the page leaves, not if its
  // connection drops.
  const { url } = await serve(t, { CONFAB_CONNECTION_RESUME_GRACE: '300s' });
  const blue = await arrive(t, await chromium(), url, { color: 'blue' });
  const yellow = await arrive(t, await firefox(), url, { color: 'yellow' });
  const time = stopwatch();
  await meet([blue, 'blue'], [yellow, 'yellow']);
  t.diagnostic(`both saw each other after ${time()}`);
  await keepReceiving(blue, yellow);
  for (const page of [blue, yellow]) {
    const details = await page.evaluate(peerDetails);
    assert.deepEqual(details.map(({ direction }) => direction).sort(), ['recvonly', 'sendonly'], page.label);
    for (const { direction, transport, pair } of details) {
      t.diagnostic(`${page.label}, ${direction}: ${JSON.stringify(transport)} over ${pair?.local.protocol}`);
      // Firefox does not report it. Its partner does, and the server negotiates the same with every client that offers it.
      if (page === blue || transport?.srtpCipher) assert.equal(transport.srtpCipher, gcm, `${page.label}, ${direction}`);
    }
  }
  assertNoComplaints(blue, yellow);
  await yellow.close();
  await blue.waitForStatus(says.left);
});

test('two people who chose text only chat, and no camera is opened', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const one = await arrive(t, browser, url, { color: 'red' });
  const other = await arrive(t, browser, url, { color: 'green' });
  await begin(one, { textOnly: true, name: 'Ann' });
  await one.waitForStatus(says.looking);
  await begin(other, { textOnly: true, name: 'Bob' });
  await Promise.all([one, other].map((page) => page.waitForStatus(says.writing)));
  assert.match(await one.status(), /Bob/);
  assert.match(await other.status(), /Ann/);
  await write(one, 'Just words.');
  await reads(other, 'Just words.');
  assert.equal(await one.evaluate("window.__peers.filter((peer) => peer.connectionState !== 'closed').length"), 0);
});

test('Next separates two strangers, and each meets another', async (t) => {
  // Longer than the test, because two people who separated must not be matched again while it runs.
  const { url } = await serve(t, { CONFAB_ROULETTE_REMATCH_WAIT: '120s' });
  const browser = await chromium();
  const colors = ['red', 'green', 'blue', 'yellow'];
  const [red, green, blue, yellow] = await Promise.all(colors.map((color) => arrive(t, browser, url, { color })));
  await meet([red, 'red'], [green, 'green']);
  await meet([blue, 'blue'], [yellow, 'yellow']);

  const time = stopwatch();
  await red.click('button', 'Next');
  await green.waitForStatus(says.movedOn);
  await Promise.all([seesNobody(red), seesNobody(green)]);
  t.diagnostic(`both were alone after ${time()}`);
  await blue.click('button', 'Next');
  const [ofRed, ofGreen] = await Promise.all([see(red, ['blue', 'yellow']), see(green, ['blue', 'yellow'])]);
  assert.notEqual(ofRed, ofGreen, 'each must meet a new partner');
  await Promise.all([see(blue, ['red', 'green']), see(yellow, ['red', 'green'])]);
  t.diagnostic(`all four were in new chats after ${time()}`);
  await Promise.all([red, green, blue, yellow].map((page) => framesRise(page)));
  assertNoComplaints(red, green, blue, yellow);
});

test('Stop ends the chat, and Start begins a new one', async (t) => {
  const { url } = await serve(t, { CONFAB_ROULETTE_REMATCH_WAIT: '1ms', CONFAB_ROULETTE_RETRY_INTERVAL: '10ms' });
  const browser = await chromium();
  const red = await arrive(t, browser, url, { color: 'red' });
  const green = await arrive(t, browser, url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  await red.click('button', 'Stop');
  await green.waitForStatus(says.stopped);
  await seesNobody(green);
  await red.click('button', 'Start');
  await Promise.all([see(red, 'green'), see(green, 'red')]);
  await keepReceiving(red, green);
});

testInFull('two tabs of one browser are one person, and are never paired',
  'SignalingTests PeopleTests.twoTabsOfOnePersonAreNeverPaired; '
  + 'roulette-look.test.mjs "problems look right"', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const tab = await arrive(t, browser, url, { color: 'red' });
  await begin(tab);
  await tab.waitForStatus(says.looking);
  const second = await arrive(t, browser, url, { color: 'blue', sharing: tab });
  await begin(second);
  await second.until('the second tab says where one is already', async () => /another tab/i.test(await second.alerts()));
  // The queue had time to match the two tabs before this person came.
  const stranger = await arrive(t, browser, url, { color: 'green' });
  await begin(stranger);
  await Promise.all([see(stranger, 'red'), see(tab, 'green')]);
  assert.match(await remoteColor(second), /^no element|^no frame/);
});

testInFull('a guest tab is another person, so one person can try it with two tabs',
  'nearby.test.mjs "two tabs of one browser are one person with one row, and a guest tab is another person"; '
  + 'unit-app/memory "a guest leaves nothing in the browser"', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const tab = await arrive(t, browser, url, { color: 'red' });
  const guest = await arrive(t, browser, url, { color: 'green', sharing: tab, guest: true });
  await meet([tab, 'red'], [guest, 'green']);
  await keepReceiving(tab, guest);
});
