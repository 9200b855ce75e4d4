// Every state of the page of people nearby and of a call, checked with axe and photographed: phone and laptop, light and dark.
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { launchChromium } from './chromium.mjs';
import { failMedia, source } from './in-page.mjs';
import { ann, approach, bob, call, cat, come, enter, isFree, lists, places, rings, says, serveNearby, talk, turnTo } from './neighbor.mjs';
import { looksOf } from './screenshots.mjs';

const { chromium } = sharedBrowsers();
const looksRight = looksOf('nearby');

test('the first screen, the empty list and a list without a location look right', async (t) => {
  const { url } = await serveNearby(t);
  const browser = await chromium();
  const page = await approach(t, browser, url);
  await page.find('button', 'Go online');
  await looksRight(t, page, 'first');
  await enter(page, { name: 'Ann' });
  await page.waitFor('the list is empty', () => /no one else/i.test(document.getElementById('people-none').textContent));
  await looksRight(t, page, 'empty');
  const other = await come(t, browser, url, { name: 'Hidden', at: null });
  await looksRight(t, other, 'no-position');
});

test('the list, its menu, contacts, calls, settings and questions look right', async (t) => {
  const { url } = await serveNearby(t, { CONFAB_CALL_RING_TIMEOUT: '3s' });
  const browser = await chromium();
  const [page, other] = await Promise.all([
    ann, { ...bob, at: places.nextDoor }, { name: 'مريم', at: places.nextTown },
    { name: 'A person with a name of forty characters', at: places.nextTown },
  ].map((person) => come(t, browser, url, person)));
  await lists(page, 'مريم');
  await lists(page, 'A person with a name of forty characters');
  await looksRight(t, page, 'list');
  await page.evaluate(() => document.querySelector('summary[aria-label="More options for Bob"]').click());
  await looksRight(t, page, 'menu');
  await page.press('Escape');
  await lists(other, 'Ann');
  await call(other, 'Ann');
  await rings(page, 'Bob');
  await page.waitForStatus(says.missed);
  await looksRight(t, page, 'missed');
  await turnTo(page, 'log');
  await page.find('button', 'Call Bob');
  await looksRight(t, page, 'log');
  await turnTo(page, 'contacts');
  await looksRight(t, page, 'contacts-none');
  await turnTo(page, 'settings');
  await page.click('button', 'Link another device');
  await page.waitFor('there is a code', "document.getElementById('code-text').textContent");
  await page.waitFor('its QR code is shown', "document.querySelector('#code-qr img')?.naturalWidth > 0");
  await looksRight(t, page, 'settings');
  await page.click('button', 'Delete my account');
  await page.find('dialog');
  await looksRight(t, page, 'question');
});

test('a call looks right from the first ring to its end', async (t) => {
  const [{ url }, browser, doomed] = await Promise.all([serveNearby(t), chromium(), launchChromium()]);
  t.after(() => doomed.close());
  const [page, other, third] = await Promise.all([
    come(t, browser, url, ann), come(t, doomed, url, { ...bob, at: places.nextDoor }), come(t, browser, url, cat),
  ]);
  await Promise.all([lists(page, 'Bob'), lists(other, 'Ann'), lists(third, 'Ann')]);
  await call(other, 'Ann');
  await rings(page, 'Bob');
  await Promise.all([looksRight(t, page, 'incoming'), looksRight(t, other, 'calling')]);
  await page.click('button', 'Decline');
  await other.waitForStatus(says.declined);
  await looksRight(t, other, 'declined');
  await talk([page, ann], [other, bob]);
  await looksRight(t, page, 'call');
  await other.click('button', 'Keep in touch');
  await page.waitFor('the other person asks', () => /would like/.test(document.getElementById('keep-words').textContent));
  await page.click('button', 'Mute');
  await page.click('button', 'Camera off');
  await Promise.all([looksRight(t, page, 'call-muted'), looksRight(t, other, 'call-voice')]);
  await call(third, 'Ann');
  await rings(page, 'Cat');
  await looksRight(t, page, 'waiting');
  await page.click('button', 'Decline');
  await doomed.kill();
  await page.waitForStatus(says.away);
  await looksRight(t, page, 'away');
  await page.click('button', 'End');
  await isFree(page);
  await looksRight(t, page, 'after');
});

test('problems look right: no camera, and a lost server', async (t) => {
  const server = await serveNearby(t);
  const browser = await chromium();
  const [page] = await Promise.all([
    { label: 'a blind', name: 'Ann', scripts: [source(failMedia, 'NotAllowedError')] }, bob,
  ].map((person) => come(t, browser, server.url, person)));
  await lists(page, 'Bob');
  await call(page, 'Bob');
  await page.find('button', 'Voice call');
  await looksRight(t, page, 'no-camera');
  await server.kill();
  await page.waitForStatus(says.dropped);
  await looksRight(t, page, 'dropped');
});
