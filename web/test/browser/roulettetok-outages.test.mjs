// RouletteTok's page under difficult conditions: another origin, a network without WebSockets, a server that is killed, a
// silent connection; and an expired token.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { source } from './in-page.mjs';
import { framesRise } from './media.mjs';
import { startProxy } from './proxy.mjs';
import { startSite } from './roulettetok/site.mjs';
import { expectHeard, hears, meets, rejoin, visit, waits } from './roulettetok/visitor.mjs';
import { arrive, assertNoComplaints, assertNothingThrown, begin, says, see, seesNobody, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();

const settings = { CONFAB_ROULETTE_REMATCH_WAIT: '300s', CONFAB_ROULETTE_SKIP_WINDOW: '0s' };

/** Settings with which silence is detected within seconds and the same two people are matched again. */
const impatient = {
  CONFAB_ROULETTE_REMATCH_WAIT: '1ms', CONFAB_ROULETTE_RETRY_INTERVAL: '50ms', CONFAB_ROULETTE_SKIP_WINDOW: '0s',
  CONFAB_SOCKET_IO_HEARTBEAT_INTERVAL: '1s', CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '4s',
  CONFAB_SOCKET_IO_CLOSE_TIMEOUT: '3s', CONFAB_SOCKET_IO_POLL_DURATION: '1s',
};

/** Runs in a page: blocks Socket.IO's WebSockets. */
function hinderSocketIO() {
  window.WebSocket = new Proxy(window.WebSocket, {
    construct(target, [url, ...more], newTarget) {
      const isHindered = String(url).includes('/socket.io/');
      return Reflect.construct(target, [isHindered ? 'ws://127.0.0.1:9/' : url, ...more], newTarget);
    },
  });
}

/** The visitor waits, then a user of our page comes and is matched. */
async function meetGreen(t, server, red) {
  await waits(red);
  const green = await arrive(t, await chromium(), server.url, { color: 'green' });
  await begin(green);
  await Promise.all([meets(red, 'green'), see(green, 'red')]);
  return green;
}

/** A user of RouletteTok's page on another origin meets a user of ours and presses Next. */
async function meetFromAnotherOrigin(t, transport) {
  const server = await serve(t, settings);
  const site = await startSite(t, server.port);
  const options = { transports: [transport] };
  const red = await visit(t, await chromium(), site, { color: 'red', server: server.url, options });
  const green = await meetGreen(t, server, red);
  await red.click('button', 'Next');
  await Promise.all([waits(red), green.waitForStatus(says.movedOn)]);
  assertNoComplaints(red, green);
}

// Of the three transports, browsers restrict only this one for other origins, with rules for credentials and preflights.
test('a page of another origin is matched too, over xhr-polling', (t) => meetFromAnotherOrigin(t, 'xhr-polling'));

for (const transport of ['websocket', 'jsonp-polling']) {
  testInFull(`a page of another origin is matched too, over ${transport}`,
    'the same over xhr-polling; HostileTests OriginAttackTests, SocketIOSurfaceTests "origins are echoed only here"',
    (t) => meetFromAnotherOrigin(t, transport));
}

test('without WebSockets, polling is used', async (t) => {
  const server = await serve(t, settings);
  const site = await startSite(t, server.port);
  const red = await visit(t, await chromium(), site, { color: 'red', scripts: [source(hinderSocketIO)] });
  const green = await meetGreen(t, server, red);
  await expectHeard(red, 'connecting websocket', 'connecting xhr-polling', 'connect', 'initial', 'empty', 'subscribe');
  assertNothingThrown(red, green);
});

testInFull('a page whose server is killed reconnects to the next one automatically, and is matched',
  'unit-socketio/connecting: reconnects; roulette-outages: after a server restart the pages are waiting', async (t) => {
  const server = await serve(t, settings);
  const site = await startSite(t, server.port);
  const red = await visit(t, await chromium(), site, { color: 'red' });
  const green = await meetGreen(t, server, red);
  await server.kill('SIGKILL');
  await Promise.all([hears(red, 'disconnect transport closed'), green.waitForStatus(says.dropped)]);
  const time = stopwatch();
  await server.start();
  await Promise.all([hears(red, 'connect', 2), hears(red, 'initial', 2), hears(red, 'subscribe', 2)]);
  await Promise.all([meets(red, 'green'), see(green, 'red')]);
  t.diagnostic(`both were in a chat again ${time()} after the server was started`);
  await Promise.all([red, green].map((page) => framesRise(page)));
  assertNothingThrown(red, green);
});

for (const transport of ['websocket', 'xhr-polling']) {
  testInFull(`a silent connection is detected at both ends, and replaced, over ${transport}`,
    'unit-socketio/connecting: is detected by silence; ServerTests SocketIOConnectionTests "any frame keeps a client alive", "a client that does not poll"', async (t) => {
    const server = await serve(t, impatient);
    const proxy = await startProxy(server.port);
    t.after(() => proxy.close());
    const site = await startSite(t, proxy.port);
    const red = await visit(t, await chromium(), site, { color: 'red', options: { transports: [transport] } });
    const green = await meetGreen(t, server, red);
    const time = stopwatch();
    proxy.stall();
    await Promise.all([green.waitForStatus(says.left), hears(red, 'disconnect heartbeat timeout')]);
    t.diagnostic(`both ends had noticed after ${time()}`);
    await seesNobody(green);
    await proxy.heal();
    await Promise.all([meets(red, 'green'), see(green, 'red')]);
    assertNothingThrown(red, green);
  });
}

testInFull('a page that stays quiet for several heartbeats stays in its chat',
  'unit-socketio/talking: heartbeats are answered; ServerTests SocketIOConnectionTests "heartbeats are sent 25 s"', async (t) => {
  const server = await serve(t, { ...impatient, CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '3s' });
  const site = await startSite(t, server.port);
  const red = await visit(t, await chromium(), site, { color: 'red' });
  const green = await meetGreen(t, server, red);
  // At fifteen frames per second, this takes more than three times the timeout of either end.
  await framesRise(red, { by: 150 });
  await Promise.all([meets(red, 'green'), see(green, 'red')]);
  await expectHeard(red, 'connecting websocket', 'connect', 'initial', 'empty', 'subscribe');
});

testInFull('a stranger whose partner left can no longer subscribe, whether or not the page stops it',
  'SignalingTests LegacyClientTests.deadToken and onePlace; unit/pure: errors are named by the request', async (t) => {
  const server = await serve(t, settings);
  const site = await startSite(t, server.port);
  // The page gets the request to leave the partner's session, but stays.
  const red = await visit(t, await chromium(), site, { color: 'red', deafTo: 'disconnectPartner' });
  const green = await meetGreen(t, server, red);
  assert.equal(await rejoin(red), 'OT_CONNECTION_LIMIT_EXCEEDED', 'a token can be used by one viewer only');
  await green.click('button', 'Next');
  await hears(red, 'disconnectPartner');
  await waits(red);
  assert.equal(await rejoin(red), 'OT_AUTHENTICATION_ERROR', 'the token is revoked');
  assertNothingThrown(red, green);
});
