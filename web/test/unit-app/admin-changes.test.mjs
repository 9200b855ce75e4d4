// How the operator's page learns what has changed, with a stream and a clock that the test controls.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Changes, lineReader, longPause, pause, silence } from '../../app/admin/changes.js';
import { FakeClock } from '../unit/fake-clock.mjs';

/** A stream of bytes that the test writes. */
class FakeStream {
  #pieces = [];
  #waiting = null;
  constructor(signal) {
    signal.addEventListener('abort', () => { this.isClosed = true; this.#give(null); });
  }
  #give(piece) {
    if (this.#waiting) this.#waiting(piece);
    else this.#pieces.push(piece);
    this.#waiting = null;
  }
  write(text) { this.#give(new TextEncoder().encode(text)); }
  end() { this.#give(undefined); }
  async read() {
    const piece = this.#pieces.length ? this.#pieces.shift() : await new Promise((resolve) => { this.#waiting = resolve; });
    if (piece === null) throw new Error('aborted');
    return { done: piece === undefined, value: piece };
  }
}

function start(offers = () => true) {
  const clock = new FakeClock();
  const streams = [];
  const heard = [];
  let requests = 0;
  const open = async (signal) => {
    requests += 1;
    if (!offers()) throw new Error('status 429');
    streams.push(new FakeStream(signal));
    return streams.at(-1);
  };
  const changes = new Changes({ open, changed: (views) => heard.push(views), clock });
  return { clock, streams, heard, changes, requests: () => requests };
}

test('lines are read whatever the pieces are, and are bounded', () => {
  const read = lineReader();
  assert.deepEqual(read('{"changed":["a'), []);
  assert.deepEqual(read('","b"]}\n{"changed":[]}\n{'), [['a', 'b'], []]);
  assert.throws(() => read('x'.repeat(2000)));
  for (const wrong of ['[]\n', '{}\n', 'null\n', 'x\n', '{"changed":"a"}\n']) assert.throws(() => lineReader()(wrong), wrong);
});

test('the page is live from the first line on, until it no longer wants to be', async () => {
  const { clock, streams, heard, changes } = start();
  assert.equal(changes.isLive, false);
  changes.want(true);
  changes.want(true);
  await clock.advance(0);
  assert.deepEqual([streams.length, changes.isLive], [1, false]);
  streams[0].write('{"changed":["reports"]}\n');
  await clock.advance(0);
  assert.deepEqual([heard, changes.isLive], [[['reports']], true]);
  changes.want(false);
  await clock.advance(0);
  assert.deepEqual([streams[0].isClosed, changes.isLive, clock.pending], [true, false, 0]);
});

test('a stream that ends is opened again after a pause', async () => {
  const { clock, streams, changes } = start();
  changes.want(true);
  await clock.advance(0);
  streams[0].write('{"changed":[]}\n');
  streams[0].end();
  await clock.advance(pause - 1);
  assert.equal(streams.length, 1);
  await clock.advance(1);
  assert.equal(streams.length, 2);
  changes.want(false);
  await clock.advance(0);
  assert.equal(clock.pending, 0);
});

test('a stream that is held back is closed, and tried again later', async () => {
  const { clock, streams, changes } = start();
  changes.want(true);
  await clock.advance(silence);
  assert.deepEqual([streams.length, streams[0].isClosed, changes.isLive], [1, true, false]);
  await clock.advance(longPause);
  assert.equal(streams.length, 2);
  streams[1].write('{"changed":[]}\n');
  await clock.advance(silence - 1);
  assert.equal(changes.isLive, true);
  await clock.advance(1);
  assert.deepEqual([streams[1].isClosed, changes.isLive], [true, false]);
  changes.want(false);
  await clock.advance(0);
  assert.equal(clock.pending, 0);
});

test('a server that has no place left is asked once a minute', async () => {
  const { clock, changes, requests } = start(() => false);
  changes.want(true);
  await clock.advance(10 * longPause - 1);
  assert.equal(requests(), 10);
  changes.want(false);
  await clock.advance(0);
  assert.equal(clock.pending, 0);
});
