import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Sampler } from '../../lib/roulette/sampler.js';
import { FakeClock, settled } from './fake-clock.mjs';

/** @type {FakeClock} */
let clock;
/** @type {any[]} */
let sent;

beforeEach(() => {
  clock = new FakeClock();
  sent = [];
});

/** @param {(width: number, quality: number) => any} frame @param {(sample: any) => any} [send] */
function sampler(frame, send = async (sample) => sent.push(sample)) {
  const made = new Sampler({
    sampling: { intervalMs: 10_000, width: 320, maxBytes: 100 }, clock, send,
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
