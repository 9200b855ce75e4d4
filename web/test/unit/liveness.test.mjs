import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Backoff } from '../../lib/signaling/backoff.js';
import { Liveness } from '../../lib/signaling/socket.js';
import { seeded } from './random.mjs';

describe('Liveness', () => {
  test('pings after a silence and gives up after another', () => {
    const liveness = new Liveness(0, 10);
    assert.equal(liveness.check(9), null);
    assert.equal(liveness.check(10), 'ask');
    assert.equal(liveness.deadline, 20);
    assert.equal(liveness.check(19), null);
    assert.equal(liveness.check(20), 'dead');
  });

  test('starts over with any received data', () => {
    const liveness = new Liveness(0, 10);
    liveness.check(10);
    liveness.heard(12);
    assert.equal(liveness.check(20), null);
    assert.equal(liveness.deadline, 22);
  });

  test('accepts a check that came a minute late, if data was received meanwhile', () => {
    const liveness = new Liveness(0, 10);
    liveness.check(10);
    liveness.heard(11);
    assert.equal(liveness.check(71), 'ask');
  });

  test('pings again after a sleep between ping and pong, and waits for a whole silence', () => {
    const liveness = new Liveness(0, 10_000);
    assert.equal(liveness.check(10_000), 'ask');
    assert.equal(liveness.check(3_610_000), 'ask');
    assert.equal(liveness.check(3_619_999), null);
    assert.equal(liveness.check(3_620_000), 'dead');
  });

  test('gives up a dead connection even if every check comes late', () => {
    const liveness = new Liveness(0, 10_000);
    let checks = 0;
    while (liveness.check((checks + 1) * 60_000) !== 'dead' && checks < 100) checks += 1;
    assert.ok(checks <= 4, `${checks} checks`);
  });
});

describe('Backoff', () => {
  test('doubles from a quarter of a second to three, and starts over', () => {
    const backoff = new Backoff(() => 1);
    assert.deepEqual(Array.from({ length: 8 }, () => backoff.next()), [250, 500, 1000, 2000, 3000, 3000, 3000, 3000]);
    backoff.reset();
    assert.equal(backoff.next(), 250);
  });

  test('is spread over the upper half', () => {
    const backoff = new Backoff(seeded(1));
    for (let attempt = 0; attempt < 1000; attempt += 1) {
      const pause = backoff.next();
      assert.ok(attempt < 5 || (pause >= 1500 && pause <= 3000), `${pause}`);
    }
  });
});
