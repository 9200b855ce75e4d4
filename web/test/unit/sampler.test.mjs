import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Sampler, sendMs, sendSample } from '../../lib/roulette/sampler.js';
import { FakeClock, settled } from './fake-clock.mjs';

/** @type {FakeClock} */
let clock;
/** @type {any[]} */
let sent;

beforeEach(() => {
  clock = new FakeClock();
  sent = [];
});

/**
 * @param {(width: number, quality: number) => any} frame @param {(sample: any, signal: AbortSignal) => any} [send]
 * @param {() => boolean} [isAllowed]
 */
function sampler(frame, send = async (sample) => sent.push(sample), isAllowed = () => true) {
  const made = new Sampler({
    sampling: { intervalMs: 10_000, width: 320, maxBytes: 100 }, clock, send, isAllowed,
    frame: async (width, quality) => /** @type {any} */ (frame(width, quality)),
  });
  made.begin();
  return made;
}

test('a sample is sent soon after the begin, then at each interval, until the end', async () => {
  let number = 0;
  const made = sampler(() => ({ size: 10, number: number += 1 }));
  await clock.advance(999);
  await settled();
  assert.equal(sent.length, 0);
  await clock.advance(1);
  await settled();
  assert.deepEqual(sent.map((sample) => sample.number), [1]);
  await clock.advance(10_000);
  await settled();
  assert.deepEqual(sent.map((sample) => sample.number), [1, 2]);
  made.end();
  await clock.advance(60_000);
  await settled();
  assert.equal(sent.length, 2);
});

test('an image that is too large is encoded with a lower quality, and skipped if that does not help', async () => {
  /** @type {number[]} */
  const qualities = [];
  sampler((width, quality) => {
    assert.equal(width, 320);
    qualities.push(quality);
    return { size: quality > 0.5 ? 101 : 100 };
  });
  await clock.advance(1000);
  await settled();
  assert.equal(sent.length, 1);
  assert.equal(qualities.length, 2);

  sent = [];
  sampler(() => ({ size: 101 }));
  await clock.advance(1000);
  await settled();
  assert.equal(sent.length, 0);
});

test('nothing is sent while the camera is off, and the next sample is sent when it is on again', async () => {
  let isOn = false;
  sampler(() => (isOn ? { size: 10 } : null));
  await clock.advance(1000);
  await settled();
  assert.equal(sent.length, 0);
  isOn = true;
  await clock.advance(10_000);
  await settled();
  assert.equal(sent.length, 1);
});

test('a failed request ends nothing, and two samples are never on their way at the same time', async () => {
  /** @type {((error: Error) => void)[]} */
  const failures = [];
  sampler(() => ({ size: 10 }), () => new Promise((_, reject) => failures.push(reject)));
  await clock.advance(1000);
  await settled();
  await clock.advance(60_000);
  await settled();
  assert.equal(failures.length, 1);
  failures[0](new Error('no network'));
  await settled();
  await clock.advance(1);
  await settled();
  assert.equal(failures.length, 2);
});

test('no image is taken before the person agrees, and none is sent after they change their mind', async () => {
  let isAllowed = false;
  let taken = 0;
  sampler(() => {
    taken += 1;
    if (taken === 2) isAllowed = false;
    return { size: 10 };
  }, undefined, () => isAllowed);
  await clock.advance(60_000);
  await settled();
  assert.deepEqual([taken, sent.length], [0, 0]);
  isAllowed = true;
  await clock.advance(10_000);
  await settled();
  assert.deepEqual([taken, sent.length], [1, 1]);
  await clock.advance(60_000);
  await settled();
  assert.deepEqual([taken, sent.length], [2, 1]);
});

test('a sample that takes too long is given up, and so is one that is on its way when the chat ends', async () => {
  /** @type {AbortSignal[]} */
  const signals = [];
  const made = sampler(() => ({ size: 10 }), (_, signal) => new Promise((_resolve, reject) => {
    signals.push(signal);
    signal.addEventListener('abort', () => reject(signal.reason));
  }));
  await clock.advance(1000);
  await settled();
  await clock.advance(sendMs - 1);
  await settled();
  assert.deepEqual(signals.map(({ aborted }) => aborted), [false]);
  await clock.advance(1);
  await settled();
  await clock.advance(1);
  await settled();
  assert.deepEqual(signals.map(({ aborted }) => aborted), [true, false]);
  made.end();
  await settled();
  assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true]);
  assert.equal(clock.pending, 0);
});

test('the request ends with its signal', async (t) => {
  /** @type {any[]} */
  const requests = [];
  t.mock.method(globalThis, 'fetch', async (/** @type {any[]} */ ...given) => { requests.push(given); });
  const { signal } = new AbortController();
  await sendSample('https://chat.example.org/v1/roulette/sample', 'token', new Blob(['x']), signal);
  assert.equal(requests[0][1].signal, signal);
});
