// WHIP and WHEP with clients that know only an address and a token: aiortc publishes and subscribes with HTTP requests, with a
// page or another aiortc client at the other end. The Python side is `../peers/whip_client.py`, `../peers/whip_phone.py` and
// `../peers/whep_client.py`.
import assert from 'node:assert/strict';
import test from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { colors, framesRise, remoteVideo, seesColor, soundArrives } from './media.mjs';
import { MediaPeer, open, routed } from './media-peer.mjs';
import { assertNoComplaints } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet, stopwatch, until } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();

async function publisher(t, { server, session, token }, label = 'the publisher') {
  return Peer.start(t, 'whip_client.py', [`${server.url}/whip/${session}`, await token('publisheronly')], label);
}

/** A phone that is held upright. It offers what Safari offers. */
async function phone(t, { server, session, token }) {
  return Peer.start(t, 'whip_phone.py', [`${server.url}/whip/${session}`, await token('publisheronly')], 'the phone');
}

async function viewer(t, { server, session, token }, label = 'the viewer') {
  return Peer.start(t, 'whep_client.py', [`${server.url}/whep/${session}`, await token('subscriber')], label);
}

class Peer extends MediaPeer {
  /** Sends a request with an unsupported method or to a resource that is gone, and returns the status. */
  async status(method) {
    this.reported = this.reported.filter(({ event }) => event !== 'status');
    this.do('ask', { method });
    return this.tells('status');
  }
}

async function isSeenAndHeard(t, codec, options) {
  const room = await routed(t, {}, options);
  const page = await open(t, chromium, room, 'subscriber');
  const peer = await publisher(t, room);
  const time = stopwatch();
  peer.publish('magenta', 440, codec);
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await seesColor(page, 'magenta');
  t.diagnostic(`seen after ${time()}`);
  await soundArrives(page);
  await framesRise(page);
  assertNoComplaints(page);
}

test('H264 published by a WHIP client is seen and heard on a page, below a path of a site', (t) => isSeenAndHeard(t, 'H264', { path: '/video' }));

testInFull('VP8 published by a WHIP client is seen and heard on a page', 'peers-aiortc.test.mjs "VP8 published by aiortc"',
  (t) => isSeenAndHeard(t, 'VP8'));

test('a phone that offers H264 in the high profile first is seen and heard in Chromium and in Firefox', async (t) => {
  const room = await routed(t);
  const pages = await Promise.all([chromium, firefox].map((launch) => open(t, launch, room, 'subscriber')));
  const peer = await phone(t, room);
  peer.do('publish', { sky: colors.magenta, ground: colors.green, hertz: 440 });
  const { codec } = await peer.tells('answered');
  assert.equal(codec, 'VP8', 'the answer prefers what every browser has, whatever the order of the offer');
  for (const page of pages) {
    await seesColor(page, 'magenta', { top: 0 });
    await soundArrives(page);
    await framesRise(page);
  }
  assertNoComplaints(...pages);
});

test('the picture of a phone that is held upright stands upright in Firefox, which turns no pictures', async (t) => {
  const room = await routed(t);
  const page = await open(t, firefox, room, 'subscriber');
  const peer = await phone(t, room);
  peer.do('publish', { sky: colors.cyan, ground: colors.yellow, hertz: 440 });
  const { orientation } = await peer.tells('answered');
  assert.equal(orientation, false, 'the answer lets publishers leave the turning to subscribers');
  await seesColor(page, 'cyan', { top: 0 });
  await seesColor(page, 'yellow', { top: 0.75 });
  const [width, height] = await page.evaluate((selector) => {
    const { videoWidth, videoHeight } = document.querySelector(selector);
    return [videoWidth, videoHeight];
  }, remoteVideo);
  assert.ok(width < height, `${width} × ${height}`);
  assertNoComplaints(page);
});

testInFull('a WHIP client restarts ICE, and the video continues on another path',
  'SignalingTests WHIPTests.newCredentialsRestartICEAndChangeTheTag; '
  + 'SFUTests ConnectionTests.anICERestartLosesNothing', async (t) => {
  const room = await routed(t);
  const page = await open(t, chromium, room, 'subscriber');
  const peer = await publisher(t, room);
  peer.publish('cyan', 440);
  const { tag } = await peer.tells('created');
  await peer.tells('connected');
  await seesColor(page, 'cyan');
  peer.do('trickle');
  assert.equal(await peer.tells('trickled'), 204);
  peer.do('restart');
  assert.notEqual(await peer.tells('restarted'), tag);
  await framesRise(page, { by: 30 });
  peer.do('trickle');
  await framesRise(page);
  assertNoComplaints(page);
});

testInFull('a WHIP client ends its stream, and its address is gone',
  'SignalingTests WHIPTests.aDeleteEndsTheStreamAndTheConnection; '
  + 'ServerTests "an offer from OBS is answered"', async (t) => {
  const room = await routed(t);
  const page = await open(t, chromium, room, 'subscriber');
  const peer = await publisher(t, room);
  peer.publish('red', 440);
  await seesColor(page, 'red');
  assert.equal(await peer.status('GET'), 405);
  peer.do('delete');
  assert.equal(await peer.tells('deleted'), 200);
  await page.waitFor('the page shows no video', "!document.querySelector('.OT_subscriber video')");
  assert.equal(await peer.status('DELETE'), 404);
  assertNoComplaints(page);
});

test('below a path of a site, a page\'s stream is seen and heard by a WHEP client, also after an ICE restart', async (t) => {
  const room = await routed(t, {}, { path: '/video' });
  const page = await open(t, chromium, room, 'publisher', { color: 'yellow', tone: 600 });
  await page.waitFor('the page publishes', "document.querySelector('.OT_publisher video')?.videoWidth > 0");
  const peer = await viewer(t, room);
  const time = stopwatch();
  await untilThere(peer);
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await peer.sees('yellow');
  t.diagnostic(`seen after ${time()}`);
  await peer.hears(600);
  peer.do('restart');
  await peer.tells('restarted');
  await peer.sees('yellow', 30);
  await peer.hears(600);
  peer.do('delete');
  assert.equal(await peer.tells('deleted'), 200);
  assertNoComplaints(page);
});

testInFull('WHEP shows a WHIP stream, and the next one when the publisher returns',
  'SignalingTests WHIPTests.aViewerGetsTheNewestCameraAndThenTheNext; '
  + 'ServerTests "a WHIP stream is announced to the session, and WHEP can watch it"', async (t) => {
  const room = await routed(t);
  const first = await publisher(t, room, 'the first');
  first.publish('cyan', 440);
  await first.tells('connected');
  const peer = await viewer(t, room);
  peer.do('watch');
  await peer.sees('cyan');
  first.do('delete');
  await first.tells('deleted');
  const second = await publisher(t, room, 'the second');
  second.publish('blue', 880);
  await peer.sees('blue');
  await peer.hears(880);
});

/** Retries until there is a stream, because a page publishes only once its connection is ready. */
function untilThere(peer) {
  peer.do('watch');
  return until('there is something to watch', () => {
    if (peer.reported.some(({ event }) => event === 'created')) return true;
    const refused = peer.reported.findIndex(({ event, args }) => event === 'fault' && args[0].startsWith('Refused: 404'));
    if (refused < 0) throw new NotYet('no answer has come');
    peer.reported.splice(refused, 1);
    peer.do('watch');
    throw new NotYet('it was 404');
  }, { why: () => peer.explain() });
}
