// The operator's page: it opens with the token only, and a report is handled from the complaint to the ban.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { Guest } from './guest.mjs';
import { inspect } from './screenshots.mjs';
import { freePort } from './server.mjs';
import { assertNoComplaints, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';

const { chromium, firefox } = sharedBrowsers();
const token = 'f00dfeedf00dfeedf00dfeedf00dfeed';

/** Starts a server with the operator's page, and opens the page. `env`: more settings. */
async function open(t, browser, env = {}) {
  const port = await freePort();
  const server = await serve(t, { CONFAB_ADMIN_PORT: port, CONFAB_ADMIN_TOKEN: token, ...env });
  const page = await (await browser()).newPage({ color: 'red' });
  t.after(() => page.close());
  await page.goto(`http://127.0.0.1:${port}/admin`);
  await page.find('button', 'Open');
  return { server, page };
}

async function enter(page) {
  await page.fill('textbox', 'Token', token);
  await page.press('Enter');
  await page.waitForStatus(/^Live$/);
}

/** Two strangers meet, and one reports the other. */
async function complain(server) {
  const [ann, bob] = [await Guest.arrive(server.url), await Guest.arrive(server.url)];
  await Promise.all([ann.isType('welcome'), bob.isType('welcome')]);
  await ann.ask('roulette.start');
  await bob.ask('roulette.start');
  const [{ publish }, bobs] = [await ann.isType('roulette.matched'), await bob.isType('roulette.matched')];
  const { sessionId } = publish;
  await ann.ask('session.join', publish);
  await bob.ask('session.join', bobs.publish);
  for (const data of ['Hello!', 'You are <b>stupid</b>. Give me your address, or I will find it out by myself.']) {
    await bob.ask('session.signal', { sessionId, signalType: 'chat', data });
  }
  await ann.hear('the chat', (message) => message.type === 'session.signal' && /stupid/.test(message.data));
  await ann.ask('roulette.report', { reason: 'Insults and threats' });
  return { ann, bob };
}

test('a report is handled on the page from the complaint to the ban, and the ban is lifted; its views have no faults', async (t) => {
  const { server, page } = await open(t, chromium);
  assert.deepEqual(await inspect(page, 'admin-locked'), []);
  await page.fill('textbox', 'Token', 'wrong');
  await page.press('Enter');
  await page.until('it says that the token is wrong', async () => /not the token/.test(await page.alerts()));
  await enter(page);
  assert.deepEqual(await inspect(page, 'admin-overview-empty'), []);

  const { bob } = await complain(server);
  await page.click('tab', 'Reports (1)');
  await page.find('button', 'Ban the person of report 1');
  assert.deepEqual(await inspect(page, 'admin-reports'), []);
  await page.click('tab', 'Sessions');
  await page.find('heading', 'Session');
  assert.deepEqual(await inspect(page, 'admin-sessions'), []);
  await page.click('tab', 'Reports (1)');
  await page.click('button', 'Ban the person of report 1');
  await page.until('it says who was banned', async () => /^Banned /.test(await page.alerts()));
  await bob.hear('the end', () => bob.closed !== undefined);
  assert.equal(bob.closed, 4403);

  // By keyboard, from tab to tab.
  await page.tabTo('tab', 'Reports');
  await page.press('ArrowRight');
  const lift = await page.find('button', 'Lift the ban of 127.0.0.1/32').catch(() => page.find('button', 'Lift the ban of 127.0.0.1'));
  assert.deepEqual(await inspect(page, 'admin-bans'), []);
  await lift.click();
  await page.until('it says that the ban was lifted', async () => /lifted/.test(await page.alerts()));
  await page.press('End');
  await page.click('tab', 'Audit log');
  await page.waitFor('the audit log has the ban', () => /ban\.add/.test(document.getElementById('audit-rows').textContent));
  assert.deepEqual(await inspect(page, 'admin-audit'), []);
  await page.click('button', 'Lock');
  await page.find('button', 'Open');
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  // The browser logs that the wrong token was refused.
  assert.deepEqual(page.complaints().filter((line) => !/status of 401 .*\/admin\/api\/overview$/.test(line)), []);
});

const nodes = {
  asked: 'n1', seenMsAgo: 300,
  nodes: [
    { node: 'n1', life: 17, state: 'serving', leaseMs: 2640, version: '0.1.0', sockets: 57, load: 0.12, places: 40, url: 'https://chat.example.org', address: '192.0.2.11:8080' },
    { node: 'n2', life: 18, state: 'serving', leaseMs: 2510, version: '0.1.0', sockets: 61, load: 0.2, places: 44, url: 'https://chat.example.org', address: '192.0.2.12:8080', relays: { connected: 1, connecting: 1, thinned: 0, fault: 'unreachable' } },
    { node: 'n3', life: 9, state: 'fenced', fencedBy: 'n1' },
  ],
};

/** Lets the page get the answers of a node of a cluster. A real one needs PostgreSQL and Redis. */
function joinCluster(list) {
  const ask = window.fetch;
  window.fetch = async (url, options) => {
    const path = new URL(url, document.baseURI).pathname;
    if (path.endsWith('/overview')) return Response.json({ ...await (await ask(url, options)).json(), node: 'n1' });
    if (!path.startsWith('/admin/api/nodes')) return ask(url, options);
    if (options.method !== 'POST') return Response.json(list);
    const changed = list.nodes.find(({ node }) => path.endsWith(`/${node}`));
    changed.requested = JSON.parse(options.body).state;
    return Response.json(changed);
  };
}

test('in a cluster the page lists the nodes, and drains one after a question; its views have no faults', async (t) => {
  const { page } = await open(t, chromium);
  await page.evaluate(joinCluster, nodes);
  await enter(page);
  await page.click('tab', 'Nodes');
  await page.find('button', 'Drain n2');
  await page.waitFor('the relays that do not connect are shown', () => /A relay to n2 does not connect/.test(document.getElementById('node-rows').textContent));
  assert.deepEqual(await inspect(page, 'admin-nodes'), []);
  const focused = () => page.waitFor('the focus is on the button again', () => document.activeElement?.getAttribute('aria-label') === 'Drain n2');
  await page.click('button', 'Drain n2');
  await page.find('button', 'Cancel');
  assert.deepEqual(await inspect(page, 'admin-nodes-question'), []);
  await page.press('Escape');
  await focused();
  // By keyboard: the question opens with the focus on Cancel.
  await page.press('Enter');
  await page.find('button', 'Cancel');
  await page.press('Enter');
  await focused();
  await page.click('button', 'Drain n2');
  await page.click('button', 'Drain');
  await page.until('it says what happens', async () => /^n2 is being taken out of service/.test(await page.alerts()));
  await page.find('button', 'Serve from n2 again');
  assertNoComplaints(page);
});

/** Lets all of these clients connect and open rooms from one address. */
const withoutLimits = {
  CONFAB_ROOMS_PER_ADDRESS: 10_000,
  ...Object.fromEntries([
    'HANDSHAKES_PER_SECOND', 'HANDSHAKE_BURST', 'SOCKETS_PER_ADDRESS', 'ADDRESS_MESSAGES_PER_SECOND', 'ADDRESS_MESSAGE_BURST',
  ].map((name) => [`CONFAB_LIMITS_${name}`, 1_000_000])),
};

/** Opens rooms with one person each, up to 50 at the same time. */
async function openRooms(server, first, count) {
  let next = first;
  await Promise.all(Array.from({ length: 50 }, async () => {
    while (next < first + count) {
      const number = next;
      next += 1;
      const guest = await Guest.arrive(server.url);
      await guest.isType('welcome');
      const { sessionId, token: admission } = await guest.ask('room.join', { name: `room-${number}`, displayName: `Person ${number}` });
      const { type, message } = await guest.ask('session.join', { sessionId, token: admission });
      assert.equal(type, 'session.joined', message);
    }
  }));
}

testInFull('the page shows 12 sessions and 2,000, in pages, without faults', 'unit-app/admin-view: of 2,000 sessions one page is drawn, and the others are a press away', async (t) => {
  const { server, page } = await open(t, chromium, withoutLimits);
  await enter(page);
  await openRooms(server, 0, 12);
  await page.click('tab', 'Sessions');
  await page.waitFor('all 12 sessions', () => document.querySelectorAll('#session-rows > *').length === 12);
  assert.deepEqual(await inspect(page, 'admin-sessions-12'), []);
  await openRooms(server, 12, 1988);
  await page.waitFor('the number of sessions', () => /^1 to \d+ of 2,000 sessions/.test(document.getElementById('page-place').textContent));
  assert.deepEqual(await inspect(page, 'admin-sessions-2000'), []);
  await page.click('tab', 'Overview');
  assert.deepEqual(await inspect(page, 'admin-overview-2000'), []);
  assertNoComplaints(page);
});

testInFull('Firefox opens the page with the token', 'the same in Chromium', async (t) => {
  const { server, page } = await open(t, firefox);
  await enter(page);
  await complain(server);
  await page.click('tab', 'Reports (1)');
  await page.click('button', 'Dismiss report 1');
  await page.until('it says so', async () => /dismissed/.test(await page.alerts()));
  assertNoComplaints(page);
});
