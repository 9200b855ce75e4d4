// Leaving, dropping and reconnecting in real browsers. The product's timeouts are short here; the real ones are tested in
// simulated time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { launchChromium } from './chromium.mjs';
import { framesDecoded, framesRise } from './media.mjs';
import { startProxy } from './proxy.mjs';
import { arrive, assertNothingThrown, begin, keepReceiving, meet, reads, says, see, seesNobody, serve, write } from './stranger.mjs';
import { isFull, testInFull } from './tier.mjs';
import { elapsed, stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();

test('reloading the page or closing the tab leaves the chat, the partner is notified at once, and a reloaded page can be matched again', async (t) => {
  const { url } = await serve(t, {
    // The grace period is far longer than the test, so the partner is notified in time only if the page leaves, not if its
    // connection drops.
    CONFAB_CONNECTION_RESUME_GRACE: '300s', CONFAB_ROULETTE_REMATCH_WAIT: '1ms', CONFAB_ROULETTE_RETRY_INTERVAL: '10ms',
  });
  const browser = await chromium();
  const red = await arrive(t, browser, url, { color: 'red' });
  const green = await arrive(t, browser, url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  await green.reload();
  await red.waitForStatus(says.left);
  await begin(green);
  await Promise.all([see(red, 'green'), see(green, 'red')]);
  const time = stopwatch();
  await green.close();
  await red.waitForStatus(says.left);
  t.diagnostic(`the partner was notified after ${time()}`);
  await seesNobody(red);
  assertNothingThrown(red);
});

test('a killed browser may return for a while, then its user has left', async (t) => {
  const { url } = await serve(t, { CONFAB_CONNECTION_RESUME_GRACE: '2s' });
  const doomed = await launchChromium();
  t.after(() => doomed.close());
  const red = await arrive(t, await chromium(), url, { color: 'red' });
  const green = await arrive(t, doomed, url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  const time = stopwatch();
  await doomed.kill();
  await red.waitForStatus(says.away);
  t.diagnostic(`the partner was said to be away after ${time()}`);
  await red.waitForStatus(says.left);
  t.diagnostic(`and to have left after ${time()}, the grace being 2 s`);
  await seesNobody(red);
  assertNothingThrown(red);
});

testInFull('Next works while the partner is disconnected',
  'SignalingTests LeavingTests.aPartnerIsNotifiedOfADropAndMayPressNext; '
  + 'scripts/roulette "a partner\'s brief absence is reported"', async (t) => {
  const { url } = await serve(t, { CONFAB_CONNECTION_RESUME_GRACE: '300s' });
  const doomed = await launchChromium();
  t.after(() => doomed.close());
  const browser = await chromium();
  const red = await arrive(t, browser, url, { color: 'red' });
  const green = await arrive(t, doomed, url, { color: 'green' });
  const blue = await arrive(t, browser, url, { color: 'blue' });
  await meet([red, 'red'], [green, 'green']);
  await doomed.kill();
  await red.waitForStatus(says.away);
  await red.click('button', 'Next');
  await red.waitForStatus(says.looking);
  await begin(blue);
  await Promise.all([see(red, 'blue'), see(blue, 'red')]);
});

test('after a short network failure both return to the same chat', async (t) => {
  const server = await serve(t);
  const proxy = await startProxy(server.frontPort);
  t.after(() => proxy.close());
  const browser = await chromium();
  const red = await arrive(t, browser, proxy.url, { color: 'red' });
  const green = await arrive(t, browser, server.url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  await write(red, 'before the outage');
  await reads(green, 'before the outage');

  const gone = isFull ? elapsed(8_000, 'the outage') : undefined;
  await proxy.cut();
  await Promise.all([red.waitForStatus(says.dropped), green.waitForStatus(says.away)]);
  await write(green, 'into the outage');
  await gone;
  const time = stopwatch();
  await proxy.heal();
  await reads(red, 'into the outage');
  await reads(red, 'before the outage');
  await Promise.all([red, green].map((page) => page.waitForStatus(says.talking)));
  t.diagnostic(`both were back in the chat ${time()} after the network was`);
  await write(red, 'after the outage');
  await reads(green, 'after the outage');
  await Promise.all([see(red, 'green'), see(green, 'red'), keepReceiving(red, green)]);
  assertNothingThrown(red, green);
});

testInFull('a network that drops everything is detected by its silence, and the chat survives',
  'SignalingTests NetworkTests.lostFramesAreSentAgain; HostileTests "a client that answers no ping is dropped"; '
  + 'scripts/connection "a ping follows a silence, and then a drop"', async (t) => {
  const server = await serve(t, { CONFAB_CONNECTION_PING_INTERVAL: '2s', CONFAB_CONNECTION_MISSED_PINGS: '2' });
  const proxy = await startProxy(server.frontPort);
  t.after(() => proxy.close());
  const browser = await chromium();
  const red = await arrive(t, browser, proxy.url, { color: 'red' });
  const green = await arrive(t, browser, server.url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  const time = stopwatch();
  proxy.stall();
  await Promise.all([green.waitForStatus(says.away), red.waitForStatus(says.dropped)]);
  t.diagnostic(`both ends noticed after ${time()}`);
  await proxy.heal();
  await Promise.all([red, green].map((page) => page.waitForStatus(says.talking)));
  await write(green, 'still there?');
  await reads(red, 'still there?');
});

test('after a server restart the pages are waiting, and meet without any action', async (t) => {
  const server = await serve(t);
  const browser = await chromium();
  const red = await arrive(t, browser, server.url, { color: 'red' });
  const green = await arrive(t, browser, server.url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  for (const page of [red, green]) await page.evaluate('window.untouched = true');
  await server.kill('SIGKILL');
  await Promise.all([red, green].map((page) => page.waitForStatus(says.dropped)));
  const time = stopwatch();
  await server.start();
  await Promise.all([see(red, 'green'), see(green, 'red')]);
  t.diagnostic(`both were in a chat again ${time()} after the server was started`);
  await Promise.all([framesRise(red), framesRise(green)]);
  for (const page of [red, green]) assert.equal(await page.evaluate('window.untouched'), true, 'no page was reloaded');
  t.diagnostic(`frames: ${await Promise.all([red, green].map(framesDecoded))}`);
  assertNothingThrown(red, green);
});

testInFull('a server that stops announces it in time, and pages reconnect to the next one',
  'ServerTests "a stopping server closes all connections with 1001"; '
  + 'HostileTests "a server stops cleanly while people connect and disconnect"; "a server that is killed" above', async (t) => {
  const server = await serve(t);
  const browser = await chromium();
  const red = await arrive(t, browser, server.url, { color: 'red' });
  const green = await arrive(t, browser, server.url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  const time = stopwatch();
  const { code } = await server.kill('SIGTERM');
  assert.equal(code, 0, 'the server must exit normally');
  t.diagnostic(`it stopped after ${time()}`);
  await Promise.all([red, green].map((page) => page.waitForStatus(says.dropped)));
  await server.start();
  await Promise.all([see(red, 'green'), see(green, 'red')]);
  await Promise.all([framesRise(red), framesRise(green)]);
});
