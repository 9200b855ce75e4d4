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

/** Starts a server with the operator's page, and opens the page. */
async function open(t, browser) {
  const port = await freePort();
  const server = await serve(t, { CONFAB_ADMIN_PORT: port, CONFAB_ADMIN_TOKEN: token });
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

testInFull('Firefox opens the page with the token', 'the same in Chromium', async (t) => {
  const { server, page } = await open(t, firefox);
  await enter(page);
  await complain(server);
  await page.click('tab', 'Reports (1)');
  await page.click('button', 'Dismiss report 1');
  await page.until('it says so', async () => /dismissed/.test(await page.alerts()));
  assertNoComplaints(page);
});
