// A program of the operator checks the cameras of a chat (docs/moderation.md), and the page shows what follows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sharedBrowsers } from './browsers.mjs';
import { arrive, begin, says, serve } from './stranger.mjs';

const { chromium } = sharedBrowsers();
const program = fileURLToPath(new URL('../../../Examples/SampleProgram/program.py', import.meta.url));

test('a program that checks cameras blurs both videos, then ends the chat, and the page says why', async (t) => {
  // Two samples per interval, one of each camera: both are blurred twice before one chat ends.
  const command = [program, '--verdicts', 'blur', 'blur', 'blur', 'blur', 'end'].join(',');
  const { url } = await serve(t, { CONFAB_MODERATION_PROGRAM: command, CONFAB_MODERATION_INTERVAL: '2s' });
  const browser = await chromium();
  const pages = [await arrive(t, browser, url, { color: 'red' }), await arrive(t, browser, url, { color: 'green' })];
  for (const page of pages) {
    await page.waitForStatus(says.ready);
    const note = await page.evaluate(function () { return document.querySelector('#sampling-note').checkVisibility(); });
    assert.ok(note, `${page.label}: the rules mention the check`);
  }
  const [red, green] = pages;
  await begin(red);
  await red.waitForStatus(says.looking);
  await begin(green);
  await Promise.all(pages.map((page) => page.until('the partner is blurred', () => page.evaluate(function () {
    return document.querySelector('#stage').dataset.blurred === 'yes' && document.querySelector('#blur-words').textContent !== '';
  }))));
  await red.until('one person reads that their chat was ended', async () => {
    const texts = await Promise.all(pages.map((page) => page.alerts()));
    return texts.some((text) => /chat was ended because your video/.test(text));
  });
});
