// A live broadcast over HLS: a video element of an application's page plays it, without a script.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { seesColor } from './media.mjs';
import { Child } from './process.mjs';
import { serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet, until } from './wait.mjs';

const { chromium } = sharedBrowsers();

/** `scripts/compositor` prints it. */
const compositor = process.env.CONFAB_COMPOSITOR;
const skip = compositor ? false : 'CONFAB_COMPOSITOR is not set to a confab-compositor (scripts/compositor)';

/** A busy machine composes late, and players begin only when the playlist has three target durations: 6 s, or 12 s without low latency. */
const timeout = 90_000;

/** Serves a page of another site with a video until the test ends. Returns its address. */
async function siteWithVideo(t, source) {
  const site = http.createServer((request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    // An empty icon, because the browser asks for one. Without `crossorigin`, the page could not read the pixels.
    response.end(`<!doctype html><title>An application</title><link rel="icon" href="data:,">
      <video src="${source}" crossorigin="anonymous" autoplay muted playsinline></video>`);
  });
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    site.closeAllConnections();
    site.close();
  });
  return `http://127.0.0.1:${site.address().port}`;
}

/** Broadcasts a session with one bot, and returns the broadcast's ID and the address of its playlist. */
async function broadcast(t, server, ...options) {
  const session = await server.command('session', 'create', '--media', 'routed');
  const token = await server.command('token', 'create', '--session', session, '--role', 'publisher');
  const bot = new Child(server.binary, ['bot', '--server', server.url, '--session', session, '--token', token]);
  t.after(() => bot.kill());
  const id = await until('the broadcast starts', async () => {
    try {
      return await server.command('broadcast', 'start', session, ...options);
    } catch (error) {
      // The bot is not in the session yet.
      throw new NotYet(error.message);
    }
  });
  const [, playlist] = /^hls: (\S+)$/m.exec(await server.command('broadcast', 'status', id));
  return { id, playlist: `${server.url}${playlist}` };
}

/** Runs in the page: what its video has played, in seconds and frames, and why it may not have. */
function played() {
  const video = document.querySelector('video');
  const { currentTime, ended, paused, readyState, networkState, videoWidth: width, videoHeight: height, error } = video;
  const buffered = Array.from({ length: video.buffered.length }, (_, index) => [video.buffered.start(index), video.buffered.end(index)]);
  const frames = video.getVideoPlaybackQuality().totalVideoFrames;
  return { currentTime, ended, paused, readyState, networkState, buffered, width, height, frames, error: error?.message ?? null };
}

/** A video element plays a broadcast with these options, and ends with it. */
async function playsToTheEnd(t, ...options) {
  const page = await (await chromium()).newPage({ label: 'a viewer' });
  t.after(() => page.close());
  const can = await page.evaluate("document.createElement('video').canPlayType('application/vnd.apple.mpegurl')");
  if (!can) return t.skip('this Chromium does not play HLS without a script');
  const server = await serve(t, { CONFAB_RECORDING_NOTICE: '0s', CONFAB_BROADCAST_COMPOSITOR: compositor });
  const { id, playlist } = await broadcast(t, server, ...options);
  const status = () => server.command('broadcast', 'status', id);
  await until('players may begin', async () => {
    const text = await status();
    if (!/ started  (ready|live) /.test(text)) throw new NotYet(text);
    return true;
  }, { timeout });
  await page.goto(await siteWithVideo(t, playlist));
  await page.until('the video begins by itself', async () => {
    const now = await page.evaluate(played);
    if (now.paused || now.error) throw new NotYet(JSON.stringify(now));
    return true;
  }, { timeout });
  // The bot's sample has one color, and its video fills the canvas.
  await seesColor(page, 'cyan', { selector: 'video', timeout });
  const first = await page.evaluate(played);
  assert.equal(first.error, null);
  assert.deepEqual([first.width, first.height], [640, 480]);
  await page.until('it plays another three seconds', async () => {
    const now = await page.evaluate(played);
    if (now.currentTime - first.currentTime < 3 || now.frames - first.frames < 30) throw new NotYet(JSON.stringify(now));
    return true;
  }, { timeout });
  await until('the server knows that there is a viewer', async () => {
    const text = await status();
    if (!text.includes(' live ')) throw new NotYet(text);
    return true;
  });
  await server.command('broadcast', 'stop', id);
  await page.until('the video ends', async () => {
    const now = await page.evaluate(played);
    if (!now.ended) throw new NotYet(JSON.stringify(now));
    return true;
  }, { timeout });
  assert.equal((await page.evaluate(played)).error, null);
}

test('a video element plays a broadcast with low latency, and ends with it', { skip }, (t) => playsToTheEnd(t, '--low-latency'));

testInFull(
  'a video element plays a broadcast without low latency, and ends with it',
  'BroadcastEndToEndTests: a broadcast of two bots is composed, and ffmpeg plays it over HTTP',
  { skip },
  (t) => playsToTheEnd(t),
);
