// A page requests what it shows. Six robots publish three layers each; the page shows them large, then five of them small, and
// then scrolls one away and back.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { sharedBrowsers } from './browsers.mjs';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { NotYet } from './wait.mjs';

const { chromium } = sharedBrowsers();
const run = promisify(execFile);
const publishers = 6;
/** For how many frames of all videos bytes are counted: four seconds on a machine that has the time. */
const counted = 6 * 60;
/** How often a tile is scrolled away and back. */
const rounds = 7;
const timeout = 60_000;

/** Encodes a moving picture in three sizes and returns the arguments of a bot that publishes them. */
async function layers(t) {
  const folder = await temporaryFolder('layers');
  t.after(() => removeFolder(folder));
  const files = [[640, 360, '500k'], [320, 180, '150k'], [160, 90, '50k']].map(([width, height, rate]) => (
    { width, height, rate, file: path.join(folder, `${width}.ivf`) }));
  await Promise.all(files.map(({ width, height, rate, file }) => run('ffmpeg', [
    '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', `testsrc2=s=${width}x${height}:r=15`, '-t', '4', '-pix_fmt', 'yuv420p',
    '-c:v', 'libvpx', '-b:v', rate, '-minrate', rate, '-maxrate', rate, '-g', '15', '-keyint_min', '15', '-auto-alt-ref', '0',
    '-deadline', 'realtime', '-cpu-used', '8', file,
  ])));
  return files.flatMap(({ file }) => ['--publish', file]);
}

/** Runs in the page: joins the session and shows every stream in a tile of its own. */
async function showAll(sessionId, token) {
  // The first tier paints at half the scale.
  Object.defineProperty(window, 'devicePixelRatio', { value: 1 });
  const { OT } = await import('/lib/index.js');
  document.body.replaceChildren();
  Object.assign(document.body.style, { display: 'block', height: 'auto', overflow: 'auto' });
  window.tiles = [];
  const session = OT.initSession('1', sessionId);
  session.on('streamCreated', ({ stream }) => {
    const place = document.body.appendChild(document.createElement('div'));
    Object.assign(place.style, { position: 'relative', float: 'left', width: '640px', height: '360px' });
    const subscriber = session.subscribe(stream, place, { insertMode: 'append', width: '100%', height: '100%' });
    window.tiles.push({ place, subscriber });
  });
  await new Promise((resolve, reject) => { session.connect(token, (error) => (error ? reject(error) : resolve())); });
}

/** Runs in the page: the width, the received bytes and the decoded frames of each tile's video. */
async function videos() {
  return Promise.all(window.tiles.map(async ({ subscriber }) => {
    const report = await subscriber.getRtcStatsReport();
    const { frameWidth, bytesReceived = 0, framesDecoded = 0 } = [...report.values()].find(({ type, kind }) => type === 'inbound-rtp' && kind === 'video') ?? {};
    return { width: frameWidth, bytes: bytesReceived, frames: framesDecoded };
  }));
}

function waitForWidths(page, widths) {
  return page.until(`the videos are ${widths} wide`, async () => {
    const now = (await page.evaluate(videos)).map(({ width }) => width);
    if (now.join() !== widths.join()) throw new NotYet(`they are ${now}`);
    return true;
  }, { timeout });
}

/** Returns the bytes of video per frame, over many frames, because a busy machine may drop some. */
async function received(page) {
  const total = async (name) => (await page.evaluate(videos)).reduce((sum, { [name]: count }) => sum + count, 0);
  const [bytes, frames] = [await total('bytes'), await total('frames')];
  await page.until(`${counted} frames are decoded`, async () => {
    const now = await total('frames') - frames;
    if (now < counted) throw new NotYet(`${now} are`);
    return true;
  }, { timeout });
  return (await total('bytes') - bytes) / (await total('frames') - frames);
}

/** Waits until a tile has received no video for a second. */
function receivesNothing(page, index) {
  let last = { bytes: -1, since: 0 };
  return page.until(`tile ${index} receives no video`, async () => {
    const { bytes } = (await page.evaluate(videos))[index];
    if (bytes !== last.bytes) last = { bytes, since: performance.now() };
    if (performance.now() - last.since < 1000) throw new NotYet(`it has received ${bytes} bytes`);
    return true;
  });
}

/** Runs in the page: scrolls a tile into view, and returns the milliseconds until a new frame of its video is presented. */
async function scrollTo(index) {
  const { place } = window.tiles[index];
  const presented = new Promise((resolve) => { place.querySelector('video').requestVideoFrameCallback(resolve); });
  const start = performance.now();
  place.scrollIntoView();
  await presented;
  return performance.now() - start;
}

test('a page receives small layers for small tiles, nothing for hidden ones, and what it scrolls to at once', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const token = (role) => server.command('token', 'create', '--session', session, '--role', role);
  const bots = new Child(server.binary, [
    'bot', '--server', server.url, '--session', session, '--token', await token('publisher'), '--count', String(publishers),
    ...await layers(t),
  ]);
  t.after(() => bots.kill());
  const page = await (await chromium()).newPage({ label: 'watching', width: 1920, height: 760 });
  t.after(() => page.close());
  await page.goto(`${server.url}/try`);
  await page.evaluate(showAll, session, await token('subscriber'));

  await waitForWidths(page, Array(publishers).fill(640));
  const large = await received(page);
  const small = await page.evaluate(() => {
    window.tiles.slice(1).forEach(({ place }) => Object.assign(place.style, { width: '160px', height: '90px' }));
  }).then(() => waitForWidths(page, [640, ...Array(publishers - 1).fill(160)])).then(() => received(page));
  t.diagnostic(`bytes per frame: six large tiles ${Math.round(large)}, one large and five small ${Math.round(small)}, ${Math.round(100 * small / large)} %`);
  assert.ok(small < 0.4 * large, `five small tiles cost ${Math.round(100 * small / large)} %`);

  const times = [];
  const away = publishers - 1;
  await page.evaluate((index) => {
    Object.assign(window.tiles[index].place.style, { clear: 'both', marginTop: '3000px', width: '640px', height: '360px' });
  }, away);
  for (let round = 0; round < rounds; round += 1) {
    await page.evaluate('scrollTo(0, 0)');
    await receivesNothing(page, away);
    times.push(Math.round(await page.evaluate(scrollTo, away)));
  }
  times.sort((one, other) => one - other);
  t.diagnostic(`from scrolling to a new frame, in ms: median ${times[(rounds - 1) / 2]} of ${times}`);
  assertNothingThrown(page);
});
