// The page `/check`: one press tests the devices and the network, and the result can be sent. `check-networks` has the networks and
// servers on which something does not work.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { check, levelsOf } from './checker.mjs';
import { keepGiven, source } from './in-page.mjs';
import { inspect } from './screenshots.mjs';
import { assertNoComplaints, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';

const { chromium, firefox } = sharedBrowsers();

/**
 * Everything works but the TURN server, of which there is none. How good the quality is depends on the machine.
 *
 * @param {string} [microphone]
 */
function assertWorks(levels, microphone = 'good') {
  const { up, down, delay, ...others } = levels;
  assert.deepEqual(others, { camera: 'good', microphone, speakers: 'none', server: 'good', udp: 'good', tcp: 'good', turn: 'none' });
  for (const level of [up, down, delay]) assert.notEqual(level, 'none', 'the quality was measured');
}

test('one press tests each row; the result can be copied, and its link shows it to others', async (t) => {
  const server = await serve(t);
  const page = await (await chromium()).newPage({ color: 'red', scripts: [source(keepGiven)] });
  t.after(() => page.close());
  await page.goto(`${server.url}/`);
  await page.click('link', 'Check camera and network');
  await page.find('button', 'Start the check');
  assert.deepEqual(await inspect(page, 'check-before'), []);
  assertWorks(await check(page));

  await page.click('button', 'Play a sound');
  await page.click('button', 'I heard it');
  await page.until('the speakers work', async () => (await levelsOf(page)).speakers === 'good');
  assert.deepEqual(await inspect(page, 'check-done'), []);
  await page.click('button', 'Copy report');
  await page.waitForStatus(/copied/i);
  await page.click('button', 'Copy link');
  const [[, report], [, link]] = await page.waitFor('both were copied', 'window.__given.length === 2 && window.__given');
  const sentence = await page.evaluate("document.getElementById('sentence').textContent");
  t.diagnostic(report);
  assert.ok(report.includes(sentence) && report.includes(link), report);

  const levels = await levelsOf(page);
  await page.goto('about:blank');
  await page.goto(link);
  await page.waitForStatus(/earlier check/i);
  assert.deepEqual(await levelsOf(page), levels);
  assert.equal(await page.evaluate("document.getElementById('sentence').textContent"), sentence);
  assert.deepEqual(await inspect(page, 'check-shared'), []);
  await page.goto('about:blank');
  await page.goto(`${link.slice(0, -9)}`);
  await page.until('it says that the link is not complete', async () => /not complete/.test(await page.alerts()));
  assertNoComplaints(page);
});

testInFull('Firefox tests each row', 'the same in Chromium', async (t) => {
  const server = await serve(t);
  const page = await (await firefox()).newPage({ color: 'red' });
  t.after(() => page.close());
  await page.goto(`${server.url}/check`);
  // Without a sound card, Firefox measures no sound.
  assertWorks(await check(page), 'none');
  t.diagnostic(await page.evaluate("document.getElementById('report').textContent"));
  assertNoComplaints(page);
});
