// Strangers meet behind nginx with the recommended configurations: a proxy may delay frames, drop closes, or hide the client's
// address, and serve us below a path. With `--all`, every test of `roulette` and `roulette-outages` also runs behind it.
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { startProxy } from './proxy.mjs';
import { arrive, assertNothingThrown, begin, keepReceiving, meet, reads, says, see, seesNobody, serve, write } from './stranger.mjs';
import { isFull } from './tier.mjs';

process.env.CONFAB_TEST_FRONT = 'nginx';
const { chromium } = sharedBrowsers();

test('behind nginx and below a path two strangers meet and chat, a cut connection is resumed, and reloading or closing is reported at once', async (t) => {
  const path = '/video';
  const server = await serve(t, {
    // The grace period is far longer than the test, so the partner is notified in time only if the page leaves, not if its
    // connection drops.
    CONFAB_CONNECTION_RESUME_GRACE: '300s', CONFAB_ROULETTE_REMATCH_WAIT: '1ms', CONFAB_ROULETTE_RETRY_INTERVAL: '10ms',
  }, { path });
  const cable = await startProxy(server.frontPort);
  t.after(() => cable.close());
  const browser = await chromium();
  const red = await arrive(t, browser, cable.url + path, { color: 'red' });
  const green = await arrive(t, browser, server.url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  await write(red, 'Through nginx.');
  await reads(green, 'Through nginx.');
  await write(green, 'And back.');
  await reads(red, 'And back.');

  await cable.cut();
  await Promise.all([red.waitForStatus(says.dropped), green.waitForStatus(says.away)]);
  await write(green, 'into the outage');
  await cable.heal();
  await reads(red, 'into the outage');
  await Promise.all([red, green].map((page) => page.waitForStatus(says.talking)));
  await keepReceiving(red, green);

  await green.reload();
  await red.waitForStatus(says.left);
  await begin(green);
  await Promise.all([see(red, 'green'), see(green, 'red')]);
  await green.close();
  await red.waitForStatus(says.left);
  await seesNobody(red);
  assertNothingThrown(red);
});

if (isFull) {
  await import('./roulette.test.mjs');
  await import('./roulette-outages.test.mjs');
}
