// Another WebRTC implementation: aiortc publishes and subscribes through the built server, with a page in Chromium or another
// aiortc client at the other end. The Python side is `../peers/aiortc_peer.py`.
import assert from 'node:assert/strict';
import test from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { framesRise, seesColor, soundArrives } from './media.mjs';
import { MediaPeer, open, routed } from './media-peer.mjs';
import { python } from './python-peer.mjs';
import { assertNoComplaints } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();

class Peer extends MediaPeer {
  faults = ['fault', 'failed', 'closed'];
}

/** An aiortc client of that session, which ends with the test. */
async function join(t, { server, session, token }, label, role = 'publisher') {
  const peer = new Peer(await python('--peers-media'), ['aiortc_peer.py', server.url, session, await token(role)], label);
  t.after(() => peer.kill());
  await peer.tells('joined');
  return peer;
}

async function isSeenAndHeard(t, codec) {
  const room = await routed(t);
  const page = await open(t, chromium, room, 'subscriber');
  const peer = await join(t, room, 'the publisher');
  const time = stopwatch();
  peer.publish('magenta', 440, codec);
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await seesColor(page, 'magenta');
  t.diagnostic(`seen after ${time()}`);
  await soundArrives(page);
  t.diagnostic(`heard after ${time()}`);
  await framesRise(page);
  assertNoComplaints(page);
}

test('VP8 published by aiortc is seen and heard in Chromium', (t) => isSeenAndHeard(t, 'VP8'));

testInFull('H264 published by aiortc is seen and heard in Chromium', 'peers-whip.test.mjs "H264 published by a WHIP client"',
  (t) => isSeenAndHeard(t, 'H264'));

testInFull('a stream published by Chromium is seen and heard by aiortc', 'peers-whip.test.mjs "a page\'s stream"', async (t) => {
  const room = await routed(t);
  const page = await open(t, chromium, room, 'publisher', { color: 'yellow', tone: 600 });
  const peer = await join(t, room, 'the watcher', 'subscriber');
  const time = stopwatch();
  peer.do('watch');
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await peer.sees('yellow');
  t.diagnostic(`seen after ${time()}`);
  await peer.hears(600);
  t.diagnostic(`heard after ${time()}`);
  assertNoComplaints(page);
});

testInFull('aiortc subscribes to aiortc, also to several streams in turn on the same transceivers, and with another codec',
  'SFUTests ForwardingTests.theNextStreamInATransceiverFollowsWithoutAGap, '
  + 'aSubscriberThatCannotDecodeTheVideoIsNotifiedOnceAndAgainWhenItResumes', async (t) => {
  const room = await routed(t);
  const watcher = await join(t, room, 'the watcher', 'subscriber');
  const publishers = [
    ['the first', 'cyan', 440, 'VP8'], ['the second', 'red', 880, 'H264'], ['the third', 'blue', 660, 'VP8'],
  ];
  for (const [label, color, hertz, codec] of publishers) {
    const publisher = await join(t, room, label);
    publisher.publish(color, hertz, codec);
    assert.ok((await publisher.tells('answer')).includes(` ${codec}/90000`));
    await publisher.tells('connected');
    // The first stream started before there was a subscriber, so a keyframe must be requested.
    if (label === 'the first') watcher.do('watch');
    const time = stopwatch();
    await watcher.sees(color);
    await watcher.hears(hertz);
    t.diagnostic(`${label}, in ${codec}, is seen and heard after ${time()}`);
  }
});

testInFull('the server\'s answer offers UDP and TCP, and aiortc uses what it supports',
  'RTCTests SDPAnswerTests.anAnswerIsLitePassiveAndBundled, anOfferLikeThatOfAiortcIsAnswered', async (t) => {
  const room = await routed(t);
  const peer = await join(t, room, 'one');
  peer.publish('green', 440);
  const sdp = await peer.tells('answer');
  assert.match(sdp, /^a=ice-lite\r$/m);
  assert.match(sdp, /^a=candidate:\S+ 1 udp .* typ host\r$/m);
  assert.match(sdp, /^a=candidate:\S+ 1 tcp .* typ host tcptype passive\r$/m);
  await peer.tells('connected');
});
