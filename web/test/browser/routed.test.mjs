// Media through the server, as pages see it: sessions with several publishers, one pair of connections for all partners, and
// the time to the first frame. `roulette` and `routed-networks` test what pages learn about each other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { keepFirstFrames, keepMessages, peerDetails, source } from './in-page.mjs';
import { framesRise, remoteColor } from './media.mjs';
import { arrive, assertNoComplaints, assertNothingThrown, begin, keepReceiving, meet, says, see, serve } from './stranger.mjs';
import { isFull, testInFull } from './tier.mjs';
import { NotYet } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();

// ---- A session with several publishers

/** Opens `/try` in the session, as a publisher. */
async function join(t, browser, server, session, options) {
  const token = await server.command('token', 'create', '--session', session, '--role', 'publisher');
  const page = await browser.newPage(options);
  t.after(() => page.close());
  await page.goto(`${server.url}/try#session=${session}&token=${token}`);
  await page.waitFor('the page is in the session', "document.body.dataset.screen === 'room'");
  return page;
}

/** Enables sound with a user gesture. Without one, browsers do not play sound, and the page's microphone is silent. */
async function touch(...pages) {
  for (const page of pages) {
    await page.click('log');
    // Press the button for blocked sound on each video.
    await page.evaluate(() => document.querySelectorAll('.tile .sound').forEach((sound) => sound.click()));
  }
}

/** Waits until the page shows exactly these videos. @param {string[]} colors */
function seesEach(page, colors) {
  const wanted = [...colors].sort().join(', ');
  return page.until(`it sees ${wanted}`, async () => {
    const count = await page.evaluate(() => {
      const videos = [...document.querySelectorAll('.OT_subscriber video')];
      videos.forEach((video, index) => { video.dataset.number = index; });
      return videos.length;
    });
    const seen = [];
    for (let index = 0; index < count; index += 1) seen.push(await remoteColor(page, `video[data-number="${index}"]`));
    if (seen.sort().join(', ') !== wanted) throw new NotYet(`it sees ${seen.join(', ') || 'nobody'}`);
    return true;
  });
}

async function threeSeeEachOther(t, browsers) {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const colors = ['red', 'green', 'blue'];
  const pages = [];
  for (const [index, color] of colors.entries()) pages.push(await join(t, browsers[index], server, session, { color }));
  await Promise.all(pages.map((page, index) => seesEach(page, colors.filter((_, other) => other !== index))));
  await touch(...pages);
  await keepReceiving(...pages);
  for (const page of pages) {
    const details = await page.evaluate(peerDetails);
    assert.deepEqual(details.map(({ direction }) => direction).sort(), ['recvonly', 'sendonly'], page.label);
  }
  assertNoComplaints(...pages);
}

test('two Chromium pages and one Firefox page see both others, over two connections each', async (t) => {
  await threeSeeEachOther(t, [await chromium(), await firefox(), await chromium()]);
});

testInFull('three Chromium pages see both others, over two connections each', 'the test above', async (t) => {
  await threeSeeEachOther(t, [await chromium(), await chromium(), await chromium()]);
});

testInFull('a publisher alone in a session can subscribe to their own stream',
  'SignalingTests RoutedTests.oneMaySubscribeToOneself; '
  + 'unit/routed "come back to their own publisher as a test"', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const page = await join(t, await chromium(), server, session, { color: 'magenta' });
  const token = await server.command('token', 'create', '--session', session, '--role', 'publisher');
  await touch(page);
  await page.evaluate(async (sessionId, given) => {
    const { OT } = await import('/lib/index.js');
    const once = (begin) => new Promise((resolve, reject) => begin((error) => (error ? reject(error) : resolve())));
    const alone = OT.initSession('1', sessionId);
    await once((done) => alone.connect(given, done));
    const publisher = OT.initPublisher(document.body.appendChild(document.createElement('div')));
    await once((done) => alone.publish(publisher, done));
    const place = document.body.appendChild(document.createElement('div'));
    place.id = 'echo';
    await once((done) => alone.subscribe(publisher.stream, place, { insertMode: 'append', testNetwork: true }, done));
  }, session, token);
  await page.until('the echo is magenta', async () => {
    const color = await remoteColor(page, '#echo video');
    if (color !== 'magenta') throw new NotYet(`it is ${color}`);
    return true;
  });
  await keepReceiving(page);
  assertNothingThrown(page);
});

// ---- One pair of connections for every partner

/**
 * Returns the milliseconds from each `roulette.matched` to that partner's first painted frame, or undefined if there was none.
 */
function timesToPicture(page) {
  return page.evaluate(() => {
    const matched = window.__heard.filter(({ text }) => JSON.parse(text).type === 'roulette.matched').map(({ at }) => at);
    return matched.map((at, index) => {
      const shown = window.__shown.find((moment) => moment >= at && moment < (matched[index + 1] ?? Infinity));
      return shown && shown - at;
    });
  });
}

function percentiles(values) {
  const sorted = values.filter((value) => value !== undefined && value !== null).sort((a, b) => a - b);
  const at = (share) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms (${sorted.length} of ${values.length}: ${sorted.map(Math.round).join(' ')})`;
}

const fast = { CONFAB_ROULETTE_REMATCH_WAIT: '0s', CONFAB_ROULETTE_SKIPS_BEFORE_WAIT: '1000' };
const timed = { scripts: [source(keepMessages), source(keepFirstFrames)] };

test('the same two connections serve every partner, and measures how soon each is seen', async (t) => {
  const { url } = await serve(t, fast);
  const browser = await chromium();
  const red = await arrive(t, browser, url, { color: 'red', ...timed });
  const green = await arrive(t, browser, url, { color: 'green', ...timed });
  await meet([red, 'red'], [green, 'green']);
  const before = await Promise.all([red, green].map((page) => page.evaluate(peerDetails)));
  // Three partners show that no connection is created again. More partners are for the measurements.
  const rounds = isFull ? 15 : 3;
  for (let round = 1; round <= rounds; round += 1) {
    const page = round % 2 ? red : green;
    await page.click('button', 'Next');
    await Promise.all([red, green].map((one) => one.until(`it has met partner ${round + 1}, and sees them`, async () => {
      const times = await timesToPicture(one);
      if (times.length < round + 1) throw new NotYet(`it has met ${times.length}`);
      if (!times.at(-1)) throw new NotYet('there is no picture');
      return true;
    })));
  }
  await Promise.all([see(red, 'green'), see(green, 'red'), keepReceiving(red, green)]);
  const times = (await Promise.all([red, green].map(timesToPicture)));
  t.diagnostic(`from being matched to the picture, the first: ${percentiles(times.map(([first]) => first))}`);
  t.diagnostic(`from being matched to the picture, after Next: ${percentiles(times.flatMap(([, ...later]) => later))}`);
  for (const [index, page] of [red, green].entries()) {
    assert.equal(await page.evaluate('window.__peers.length'), 2, `${page.label} made no other connection`);
    const now = await page.evaluate(peerDetails);
    assert.deepEqual(now.map(({ number }) => number), [0, 1]);
    for (const { iceStates, direction } of now) {
      const bad = iceStates.filter((state) => !['checking', 'connected', 'completed'].includes(state));
      assert.deepEqual(bad, [], `${page.label}, ${direction}: ${iceStates}`);
    }
    assert.deepEqual(now.map(({ pair }) => pair.local), before[index].map(({ pair }) => pair.local), 'the path is the same');
  }
  assertNoComplaints(red, green);
});

testInFull('measures how soon a new user sees the first partner',
  'roulette.test.mjs "two strangers in Chromium meet"; this only measures', async (t) => {
  const { url } = await serve(t, fast);
  const browser = await chromium();
  const times = [];
  for (let round = 0; round < 6; round += 1) {
    const pages = [];
    for (const color of ['red', 'green']) pages.push(await arrive(t, browser, url, { color, ...timed }));
    const [red, green] = pages;
    await begin(red);
    await red.waitForStatus(says.looking);
    await begin(green);
    for (const page of pages) {
      times.push((await page.until('it sees a partner', async () => {
        const found = await timesToPicture(page);
        if (!found[0]) throw new NotYet(`it has met ${found.length}`);
        return found;
      }))[0]);
    }
    await Promise.all(pages.map((page) => framesRise(page)));
    await Promise.all(pages.map((page) => page.close()));
  }
  t.diagnostic(`from being matched to the picture: ${percentiles(times)}`);
});
