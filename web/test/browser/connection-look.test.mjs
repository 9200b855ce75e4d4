// The indicator of the network on the tiles of a session: its looks in every level, and what pressing it says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { keepSocket, pretend, source } from './in-page.mjs';
import { inspect } from './screenshots.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { NotYet } from './wait.mjs';

const { chromium } = sharedBrowsers();

async function join(t, server, session, color) {
  const token = await server.command('token', 'create', '--session', session, '--role', 'publisher');
  const page = await (await chromium()).newPage({ color, scripts: [source(keepSocket)] });
  t.after(() => page.close());
  await page.goto(`${server.url}/try#session=${session}&token=${token}`);
  return page;
}

test('the network of each tile is shown in three levels, and one press says why', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create');
  const page = await join(t, server, session, 'red');
  const partner = await join(t, server, session, 'white');
  await page.find('button', 'Your connection: good');
  await page.find('button', 'Connection: good');
  assert.deepEqual(await inspect(page, 'network-good'), []);

  const type = 'session.streamQuality';
  const { own, theirs } = await page.evaluate('window.__streams');
  await page.evaluate(pretend, { type, streamId: theirs, level: 'fair', reason: 'loss' });
  await page.evaluate(pretend, { type, streamId: own, level: 'poor', reason: 'bandwidth' });
  await page.click('button', 'Connection: fair');
  const says = (pattern) => page.until(`the page says ${pattern}`, async () => {
    const text = await page.evaluate("document.getElementById('network-why')?.innerText ?? ''");
    if (!pattern.test(text)) throw new NotYet(`it says "${text}"`);
    return true;
  });
  await says(/their connection is unstable/i);
  assert.deepEqual(await inspect(page, 'network-fair'), []);
  await page.press('Escape');
  await says(/^$/);

  await (await page.find('button', 'Your connection: poor')).focus();
  await page.press('Enter');
  await says(/your upload speed is low/i);
  assert.deepEqual(await inspect(page, 'network-poor'), []);
  await page.press('Enter');
  await says(/^$/);
  assertNothingThrown(page, partner);
});
