// Calls and bad networks, killed browsers and a killed server, in real browsers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { launchChromium } from './chromium.mjs';
import { framesRise } from './media.mjs';
import { ann, bob, call, come, isFree, isQuiet, lists, rings, says, see, serveNearby, talk } from './neighbor.mjs';
import { startProxy } from './proxy.mjs';
import { assertNothingThrown, keepReceiving } from './stranger.mjs';
import { isFull, testInFull } from './tier.mjs';
import { elapsed, stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();

/** Two people in each other's lists. The second one connects through `url` if given. */
async function two(t, server, url = server.url, others = chromium) {
  const [a, b] = await Promise.all([come(t, await chromium(), server.url, ann), come(t, await others(), url, bob)]);
  await Promise.all([lists(a, 'Bob'), lists(b, 'Ann')]);
  for (const page of [a, b]) await page.evaluate('window.untouched = true');
  return { a, b };
}

async function nobodyReloaded(...pages) {
  for (const page of pages) assert.equal(await page.evaluate('window.untouched'), true, `${page.label} was not reloaded`);
  assertNothingThrown(...pages);
}

test('a callee whose network fails during the call returns to it', async (t) => {
  const server = await serveNearby(t);
  const proxy = await startProxy(server.frontPort);
  t.after(() => proxy.close());
  const { a, b } = await two(t, server, proxy.url);
  await talk([a, ann], [b, bob]);
  const gone = elapsed(isFull ? 8_000 : 0, 'the outage');
  await proxy.cut();
  await Promise.all([a.waitForStatus(says.away), b.waitForStatus(says.dropped)]);
  await gone;
  const time = stopwatch();
  await proxy.heal();
  await Promise.all([a, b].map((page) => page.waitForStatus(says.talking)));
  t.diagnostic(`both were back in the call ${time()} after the network was`);
  await Promise.all([see(a, bob), see(b, ann), keepReceiving(a, b)]);
  await a.click('button', 'End');
  await b.waitForStatus(says.hungUp);
  await nobodyReloaded(a, b);
});

testInFull('a callee whose browser is killed in the call may return for a while, then the call ends with a lost connection',
  'SignalingTests CallTests.aMemberWhoDoesNotReturnEndsTheCall; nearby-look: a call looks right; unit-app/nearby-words: every ending', async (t) => {
  const server = await serveNearby(t, { CONFAB_CONNECTION_RESUME_GRACE: '2s' });
  const doomed = await launchChromium();
  t.after(() => doomed.close());
  const { a, b } = await two(t, server, server.url, async () => doomed);
  await talk([a, ann], [b, bob]);
  await doomed.kill();
  await a.waitForStatus(says.away);
  await a.waitForStatus(says.connectionLost);
  await isFree(a);
  await nobodyReloaded(a);
});

testInFull('a network failure while it rings: the call keeps ringing, and is answered when the network is back',
  'SignalingTests ResumingTests.missedMessagesArriveOnceAndInOrder and CallTests.theCallersConnectionDropsWhileItRings; scripts/connection: a resume sends what the server lacks again', async (t) => {
  const server = await serveNearby(t);
  const proxy = await startProxy(server.frontPort);
  t.after(() => proxy.close());
  const { a, b } = await two(t, server, proxy.url);
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await proxy.cut();
  await b.waitForStatus(says.dropped);
  await proxy.heal();
  await b.until('the line is back', async () => !says.dropped.test(await b.status()));
  await b.click('button', 'Accept');
  await Promise.all([see(a, bob), see(b, ann)]);
  await nobodyReloaded(a, b);
});

testInFull('a server restart while it rings: the call keeps ringing, and is answered',
  'SignalingTests CallRestartTests.aRingingCallCanBeAcceptedAfterARestart; scripts/calls: after a restart, a call that rings again continues', async (t) => {
  const server = await serveNearby(t);
  const { a, b } = await two(t, server);
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await a.waitForStatus(says.ringing);
  await server.kill('SIGKILL');
  await Promise.all([a, b].map((page) => page.waitForStatus(says.dropped)));
  const time = stopwatch();
  await server.start();
  await Promise.all([a, b].map((page) => page.until('the line is back', async () => !says.dropped.test(await page.status()))));
  await rings(b, 'Ann');
  await b.click('button', 'Accept');
  await Promise.all([see(a, bob), see(b, ann)]);
  t.diagnostic(`both saw each other ${time()} after the server was started`);
  await keepReceiving(a, b);
  await nobodyReloaded(a, b);
});

test('a server restart during the call: the call continues', async (t) => {
  const server = await serveNearby(t);
  const { a, b } = await two(t, server);
  await talk([a, ann], [b, bob]);
  await server.kill('SIGKILL');
  await Promise.all([a, b].map((page) => page.waitForStatus(says.dropped)));
  const time = stopwatch();
  await server.start();
  await Promise.all([see(a, bob), see(b, ann)]);
  t.diagnostic(`both saw each other again ${time()} after the server was started`);
  await Promise.all([framesRise(a), framesRise(b)]);
  await a.click('button', 'End');
  await b.waitForStatus(says.hungUp);
  await Promise.all([isFree(a), isFree(b), lists(a, 'Bob'), lists(b, 'Ann')]);
  await nobodyReloaded(a, b);
});

testInFull('a ringing call keeps its deadline across a server restart',
  'SignalingTests CallRestartTests.aCallKeepsRingingUntilItsDeadlineAfterARestart; scripts/calls: after a restart, a ringing call that ended meanwhile ends as in the call log', async (t) => {
  const server = await serveNearby(t, { CONFAB_CALL_RING_TIMEOUT: '6s' });
  const { a, b } = await two(t, server);
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await server.kill('SIGKILL');
  await server.start();
  await Promise.all([a.waitForStatus(says.unanswered), b.waitForStatus(says.missed)]);
  await Promise.all([isFree(a), isQuiet(b)]);
  await nobodyReloaded(a, b);
});
