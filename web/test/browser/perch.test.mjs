// PerchRTC's protocol with real media: two pages and two aiortc clients, one of each envelope, in a mesh room. One page is that of
// rooms, the other one has only the SDK.
import assert from 'node:assert/strict';
import test from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { joinFromPage, pageSees, Phone, settings } from './perch-peers.mjs';
import { come, seesAll } from './roommate.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();

const mesh = { media: 'mesh', capacity: 4 };

test('two pages and two clients of PerchRTC, of both envelopes, see each other in a mesh room', async (t) => {
  const server = await serve(t, settings);
  const browser = await chromium();
  const room = 'lunch';
  const time = stopwatch();
  const ada = await joinFromPage(t, browser, server, { room, name: 'Ada', color: 'red', options: mesh });
  // Two phones with the same name, one between the pages and one after them.
  const first = await Phone.join(t, server, { room, name: 'iPhone', envelope: 'flat', color: 'yellow' });
  await first.tells('peers');
  const bob = await come(t, browser, server.url, { room, mesh: true, name: 'Bob', color: 'blue' });
  const second = await Phone.join(t, server, { room, name: 'iPhone', envelope: 'layered', color: 'cyan' });
  assert.deepEqual(await second.tells('peers'), [['iPhone~2']]);
  await first.sees({ Ada: 'red', Bob: 'blue', 'iPhone~2': 'cyan' });
  await second.sees({ Ada: 'red', Bob: 'blue', 'iPhone~2': 'yellow' });
  await first.tells('hears', (user) => user === 'iPhone~2');
  await pageSees(ada, ['yellow', 'blue', 'cyan']);
  await seesAll(bob, [['Ada', 'red'], ['iPhone', 'yellow'], ['iPhone', 'cyan']]);
  t.diagnostic(`all see each other after ${time()}`);

  const third = await Phone.join(t, server, { room, name: 'Pad', envelope: 'flat', color: 'green' });
  assert.match((await third.tells('refused'))[0], /^room_full: /);

  first.leave();
  await second.tells('gone', (user) => user === 'iPhone~2');
  await pageSees(ada, ['blue', 'cyan']);
  const again = await Phone.join(t, server, { room, name: 'iPhone', envelope: 'layered', color: 'magenta' });
  await again.sees({ Ada: 'red', Bob: 'blue', 'iPhone~2': 'cyan' });
  await seesAll(bob, [['Ada', 'red'], ['iPhone', 'cyan'], ['iPhone', 'magenta']]);
  assertNothingThrown(ada, bob);
});

test('a routed room refuses a client of PerchRTC with a reason', async (t) => {
  const server = await serve(t, settings);
  await joinFromPage(t, await chromium(), server, { room: 'hall', name: 'Ada', color: 'red', options: { media: 'routed' } });
  for (const envelope of ['flat', 'layered']) {
    const phone = await Phone.join(t, server, { room: 'hall', name: 'iPhone', envelope, color: 'green' });
    assert.match((await phone.tells('refused'))[0], /^media_unavailable: This room sends media through the server\./);
  }
});
