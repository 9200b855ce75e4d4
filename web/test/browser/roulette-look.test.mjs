// Every state of the roulette page, checked with axe: phone and laptop, light and dark. With `--all` also photographed.
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { launchChromium } from './chromium.mjs';
import { failMedia, notAskedYet, source } from './in-page.mjs';
import { looksOf } from './screenshots.mjs';
import { arrive, begin, reads, says, see, serve, write } from './stranger.mjs';
import { isFull } from './tier.mjs';

const { chromium } = sharedBrowsers();
const looksRight = looksOf('roulette');

test('the first screen looks right before anything is chosen, with the preview, and for text only', async (t) => {
  const { url } = await serve(t);
  const page = await arrive(t, await chromium(), url, { color: 'teal', scripts: [source(notAskedYet)] });
  await page.waitForStatus(says.ready);
  await looksRight(t, page, 'first');
  await page.fill('textbox', 'Name', 'Ann');
  await page.fill('textbox', 'Interests', 'chess, jazz,');
  await page.click('button', 'Turn on camera');
  await page.find('video', 'You');
  await looksRight(t, page, 'preview');
  await page.click('radio', 'Text only');
  await looksRight(t, page, 'first-text');
});

test('a blocked, missing or busy camera is explained, and text chat is offered', async (t) => {
  const { url } = await serve(t);
  // The error must be set from the start, because a page with camera permission opens the camera at once.
  const page = await arrive(t, await chromium(), url, { label: 'a blind', scripts: [source(failMedia, 'NotAllowedError')] });
  for (const [errorName, state, sentence] of [
    ['NotAllowedError', 'refused', /are blocked for this page/],
    ['NotFoundError', 'missing', /camera or microphone was not found/],
    ['NotReadableError', 'busy', /Another program is using/],
  ]) {
    await page.evaluate(failMedia, errorName);
    await page.click('radio', 'Video');
    await begin(page);
    await page.find('button', 'Use text chat');
    await page.waitFor(`it says that the camera is ${state}`, (pattern) => new RegExp(pattern).test(document.body.innerText), {
      args: [sentence.source],
    });
    // This notice has all buttons that the other notices have.
    if (isFull || state === 'missing') await looksRight(t, page, `camera-${state}`);
    await page.click('button', 'Use text chat');
    await page.click('button', 'Start');
    await page.waitForStatus(says.looking);
    await page.click('button', 'Stop');
  }
});

test('waiting and a video chat look right, with its dialogs and its end', async (t) => {
  const { url } = await serve(t, { CONFAB_CONNECTION_RESUME_GRACE: '300s' });
  const browser = await chromium();
  const doomed = await launchChromium();
  t.after(() => doomed.close());
  const page = await arrive(t, browser, url, { color: 'red' });
  const partner = await arrive(t, doomed, url, { color: 'green' });
  await begin(page);
  await page.waitForStatus(says.looking);
  await looksRight(t, page, 'waiting');
  await begin(partner);
  await Promise.all([see(page, 'green'), see(partner, 'red')]);
  await looksRight(t, page, 'chat');
  await write(partner, 'Hello! Where do you look at me from?');
  await write(page, 'From a long way off, and at a line that is long enough to need more than one on a telephone.');
  await reads(page, 'Hello!');
  await looksRight(t, page, 'chat-text');
  await page.click('button', 'Mute');
  await page.click('button', 'Camera off');
  await looksRight(t, page, 'chat-muted');
  await page.click('button', 'Report');
  await page.find('dialog');
  await looksRight(t, page, 'report');
  await page.press('Escape');
  await page.waitFor('the question is closed', "!document.querySelector('dialog[open]')");
  await page.click('button', 'Block');
  await page.find('button', 'Cancel');
  await looksRight(t, page, 'block');
  await page.click('button', 'Cancel');
  await doomed.kill();
  await page.waitForStatus(says.away);
  await looksRight(t, page, 'away');
});

test('a text chat looks right', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const page = await arrive(t, browser, url, { label: 'a writing' });
  const partner = await arrive(t, browser, url, { label: 'another writing' });
  await begin(page, { textOnly: true, name: 'Ann' });
  await page.waitForStatus(says.looking);
  await begin(partner, { textOnly: true, name: 'Bob' });
  await page.waitForStatus(says.writing);
  await write(partner, 'Hello, Ann.');
  await reads(page, 'Hello, Ann.');
  await looksRight(t, page, 'text');
});

test('problems look right: a lost server, and a second tab', async (t) => {
  const server = await serve(t);
  const browser = await chromium();
  const page = await arrive(t, browser, server.url, { color: 'red' });
  await begin(page);
  await page.waitForStatus(says.looking);
  const second = await arrive(t, browser, server.url, { color: 'blue', sharing: page });
  await begin(second);
  await second.until('the second tab says where the first is', async () => /another tab/i.test(await second.alerts()));
  await looksRight(t, second, 'elsewhere');
  await server.kill();
  await page.waitForStatus(says.dropped);
  await looksRight(t, page, 'dropped');
});

test('the first screen and a chat can be used with the keyboard alone', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const partner = await arrive(t, browser, url, { color: 'green' });
  const page = await arrive(t, browser, url, { color: 'red' });
  await begin(partner, { textOnly: true });
  await partner.waitForStatus(says.looking);

  await page.tabTo('radio', 'Video');
  await page.press('ArrowDown');
  await page.tabTo('textbox', 'Name');
  await page.type('Ann');
  await page.tabTo('checkbox');
  await page.press('Space');
  await page.tabTo('button', 'Start');
  await page.press('Enter');
  await page.waitForStatus(says.writing);
  await page.tabTo('textbox', 'Message');
  await page.type('typed');
  await page.press('Enter');
  await reads(partner, 'typed');
  await page.tabTo('button', 'Next');
  await page.press('Enter');
  await partner.waitForStatus(says.movedOn);
});
