// From the statistics of both connections to loss, jitter and bitrate of each direction.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sampleOf, summarize } from '../../lib/check/measures.js';

const target = 1_500_000;

/**
 * Returns the statistics of both connections after some seconds.
 * @param {number} seconds
 * @param {{up?: number, down?: number, lostUp?: number, lostBoth?: number, jitter?: number, reason?: string, available?: number, roundTrip?: number, hasAudio?: boolean, isPaused?: boolean, downlink?: number}} [network]
 *   `up` and `down`: bit/s; `lostUp` and `lostBoth`: audio packets per second, of 50
 */
function after(seconds, network = {}) {
  const { up = target, down = up, lostUp = 0, lostBoth = 0, jitter = 0.004, reason = 'none', available, roundTrip = 0.0234, hasAudio = true, isPaused = false, downlink } = network;
  const timestamp = 1000 * seconds;
  /** @param {any[]} entries @returns {any} */
  const report = (...entries) => new Map(entries.map((entry, index) => [`${index}`, { id: `${index}`, timestamp, ...entry }]));
  const sending = report(
    { type: 'outbound-rtp', kind: 'audio', packetsSent: hasAudio ? 50 * seconds : 0, bytesSent: 0 },
    { type: 'outbound-rtp', kind: 'video', packetsSent: 100 * seconds, bytesSent: up * seconds / 8, qualityLimitationReason: reason },
    { type: 'remote-inbound-rtp', kind: 'audio', packetsLost: lostUp * seconds, jitter },
    { type: 'remote-inbound-rtp', kind: 'video', packetsLost: 10 * seconds, jitter: 1, roundTripTime: 0.05 },
    { type: 'candidate-pair', selected: true, currentRoundTripTime: roundTrip, availableOutgoingBitrate: available },
  );
  const receiving = report(
    { type: 'inbound-rtp', kind: 'audio', packetsReceived: (50 - lostBoth) * seconds, packetsLost: lostBoth * seconds, bytesReceived: 0, jitter },
    { type: 'inbound-rtp', kind: 'video', packetsReceived: 100 * seconds, packetsLost: 7 * seconds, bytesReceived: down * seconds / 8, jitter: 1 },
  );
  return sampleOf(sending, receiving, { isPaused, downlink });
}

/** @param {Parameters<typeof after>[1]} [network] */
const measured = (network) => summarize([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((seconds) => after(seconds, network)), target);

test('a fast network carries everything in both directions', () => {
  const fine = { loss: 0, jitterMs: 4, kbit: 1500, isLimited: false };
  assert.deepEqual(measured(), { up: fine, down: fine, roundTripMs: 23.4 });
});

test('the loss of video does not count, because it is retransmitted, and neither does its jitter', () => {
  assert.equal(measured().up.loss, 0);
  assert.equal(measured().down.jitterMs, 4);
});

test('what was lost on the way to the server is not the fault of the way back', () => {
  const { up, down } = measured({ lostUp: 5, lostBoth: 5 });
  assert.equal(up.loss, 0.1);
  assert.equal(down.loss, 0);
  const both = measured({ lostUp: 5, lostBoth: 14 });
  assert.equal(both.up.loss, 0.1);
  assert.ok(Math.abs(/** @type {number} */ (both.down.loss) - 0.2) < 0.001, `${both.down.loss}`);
});

test('a slow upload also limits what comes back, without making the download slow', () => {
  const { up, down } = measured({ up: 300_000, available: 320_000 });
  assert.deepEqual([up.kbit, up.isLimited], [300, true]);
  assert.deepEqual([down.kbit, down.isLimited], [300, false]);
});

test('a download is slow if less comes back than was sent, if the server says so, or if it paused the video', () => {
  assert.equal(measured({ down: 400_000 }).down.isLimited, true);
  assert.equal(measured({ downlink: 600_000 }).down.isLimited, true);
  assert.equal(measured({ isPaused: true }).down.isLimited, true);
  // While the video is paused, the server knows better than what arrives.
  const { kbit, isLimited } = measured({ down: 34_000, isPaused: true, downlink: 380_000 }).down;
  assert.deepEqual([kbit, isLimited], [380, true]);
  assert.equal(measured({ downlink: 1_400_000 }).down.isLimited, false);
});

test('a slow device is not a slow network', () => {
  assert.equal(measured({ up: 300_000, reason: 'cpu' }).up.isLimited, false);
  assert.equal(measured({ up: 300_000, available: 2_000_000 }).up.isLimited, false);
  assert.equal(measured({ up: 300_000, reason: 'bandwidth', available: 320_000 }).up.isLimited, true);
  assert.equal(measured({ up: 300_000 }).up.isLimited, true, 'the browser does not say why');
});

test('the round trip of the media counts if the browser reports none of ICE', () => {
  assert.equal(measured().roundTripMs, 23.4);
  assert.equal(measured({ roundTrip: 0 }).roundTripMs, 50);
});

test('without audio, which needs an audio device in some browsers, the loss of the video counts', () => {
  const { up, down } = measured({ hasAudio: false });
  assert.equal(up.loss, 0.1);
  assert.equal(down.loss, 0);
});

test('the bitrate is that of the second half, because browsers begin slowly', () => {
  const samples = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((seconds) => after(seconds));
  for (const sample of samples) sample.sent.video.bytesSent = Math.max(0, sample.sent.timestamp - 5000) * 250;
  assert.equal(summarize(samples, target).up.kbit, 2000);
});

test('without enough packets there is no loss, and without statistics no jitter and no delay', () => {
  const none = sampleOf(/** @type {any} */ (new Map()), /** @type {any} */ (new Map()), { isPaused: false });
  const nothing = { loss: null, jitterMs: null, kbit: 0 };
  assert.deepEqual(summarize([none, none], target), { up: { ...nothing, isLimited: true }, down: { ...nothing, isLimited: false }, roundTripMs: null });
});
