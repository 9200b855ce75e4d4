// Two people in one room, on two nodes of a cluster. Their media crosses between the nodes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { metric, serveCluster } from './cluster.mjs';
import { framesRise, soundArrives } from './media.mjs';
import { come, leave, says, seesAll, write } from './roommate.mjs';
import { assertNoComplaints } from './stranger.mjs';

const { chromium } = sharedBrowsers();
const room = 'garden';

test('two people in one room, on two nodes of a cluster, see and hear each other, and chat', async (t) => {
  const nodes = await serveCluster(t, 2);
  const browser = await chromium();
  const one = await come(t, browser, nodes[0].url, { name: 'Ann', color: 'red', room });
  const other = await come(t, browser, nodes[1].url, { name: 'Bob', color: 'green', room });
  await Promise.all([
    seesAll(one, { Bob: 'green' }), seesAll(other, { Ann: 'red' }),
    ...[one, other].flatMap((page) => [framesRise(page, { by: 30 }), soundArrives(page)]),
  ]);
  for (const node of nodes) {
    assert.ok(await metric(node, 'confab_media_packets_relayed_total') > 0, 'media crossed in both directions, so nobody was redirected');
  }
  await write(other, 'Hello from the other node', one);
  await leave(other);
  await one.waitForStatus(says.alone);
  assertNoComplaints(one, other);
});
