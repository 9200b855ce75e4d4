// Pages like RouletteTok's in browsers, with the built server. Their users meet users of our page and each other, over each of
// Socket.IO's transports. Every test has its own server, and so an empty queue.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { framesRise } from './media.mjs';
import { startSite } from './roulettetok/site.mjs';
import { closeTab, expectHeard, hears, meets, saysNoTextChat, visit, waits } from './roulettetok/visitor.mjs';
import { repository } from './server.mjs';
import { arrive, assertNoComplaints, assertNothingThrown, begin, says, see, seesNobody, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();

/** Settings with which the same two people are not matched again during a test, and quick skips have no penalty. */
const settings = { CONFAB_ROULETTE_REMATCH_WAIT: '300s', CONFAB_ROULETTE_SKIP_WINDOW: '0s' };

/** Timeouts that are far longer than a test. Only a client that disconnects explicitly leaves in time. */
const patient = {
  ...settings, CONFAB_SOCKET_IO_CLOSE_TIMEOUT: '300s', CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '300s',
  CONFAB_CONNECTION_RESUME_GRACE: '300s',
};

const transports = ['websocket', 'xhr-polling', 'jsonp-polling'];

/** Defines a test for one transport. The chosen transport is tested in the first tier. */
function testOver(transport, chosen, title, provedBy, body) {
  if (transport === chosen) test(`over ${transport}, ${title}`, body);
  else testInFull(`over ${transport}, ${title}`, provedBy, body);
}

/** A user of RouletteTok's page waits, then a user of ours comes and is matched. */
async function meetAcross(t, server, options, theirs = chromium) {
  const site = await startSite(t, server.port);
  const browser = await chromium();
  const red = await visit(t, await theirs(), site, { color: 'red', options });
  await waits(red);
  const green = await arrive(t, browser, server.url, { color: 'green' });
  const time = stopwatch();
  await begin(green);
  await Promise.all([meets(red, 'green'), see(green, 'red')]);
  t.diagnostic(`both saw each other after ${time()}`);
  await saysNoTextChat(green);
  return { site, browser, red, green };
}

test('the server serves the script that such pages load', async (t) => {
  const { url } = await serve(t);
  const response = await fetch(`${url}/socket.io/socket.io.js`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^text\/javascript/);
  const file = await readFile(path.join(repository, 'web', 'socket.io', 'socket.io.js'), 'utf8');
  assert.equal(await response.text(), file);
});

for (const transport of transports) {
  testInFull(`over ${transport}, a user of RouletteTok's page and one of ours see each other`,
    'the tests of Next, leaving and Firefox below, which begin so; SignalingTests LegacyClientTests.mixed', async (t) => {
    const { red, green } = await meetAcross(t, await serve(t, settings), { transports: [transport] });
    await Promise.all([red, green].map((page) => framesRise(page)));
    await expectHeard(red, `connecting ${transport}`, 'connect', 'initial', 'empty', 'subscribe');
    assertNoComplaints(red, green);
  });

  testOver(transport, 'websocket', 'Next at either page parts both, and each meets another person',
    'the same over websocket; unit-socketio/talking: polls again after every answer, gets calls and posts forms', async (t) => {
    const server = await serve(t, settings);
    const { site, browser, red, green } = await meetAcross(t, server, { transports: [transport] });

    const time = stopwatch();
    await red.click('button', 'Next');
    await green.waitForStatus(says.movedOn);
    await Promise.all([seesNobody(green), waits(red)]);
    t.diagnostic(`both were alone after ${time()}`);
    const arrived = [`connecting ${transport}`, 'connect', 'initial'];
    await expectHeard(red, ...arrived, 'empty', 'subscribe', 'disconnectPartner', 'empty');

    // Our page continued its search automatically, so it is first in the queue.
    const blue = await visit(t, browser, site, { color: 'blue', options: { transports: [transport] } });
    await Promise.all([meets(blue, 'green'), see(green, 'blue')]);
    const yellow = await arrive(t, browser, server.url, { color: 'yellow' });
    await begin(yellow);
    await Promise.all([meets(red, 'yellow'), see(yellow, 'red')]);

    const again = stopwatch();
    await green.click('button', 'Next');
    await waits(blue);
    t.diagnostic(`both were alone after ${again()}`);
    await expectHeard(blue, ...arrived, 'subscribe', 'disconnectPartner', 'empty');
    await framesRise(red);
    assertNothingThrown(red, green, blue, yellow);
  });

  testOver(transport, 'websocket', 'who closes either page has left, and the other is notified at once',
    'over websocket and in Firefox; over jsonp-polling when two at RouletteTok’s page part', async (t) => {
    const server = await serve(t, patient);
    const { site, browser, red, green } = await meetAcross(t, server, { transports: [transport] });
    const time = stopwatch();
    await closeTab(t, red);
    await green.waitForStatus(says.left);
    t.diagnostic(`our page was notified after ${time()}`);
    await seesNobody(green);
    const blue = await visit(t, browser, site, { color: 'blue', options: { transports: [transport] } });
    await Promise.all([meets(blue, 'green'), see(green, 'blue')]);
    const again = stopwatch();
    await green.close();
    await waits(blue);
    t.diagnostic(`RouletteTok's page was notified after ${again()}`);
    await hears(blue, 'disconnectPartner', 1);
    assertNothingThrown(blue);
  });

  testOver(transport, 'jsonp-polling', 'two at RouletteTok\'s page meet, part and go',
    'the same over jsonp-polling, where the other page is on websocket; SignalingTests LegacyClientTests', async (t) => {
    const { port } = await serve(t, {
      ...patient, CONFAB_ROULETTE_REMATCH_WAIT: '1ms', CONFAB_ROULETTE_RETRY_INTERVAL: '50ms',
    });
    const site = await startSite(t, port);
    const browser = await chromium();
    const [red, blue] = [
      await visit(t, browser, site, { color: 'red', options: { transports: [transport] } }),
      await visit(t, browser, site, { color: 'blue' }),
    ];
    await Promise.all([meets(red, 'blue'), meets(blue, 'red')]);
    await Promise.all([red, blue].map((page) => framesRise(page)));
    await blue.click('button', 'Next');
    // Nobody else is waiting, so the two are matched again.
    await Promise.all([red, blue].map((page) => hears(page, 'subscribe', 2)));
    await Promise.all([meets(red, 'blue'), meets(blue, 'red')]);
    assertNoComplaints(red, blue);
    await closeTab(t, red);
    await waits(blue);
    await hears(blue, 'disconnectPartner', 2);
    assertNothingThrown(blue);
  });
}

test('in Firefox the page works too, and its partner is notified when it closes', async (t) => {
  const { red, green } = await meetAcross(t, await serve(t, patient), { transports: ['xhr-polling'] }, firefox);
  await Promise.all([red, green].map((page) => framesRise(page)));
  assertNoComplaints(red, green);
  await closeTab(t, red);
  await green.waitForStatus(says.left);
});

testInFull('pressing Next repeatedly without a partner matches nobody twice',
  'SignalingTests LegacyClientTests.nextTwice, OldFaultTests.pressingNextWhileWaitingNeverPairsAPersonWithThemselves', async (t) => {
  const { url, port } = await serve(t, settings);
  const browser = await chromium();
  const red = await visit(t, browser, await startSite(t, port), { color: 'red' });
  for (let press = 0; press < 3; press += 1) await red.click('button', 'Next');
  await waits(red);
  for (let press = 0; press < 3; press += 1) await red.click('button', 'Next');
  const green = await arrive(t, browser, url, { color: 'green' });
  await begin(green);
  await Promise.all([meets(red, 'green'), see(green, 'red')]);
  await Promise.all([hears(red, 'initial', 1), hears(red, 'subscribe', 1), hears(red, 'disconnectPartner', 0)]);
  assertNoComplaints(red, green);
});
