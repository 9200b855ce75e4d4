// Clients of other protocols on one node of a cluster, and people on another one: RouletteTok's page, PerchRTC's clients, WHIP and WHEP.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { mediaCrosses, metric, serveCluster } from './cluster.mjs';
import { startHAProxyOfNodes } from './haproxy.mjs';
import { framesRise, seesColor, soundArrives } from './media.mjs';
import { MediaPeer, open } from './media-peer.mjs';
import { joinFromPage, pageSees, Phone, settings as perch } from './perch-peers.mjs';
import { startSite } from './roulettetok/site.mjs';
import { closeTab, hears, meets, saysNoTextChat, visit, waits } from './roulettetok/visitor.mjs';
import { arrive, assertNoComplaints, assertNothingThrown, begin, says, see, seesNobody } from './stranger.mjs';
import { NotYet, stopwatch, until } from './wait.mjs';

const { chromium } = sharedBrowsers();

/** Settings with which the same two people are not matched again during a test, and quick skips have no penalty. */
const roulette = { CONFAB_ROULETTE_REMATCH_WAIT: '300s', CONFAB_ROULETTE_SKIP_WINDOW: '0s' };

test('a user of RouletteTok\'s page and one of our page meet on two nodes, and each learns that the other left', async (t) => {
  const nodes = await serveCluster(t, 2, roulette);
  const browser = await chromium();
  const red = await visit(t, browser, await startSite(t, nodes[0].port), { color: 'red' });
  await waits(red);
  const green = await arrive(t, browser, nodes[1].url, { color: 'green' });
  const time = stopwatch();
  await begin(green);
  await Promise.all([meets(red, 'green'), see(green, 'red')]);
  t.diagnostic(`both saw each other after ${time()}`);
  await saysNoTextChat(green);
  await Promise.all([mediaCrosses(nodes), ...[red, green].map((page) => framesRise(page, { by: 30 }))]);

  await red.click('button', 'Next');
  await green.waitForStatus(says.movedOn);
  await Promise.all([seesNobody(green), waits(red)]);
  await hears(red, 'disconnectPartner', 1);
  assertNoComplaints(red, green);

  // Our page continued its search automatically. RouletteTok's page waits too, so close it before another one arrives.
  await closeTab(t, red);
  const blue = await visit(t, browser, await startSite(t, nodes[0].port), { color: 'blue' });
  await Promise.all([meets(blue, 'green'), see(green, 'blue')]);
  await green.close();
  await waits(blue);
  await hears(blue, 'disconnectPartner', 1);
  assertNothingThrown(blue);
});

test('two users of RouletteTok\'s page meet on two nodes, also if the SDK of each is connected to the other node', async (t) => {
  const nodes = await serveCluster(t, 2, roulette);
  const browser = await chromium();
  const visitAt = async (node, sdkNode, color) => visit(t, browser, await startSite(t, node.port, { sdkPort: sdkNode.port }), { color });
  const red = await visitAt(nodes[0], nodes[1], 'red');
  await waits(red);
  const blue = await visitAt(nodes[1], nodes[0], 'blue');
  await Promise.all([meets(red, 'blue'), meets(blue, 'red')]);
  await Promise.all([mediaCrosses(nodes), ...[red, blue].map((page) => framesRise(page, { by: 30 }))]);
  assertNoComplaints(red, blue);
  await closeTab(t, red);
  await waits(blue);
  await hears(blue, 'disconnectPartner', 1);
  assertNothingThrown(blue);
});

test('clients of PerchRTC on two nodes and pages of both nodes see each other in one mesh room', async (t) => {
  const nodes = await serveCluster(t, 2, perch);
  const browser = await chromium();
  const room = 'lunch';
  const options = { media: 'mesh', capacity: 4 };
  const ada = await joinFromPage(t, browser, nodes[0], { room, name: 'Ada', color: 'red', options });
  const near = await Phone.join(t, nodes[0], { room, name: 'iPhone', envelope: 'flat', color: 'yellow' });
  await near.tells('peers');
  const far = await Phone.join(t, nodes[1], { room, name: 'Pad', envelope: 'layered', color: 'cyan' });
  assert.deepEqual(await far.tells('peers'), [['iPhone']]);
  await near.sees({ Ada: 'red', Pad: 'cyan' });
  await far.sees({ Ada: 'red', iPhone: 'yellow' });
  await far.tells('hears', (user) => user === 'iPhone');
  await pageSees(ada, ['yellow', 'cyan']);

  const bob = await joinFromPage(t, browser, nodes[1], { room, name: 'Bob', color: 'blue', options });
  await near.sees({ Bob: 'blue' });
  await far.sees({ Bob: 'blue' });
  await pageSees(bob, ['red', 'yellow', 'cyan']);
  await pageSees(ada, ['blue', 'yellow', 'cyan']);

  far.leave();
  await near.tells('gone', (user) => user === 'Pad');
  await Promise.all([pageSees(ada, ['blue', 'yellow']), pageSees(bob, ['red', 'yellow'])]);
  assertNothingThrown(ada, bob);
});

test('a WHIP and a WHEP client that reach another node than the session\'s are redirected, and people there see and hear them', async (t) => {
  const nodes = await serveCluster(t, 2, { CONFAB_TRUSTED_PROXIES: '127.0.0.1' });
  // `at` in a URL is for the load balancer.
  const site = `http://127.0.0.1:${await startHAProxyOfNodes(t, ...nodes)}`;
  const session = await nodes[0].command('session', 'create', '--media', 'routed');
  const token = (role) => nodes[0].command('token', 'create', '--session', session, '--role', role);

  const page = await open(t, chromium, { server: nodes[1], session, token }, 'subscriber');
  await until('the session is on node 2', async () => {
    const count = await metric(nodes[1], 'confab_sessions');
    if (count !== 1) throw new NotYet(`node 2 has ${count} sessions`);
    return true;
  });

  const assertLeadsToSecond = (url) => assert.match(url, /\/(whip|whep)\/[^/?]+\?at=n2$/);
  const publisher = await MediaPeer.start(t, 'whip_client.py', [`${site}/whip/${session}?at=n1`, await token('publisheronly')], 'the publisher');
  publisher.publish('magenta', 440);
  assertLeadsToSecond(await publisher.tells('redirected'));
  assert.match((await publisher.tells('created')).address, /\/whip\/resources\/n2-[0-9a-f]+$/);
  await publisher.tells('connected');
  await seesColor(page, 'magenta');
  await soundArrives(page);
  await framesRise(page, { by: 30 });

  const viewer = await MediaPeer.start(t, 'whep_client.py', [`${site}/whep/${session}?at=n1`, await token('subscriber')], 'the viewer');
  viewer.do('watch');
  assertLeadsToSecond(await viewer.tells('redirected'));
  await viewer.tells('connected');
  await viewer.sees('magenta', 30);
  await viewer.hears(440);

  // The address of a resource leads to its node without `at`.
  for (const peer of [publisher, viewer]) {
    peer.do('delete');
    assert.equal(await peer.tells('deleted'), 200);
  }
  await page.waitFor('the page shows no video', "!document.querySelector('.OT_subscriber video')");
  assertNoComplaints(page);
});
