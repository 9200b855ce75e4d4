// Recordings of pages: the picture and the sound of real browsers are together in the files.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { beepTimes, flashAndBeep, flashTimes, lags, median } from './flash.mjs';
import { source } from './in-page.mjs';
import { assertNothingThrown, keepReceiving, serve } from './stranger.mjs';
import { isFull } from './tier.mjs';
import { NotYet, until } from './wait.mjs';

const { chromium } = sharedBrowsers();

/**
 * What lip sync may be wrong by, in milliseconds: ITU-R BT.1359 says that people notice 45 ms of early sound. A browser on a machine that
 * does something else as well captures sound up to 200 ms late, so the first tier only finds larger faults.
 */
const limit = isFull ? 40 : 400;
const tones = [1000, 3000];
const seconds = 8;
/** The maximum number of recordings, of which one must be in sync, because a browser may have captured late. */
const recordings = 3;

/** A flash and its beep are further apart than `limit`. */
class OutOfSync extends Error {}

async function publish(t, server, session, tone) {
  const token = await server.command('token', 'create', '--session', session, '--role', 'publisher');
  const page = await (await chromium()).newPage({ label: `the one of ${tone} Hz`, scripts: [source(flashAndBeep, { tone })] });
  t.after(() => page.close());
  await page.goto(`${server.url}/try#session=${session}&token=${token}`);
  await page.waitFor('the page is in the session', "document.body.dataset.screen === 'room'");
  await page.click('log');
  return page;
}

/** Records the session for some seconds, waits until the archive is available, and returns its folder. */
async function record(server, session, pages, ...options) {
  const id = await server.command('archive', 'start', session, ...options);
  const [page] = pages;
  const before = await page.evaluate('window.__flashes');
  await page.waitFor(`it has flashed ${seconds} times`, `window.__flashes >= ${before + seconds}`);
  await server.command('archive', 'stop', id);
  await until('the archive is available', async () => {
    const line = await server.command('archive', 'get', id);
    if (!/ available /.test(line)) throw new NotYet(line);
    return true;
  }, { timeout: 120_000 });
  const folders = await readdir(server.dataFolder, { recursive: true });
  return path.join(server.dataFolder, folders.find((name) => path.basename(name) === id));
}

/**
 * Checks that each beep has its flash. A page on a busy machine may paint a flash late, so the median counts, at the beginning and at
 * the end: a drift would show there.
 */
async function assertInSync(t, file, tone, filter) {
  const [flashes, beeps] = await Promise.all([flashTimes(file, filter), beepTimes(file, tone)]);
  const found = lags(flashes, beeps);
  const name = `${path.basename(file)}, ${tone} Hz`;
  t.diagnostic(`${name}: flashes later than beeps by ${found.join(', ')} ms`);
  assert.ok(found.length >= seconds - 2, `${name}: beeps at ${beeps}; flashes at ${flashes}`);
  const half = Math.floor(found.length / 2);
  for (const part of [found.slice(0, half), found.slice(half)]) {
    if (Math.abs(median(part)) > limit) throw new OutOfSync(`${name}: ${found}`);
  }
}

/** Checks the files of both streams and the composed file of a recording. */
async function assertArchiveInSync(t, folder) {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.webm')).map((name) => path.join(folder, name));
  assert.equal(files.length, 2, `${await readdir(folder)}`);
  for (const file of files) {
    const heard = await Promise.all(tones.map((tone) => beepTimes(file, tone)));
    const [tone] = tones.filter((_, index) => heard[index].length > 2);
    await assertInSync(t, file, tone);
  }
  // Two people are side by side. Who is left depends on who came first.
  const composed = path.join(folder, 'archive.mp4');
  for (const [index, tone] of tones.entries()) {
    await assertInSync(t, composed, tone, `crop=iw/4:ih/4:${index ? '5*iw/8' : 'iw/8'}:3*ih/8`);
  }
}

test('flash and beep of two pages are together, in the files of the streams and in the composed one', async (t) => {
  const server = await serve(t, { CONFAB_RECORDING_NOTICE: '0s' });
  const session = await server.command('session', 'create', '--media', 'routed');
  const pages = [];
  for (const tone of tones) pages.push(await publish(t, server, session, tone));
  await keepReceiving(...pages);
  for (let recording = 1; ; recording += 1) {
    const folder = await record(server, session, pages, '--composed');
    try {
      await assertArchiveInSync(t, folder);
      break;
    } catch (error) {
      if (recording === recordings || !(error instanceof OutOfSync)) throw error;
      t.diagnostic(`recording ${recording}: ${error.message}`);
    }
  }
  assertNothingThrown(...pages);
});
