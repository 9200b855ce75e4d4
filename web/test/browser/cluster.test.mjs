// People on two nodes of a cluster: in a room, in chats with strangers, in a call. Their media crosses between the nodes.
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { mediaCrosses, serveCluster } from './cluster.mjs';
import { framesRise, soundArrives } from './media.mjs';
import * as neighbor from './neighbor.mjs';
import * as roommate from './roommate.mjs';
import {
  arrive, assertNoComplaints, assertNothingThrown, begin, keepInTouch, keepReceiving, meet, reads, says, see, seesNobody, write,
} from './stranger.mjs';

const { chromium } = sharedBrowsers();
const room = 'garden';

test('two people in one room, on two nodes of a cluster, see and hear each other, and chat', async (t) => {
  const nodes = await serveCluster(t, 2);
  const browser = await chromium();
  const one = await roommate.come(t, browser, nodes[0].url, { name: 'Ann', color: 'red', room });
  const other = await roommate.come(t, browser, nodes[1].url, { name: 'Bob', color: 'green', room });
  await Promise.all([
    roommate.seesAll(one, { Bob: 'green' }), roommate.seesAll(other, { Ann: 'red' }), mediaCrosses(nodes),
    ...[one, other].flatMap((page) => [framesRise(page, { by: 30 }), soundArrives(page)]),
  ]);
  await roommate.write(other, 'Hello from the other node', one);
  await roommate.leave(other);
  await one.waitForStatus(roommate.says.alone);
  assertNoComplaints(one, other);
});

test('strangers on two nodes meet, see and hear each other, and chat; one presses Next, and meets another stranger of the other node', async (t) => {
  // Longer than the test, so that only people with shared interests are matched.
  const nodes = await serveCluster(t, 2, { CONFAB_ROULETTE_INTEREST_WAIT: '300s', CONFAB_ROULETTE_REMATCH_WAIT: '300s' });
  const browser = await chromium();
  const red = await arrive(t, browser, nodes[0].url, { color: 'red' });
  const green = await arrive(t, browser, nodes[1].url, { color: 'green' });
  const blue = await arrive(t, browser, nodes[0].url, { color: 'blue' });
  await begin(red, { interests: ['chess'] });
  await red.waitForStatus(says.looking);
  await begin(green, { interests: ['chess', 'jazz'] });
  await Promise.all([see(red, 'green'), see(green, 'red')]);
  await Promise.all([keepReceiving(red, green), mediaCrosses(nodes)]);
  await write(red, 'Hello, green.');
  await reads(green, 'Hello, green.');
  await write(green, 'Hello, red.');
  await reads(red, 'Hello, red.');

  // Without interests, blue could meet red, who is on the same node and is searching again, too.
  await begin(blue, { interests: ['jazz'] });
  await blue.waitForStatus(says.looking);
  await green.click('button', 'Next');
  await red.waitForStatus(says.movedOn);
  await Promise.all([see(green, 'blue'), see(blue, 'green'), seesNobody(red)]);
  await Promise.all([keepReceiving(green, blue), mediaCrosses(nodes)]);
  await write(blue, 'Hello from the first node.');
  await reads(green, 'Hello from the first node.');
  assertNoComplaints(red, green, blue);
});

test('strangers on two nodes become contacts; one calls the other, both see and hear each other, and one hangs up', async (t) => {
  const nodes = await serveCluster(t, 2);
  const browser = await chromium();
  const [red, green] = await Promise.all(['red', 'green'].map((color, index) => arrive(t, browser, nodes[index].url, { color })));
  await meet([red, 'red'], [green, 'green']);
  await keepInTouch(red, green);
  await red.click('button', 'Stop');
  await neighbor.switchHere(green, nodes[1].url, { name: 'Green' });
  await neighbor.switchHere(red, nodes[0].url, { name: 'Red' });
  await neighbor.turnTo(red, 'contacts');
  await neighbor.firstRow(red, 'contacts', { name: 'Green', online: 'yes' });
  await neighbor.talk([red, { name: 'Red', color: 'red' }], [green, { name: 'Green', color: 'green' }]);
  await Promise.all([keepReceiving(red, green), mediaCrosses(nodes)]);
  await red.click('button', 'End');
  await Promise.all([green.waitForStatus(neighbor.says.hungUp), red.waitForStatus(neighbor.says.ended)]);
  await Promise.all([neighbor.isFree(red), neighbor.isFree(green)]);
  assertNothingThrown(red, green);
});
