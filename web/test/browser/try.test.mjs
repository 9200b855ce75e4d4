// Tests the page `/try`, which joins any session. Sessions and tokens are created on the command line while the server is
// running.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { sharedBrowsers } from './browsers.mjs';
import { assertNoComplaints, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet } from './wait.mjs';

const run = promisify(execFile);
const { chromium } = sharedBrowsers();

/** Runs a command of the server's executable on the server's data, and returns the output. */
async function confab(server, ...parts) {
  const { stdout } = await run(server.binary, [...parts, '--data-dir', server.dataFolder]);
  return stdout.trim();
}

async function open(t, browser, server, session, role, color) {
  const token = await confab(server, 'token', 'create', '--session', session, '--role', role);
  const page = await browser.newPage({ color });
  t.after(() => page.close());
  await page.goto(`${server.url}/try#session=${session}&token=${token}`);
  return page;
}

/** Waits until this many videos are playing. */
function videosPlay(page, count) {
  return page.until(`${count} videos play`, async () => {
    const playing = await page.evaluate(() => [...document.querySelectorAll('.OT_subscriber video')]
      .filter((video) => video.videoWidth > 0 && !video.paused && video.readyState >= 2).length);
    if (playing < count) throw new NotYet(`${playing} do`);
    return true;
  });
}

testInFull('a publisher and a subscriber join a session made on the command line, and the subscriber only watches',
  'bot.test.mjs "a custom film is seen and heard"; '
  + 'SignalingTests RoleTests.publishingIsForAllButSubscribers', async (t) => {
  const server = await serve(t);
  const session = await confab(server, 'session', 'create');
  const browser = await chromium();
  const watching = await open(t, browser, server, session, 'subscriber', 'green');
  const showing = await open(t, browser, server, session, 'publisher', 'red');
  await videosPlay(watching, 1);
  // A screenshot of the page, or its entry in the history, must not let others join.
  assert.equal(await watching.evaluate(() => location.hash), `#${new URLSearchParams({ session })}`);
  assert.equal(await showing.evaluate(() => document.querySelectorAll('.OT_subscriber').length), 0);
  assertNoComplaints(watching, showing);
});

testInFull('three publishers in one session each see both others',
  'routed.test.mjs "two Chromium pages and one Firefox page"', async (t) => {
  const server = await serve(t);
  const session = await confab(server, 'session', 'create');
  const browser = await chromium();
  const pages = [];
  for (const color of ['red', 'green', 'blue']) pages.push(await open(t, browser, server, session, 'publisher', color));
  await Promise.all(pages.map((page) => videosPlay(page, 2)));
  assertNoComplaints(...pages);
});
