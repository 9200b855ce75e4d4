// Clients of Socket.IO 2 and 4: Python's library on each transport. They are in one queue with the clients of Socket.IO 0.9 and
// the users of our page. Every test has its own server, and so an empty queue.
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { assertNoNews, engineKinds, pair, startPeer } from './roulettetok/peer.mjs';
import { arrive as arrivePage, assertNoComplaints, begin, says, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';

const { chromium } = sharedBrowsers();

const settings = {
  CONFAB_ROULETTE_REMATCH_WAIT: '300s', CONFAB_ROULETTE_SKIP_WINDOW: '0s', CONFAB_ROULETTE_STREAM_TIMEOUT: '300ms',
};

const arrive = async (t, port, kind, label) => {
  const peer = await startPeer(t, port, kind, { label: `${label} (${kind})` });
  await peer.hears('initial');
  return peer;
};

/** One client of each version on each transport, and old clients between them. Neighbors in this list are paired. */
const everyone = [
  'polling-4', 'websocket-3', 'websocket-4', 'xhr-polling', 'upgrade-3', 'upgrade-4', 'ios', 'polling-3', 'websocket',
  'jsonp-polling',
];

test('clients of all three generations meet, and each learns that the other left', async (t) => {
  const { port } = await serve(t, settings);
  const peers = await Promise.all(everyone.map((kind) => arrive(t, port, kind, 'one')));
  for (let index = 0; index < peers.length; index += 2) await pair(peers[index], peers[index + 1]);
  // Everyone leaves an old partner by another way, and the partner is notified.
  const ways = ['part', 'disconnect', 'kill', 'part', 'disconnect'];
  for (let index = 0; index < peers.length; index += 2) {
    const [one, other] = [peers[index], peers[index + 1]];
    const way = ways[index / 2];
    if (way === 'part') other.part();
    else if (way === 'disconnect') one.do('disconnect');
    else one.kill();
    const witness = way === 'part' ? one : other;
    await witness.hears('disconnectPartner');
  }
});

test('a user of our page meets clients of Socket.IO 2 and 4, and each learns that the other left', async (t) => {
  const { url, port } = await serve(t, settings);
  const page = await arrivePage(t, await chromium(), url, { color: 'green' });
  await begin(page);
  await page.waitForStatus(says.looking);
  const meet = async (kind) => {
    const peer = await arrive(t, port, kind, 'one');
    peer.next();
    await peer.hears('subscribe');
    await page.waitForStatus(/no audio or video from/i);
    return peer;
  };
  const first = await meet('upgrade-4');
  first.kill();
  await page.waitForStatus(says.left);
  const second = await meet('websocket-3');
  await page.close();
  await second.hears('disconnectPartner');
  assertNoComplaints(page);
});

for (const kind of engineKinds) {
  for (const other of [...engineKinds, 'jsonp-polling']) {
    if (engineKinds.includes(other) && engineKinds.indexOf(other) < engineKinds.indexOf(kind)) continue;
    testInFull(`${kind} and ${other} meet, part, and find others`,
      'roulettetok-engines: clients of all three generations meet; HostileTests EngineIOSurface', async (t) => {
      const { port } = await serve(t, settings);
      const [a, b] = await Promise.all([arrive(t, port, kind, 'a'), arrive(t, port, other, 'b')]);
      await pair(a, b);
      a.part();
      await Promise.all([a, b].map((peer) => peer.hears('disconnectPartner')));
      a.do('emit', { name: 'next', args: [{}], ask: true });
      await a.hears('empty');
      const c = await arrive(t, port, 'websocket-4', 'c');
      c.next();
      await Promise.all([a.meets(c), c.meets(a)]);
      a.do('disconnect');
      await c.hears('disconnectPartner');
      assertNoNews(b, c);
    });
  }
}
