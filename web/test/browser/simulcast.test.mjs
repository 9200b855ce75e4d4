// Simulcast as pages see it. A camera of 1280 × 720 is encoded only in the layers that are needed, and each subscriber gets the
// layer that fits its preference.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();
/** A long timeout, because software encoders start slowly on a busy machine. */
const timeout = 60_000;

/** Opens `/try` and joins the session with the SDK instead of the form; `window.joined` is the session. */
async function join(t, browser, server, session, label) {
  const token = await server.command('token', 'create', '--session', session, '--role', 'publisher');
  const page = await browser.newPage({ label });
  t.after(() => page.close());
  await page.goto(`${server.url}/try`);
  await page.evaluate(async (sessionId, given) => {
    const { OT } = await import('/lib/index.js');
    window.OT = OT;
    window.joined = OT.initSession('1', sessionId);
    window.others = [];
    window.joined.on('streamCreated', ({ stream }) => window.others.push(stream));
    window.joined.on('streamDestroyed', ({ stream }) => { window.others = window.others.filter((known) => known !== stream); });
    await new Promise((resolve, reject) => { window.joined.connect(given, (error) => (error ? reject(error) : resolve())); });
  }, session, token);
  return page;
}

/** Publishes a moving test video of this size as a camera. */
function publish(page, width, height, options = {}) {
  return page.evaluate(async (wide, high, more) => {
    const canvas = Object.assign(document.createElement('canvas'), { width: wide, height: high });
    const context = canvas.getContext('2d');
    let frame = 0;
    const paint = () => {
      frame += 1;
      context.fillStyle = `hsl(${frame % 360} 80% 50%)`;
      context.fillRect(0, 0, wide, high);
      context.fillStyle = 'white';
      context.fillRect((frame * 7) % wide, high / 3, wide / 8, high / 8);
    };
    paint();
    // Use a timer, because the page may be hidden behind others.
    setInterval(paint, 1000 / 20);
    const [videoSource] = canvas.captureStream(20).getVideoTracks();
    const place = document.body.appendChild(document.createElement('div'));
    const publisher = window.OT.initPublisher(place, { videoSource, audioSource: null, publishAudio: false, ...more });
    window.publisher = publisher;
    await new Promise((resolve, reject) => { window.joined.publish(publisher, (error) => (error ? reject(error) : resolve())); });
  }, width, height, options);
}

/** Subscribes to the session's only other stream, and records every painted frame in `window.painted`. */
function subscribe(page, options) {
  return page.evaluate(async (more) => {
    const { joined, others: [known] } = window;
    const stream = await new Promise((resolve) => {
      if (known) resolve(known); else joined.on('streamCreated', (event) => resolve(event.stream));
    });
    const place = document.body.appendChild(document.createElement('div'));
    // The largest layer, however small it is shown.
    window.subscriber = joined.subscribe(stream, place, { width: 640, height: 360, preferredResolution: null, ...more });
    const video = place.querySelector('video');
    window.painted = [];
    const note = (at, { width, height }) => {
      window.painted.push({ at, width, height });
      video.requestVideoFrameCallback(note);
    };
    video.requestVideoFrameCallback(note);
  }, options);
}

/** Returns statistics of the video that the browser currently decodes: `{width, height, frames, bytes}`. */
function received(page) {
  return page.evaluate(async () => {
    const report = await window.subscriber.getRtcStatsReport();
    const entry = [...report.values()].find(({ type, kind }) => type === 'inbound-rtp' && kind === 'video') ?? {};
    return { width: entry.frameWidth, height: entry.frameHeight, frames: entry.framesDecoded, bytes: entry.bytesReceived };
  });
}

/** Returns for each rid whether its layer is encoded, and the number of frames. */
function sent(page) {
  return page.evaluate(async () => {
    const layers = {};
    for (const { rtcStatsReport } of await window.publisher.getRtcStatsReport()) {
      rtcStatsReport.forEach(({ type, kind, rid, active, framesSent, frameWidth }) => {
        if (type === 'outbound-rtp' && kind === 'video') layers[rid] = { active, framesSent, frameWidth };
      });
    }
    return layers;
  });
}

function seesWidth(page, width) {
  return page.until(`its picture is ${width} wide`, async () => {
    const now = await received(page);
    if (now.width !== width) throw new NotYet(JSON.stringify(now));
    return now;
  }, { timeout });
}

async function keepsMoving(page, by = 20) {
  // There is no frame count before the first report.
  const { frames: from = 0 } = await received(page);
  return page.until(`${by} more frames are decoded`, async () => {
    const { frames = 0 } = await received(page);
    if (frames - from < by) throw new NotYet(`${frames - from} so far`);
    return frames;
  }, { timeout });
}

/** Waits until exactly these layers are encoded. @param {string[]} rids */
function makes(page, rids) {
  return page.until(`it makes ${rids}`, async () => {
    const layers = await sent(page);
    const active = Object.entries(layers).filter(([, { active: isActive }]) => isActive).map(([rid]) => rid).sort();
    if (active.join() !== [...rids].sort().join()) throw new NotYet(JSON.stringify(layers));
    return layers;
  }, { timeout });
}

/** Returns the longest freeze of the video since a moment, in ms. */
function longestGap(page, since) {
  return page.evaluate((from) => {
    const times = window.painted.map(({ at }) => at).filter((at) => at >= from);
    return Math.round(Math.max(0, ...times.slice(1).map((at, index) => at - times[index])));
  }, since);
}

test('subscribers with different preferences get different layers, and unused layers are not encoded', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const browser = await chromium();
  const showing = await join(t, browser, server, session, 'publishing');
  await publish(showing, 1280, 720);
  const large = await join(t, browser, server, session, 'large');
  await subscribe(large, {});
  await seesWidth(large, 1280);
  assert.deepEqual(Object.keys(await sent(showing)).sort(), ['f', 'h', 'q']);
  // With one subscriber that wants the largest layer, no other layer is encoded.
  await makes(showing, ['f']);

  const small = await join(t, browser, server, session, 'small');
  await subscribe(small, { preferredResolution: { width: 320, height: 180 } });
  await seesWidth(small, 320);
  await keepsMoving(small);
  assert.equal((await received(large)).width, 1280);
  t.diagnostic(`two requests: ${JSON.stringify(await makes(showing, ['f', 'q']))}`);

  const before = await small.evaluate('performance.now()');
  for (const width of [640, 1280, 320]) {
    await small.evaluate((wide) => { window.subscriber.setPreferredResolution({ width: wide, height: wide * 9 / 16 }); }, width);
    await seesWidth(small, width);
    await keepsMoving(small);
  }
  t.diagnostic(`the longest that a picture stood still while layers changed: ${await longestGap(small, before)} ms`);

  // When the subscriber to the largest layer leaves, that layer is no longer encoded, and neither is the one requested in
  // between.
  await large.evaluate('window.joined.unsubscribe(window.subscriber)');
  const layers = await makes(showing, ['q']);
  await keepsMoving(small);
  assert.equal((await sent(showing)).f.framesSent, layers.f.framesSent, 'no frame of the large layer is sent');
  assertNothingThrown(showing, large, small);
});

testInFull('a requested frame rate is kept', 'SFUTests TemporalLayerTests, of the rule alone', {
  // After the browser has sent for a while, all frames are forwarded. Until this is fixed, a failure of this test does not fail
  // the run.
  todo: 'the rate returns to the publisher\'s own',
}, async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const showing = await join(t, await chromium(), server, session, 'publishing');
  await publish(showing, 1280, 720);
  const watching = await join(t, await chromium(), server, session, 'watching');
  await subscribe(watching, {});
  await keepsMoving(watching, 60);
  await watching.evaluate('window.subscriber.setPreferredFrameRate(8)');
  await watching.until('the frame rate falls', async () => {
    const rate = await watching.evaluate(() => {
      const now = performance.now();
      return window.painted.filter(({ at }) => at > now - 2000).length / 2;
    });
    if (rate > 10 || rate < 1) throw new NotYet(`${rate} frames a second`);
    return rate;
  }, { timeout });
  await keepsMoving(watching);
  assertNothingThrown(showing, watching);
});

testInFull('a small or non-scalable video is sent once',
  'unit/layers "are used for cameras that are large enough"', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const browser = await chromium();
  const watching = await join(t, browser, server, session, 'watching');
  for (const [width, height, options] of [[320, 240, {}], [1280, 720, { scalableVideo: false }]]) {
    const showing = await join(t, browser, server, session, `publishing ${width}`);
    await publish(showing, width, height, options);
    await subscribe(watching, { preferredResolution: { width: 100, height: 100 } });
    await seesWidth(watching, width);
    assert.equal(Object.keys(await sent(showing)).length, 1);
    await showing.evaluate('window.joined.disconnect()');
    await watching.until('the stream is gone', async () => {
      if (await watching.evaluate('window.others.length')) throw new NotYet('it is there');
      return true;
    });
  }
});

testInFull('a video without layers is sent while a person watches it, in a codec that they decode',
  'SFUTests UnwatchedVideoTests; unit/layers "of a video without layers are sent while a subscriber wants it"; '
  + 'unit/codecs "sends another one while the server asks for that, because of its subscribers"', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const showing = await join(t, await chromium(), server, session, 'publishing');
  await publish(showing, 640, 360, { videoCodec: 'vp9' });
  const isSent = (wanted) => showing.until(`the video is ${wanted ? '' : 'not '}sent`, async () => {
    const [{ active }] = Object.values(await sent(showing));
    if (active !== wanted) throw new NotYet(`${active}`);
    return true;
  }, { timeout });
  await isSent(false);

  const watching = await join(t, await chromium(), server, session, 'watching');
  await watching.evaluate(() => {
    const { addTransceiver } = RTCPeerConnection.prototype;
    RTCPeerConnection.prototype.addTransceiver = function add(...args) {
      const made = addTransceiver.apply(this, args);
      const vp8 = RTCRtpReceiver.getCapabilities('video').codecs.filter(({ mimeType }) => /VP8|rtx/i.test(mimeType));
      if (args[0] === 'video') made.setCodecPreferences(vp8);
      return made;
    };
  });
  const from = await watching.evaluate('performance.now()');
  await subscribe(watching, {});
  await seesWidth(watching, 640);
  await keepsMoving(watching);
  const first = await watching.evaluate('window.painted[0].at');
  t.diagnostic(`from subscribing to the first picture, in another codec: ${Math.round(first - from)} ms`);

  await watching.evaluate('window.joined.unsubscribe(window.subscriber)');
  await isSent(false);
  const again = await watching.evaluate('performance.now()');
  await subscribe(watching, {});
  await isSent(true);
  await keepsMoving(watching);
  const next = await watching.evaluate('window.painted[0].at');
  t.diagnostic(`from subscribing to the first picture: ${Math.round(next - again)} ms`);
  assertNothingThrown(showing, watching);
});

test('Firefox publishes layers, too', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const showing = await join(t, await firefox(), server, session, 'publishing');
  await publish(showing, 1280, 720);
  const [large, small] = [
    await join(t, await chromium(), server, session, 'large'), await join(t, await chromium(), server, session, 'small'),
  ];
  await subscribe(large, {});
  await subscribe(small, { preferredResolution: { width: 320, height: 180 } });
  await Promise.all([seesWidth(large, 1280), seesWidth(small, 320)]);
  await Promise.all([keepsMoving(large), keepsMoving(small)]);
  assertNothingThrown(showing, large, small);
});
