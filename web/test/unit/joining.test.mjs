// A join that the server refuses for a while is sent again.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { SessionCore } from '../../lib/session/core.js';
import { settled } from './fake-clock.mjs';
import { fakeRtc } from './fake-rtc.mjs';
import { begin, clock, publisherOf, room } from './routed-room.mjs';

beforeEach(begin);

/** @param {Partial<import('../../lib/errors.js').ErrorMembers>} [members] */
const busy = (members) => new ConfabError({ code: 'rate_limited', message: 'Wait.', retryable: true, ...members });

/**
 * Refuses the next joins.
 * @param {number} times
 * @param {ConfabError} error
 */
function refuse(times, error) {
  const join = room['session.join'];
  let left = times;
  room['session.join'] = function answer(from, message) {
    if (left === 0) return join.call(this, from, message);
    left -= 1;
    throw error;
  };
}

/** Connects a client without waiting for it. */
function connect() {
  const client = room.client('a');
  const core = new SessionCore('1', '2_room', { client, rtc: fakeRtc, clock });
  /** @type {string[]} */
  const outcome = [];
  const done = core.connect('good').then(() => { outcome.push('connected'); }, (error) => { outcome.push(String(error.code)); });
  return { client, core, outcome, done };
}

describe('A join that is refused because of its rate', () => {
  test('is sent again after the pause that the server asks for', async () => {
    refuse(2, busy({ retryAfterMs: 4000 }));
    const { client, outcome } = connect();
    await clock.advance(3900);
    assert.equal(client.askedFor('session.join').length, 1);
    await clock.advance(4200);
    assert.deepEqual([client.askedFor('session.join').length, outcome], [3, ['connected']]);
    assert.equal(clock.pending, 0);
  });

  test('is sent again after growing pauses without one', async () => {
    refuse(6, busy());
    const { client, outcome } = connect();
    await clock.advance(100);
    assert.equal(client.askedFor('session.join').length, 1);
    await clock.advance(30_000);
    assert.deepEqual([client.askedFor('session.join').length, outcome], [7, ['connected']]);
  });

  test('is given up at last', async () => {
    refuse(1000, busy({ retryAfterMs: 1000 }));
    const { client, outcome } = connect();
    await clock.advance(3_600_000);
    assert.deepEqual([client.askedFor('session.join').length, outcome], [30, ['rate_limited']]);
  });

  test('is not sent again if it cannot succeed', async () => {
    refuse(1000, busy({ retryable: false }));
    const { client, outcome } = connect();
    await clock.advance(60_000);
    assert.deepEqual([client.askedFor('session.join').length, outcome], [1, ['rate_limited']]);
  });

  test('is not sent again after the session was disconnected', async () => {
    refuse(1000, busy());
    const { client, core, done } = connect();
    await settled();
    core.disconnect();
    await done;
    await clock.advance(60_000);
    assert.deepEqual([client.askedFor('session.join').length, clock.pending], [1, 0]);
  });

  test('publishes what was to be published early', async () => {
    refuse(3, busy());
    const { client, core } = connect();
    const publisher = publisherOf();
    core.publications.beginEarly(publisher, (error) => assert.equal(error, undefined));
    await clock.advance(30_000);
    assert.equal(room.session('2_room').streams.size, 1);
    assert.equal(publisher.session, core.session);
    assert.equal(client.askedFor('session.publish').length, 2);
  });
});

test('A publisher that is unpublished and published again at once has one stream', async () => {
  const { core } = connect();
  await settled();
  const publisher = publisherOf();
  publisher.on('streamDestroyed', (event) => event.preventDefault());
  for (let count = 0; count < 3; count += 1) {
    core.session.publish(publisher);
    for (let ticks = 0; ticks < 12; ticks += 1) await Promise.resolve();
    core.session.unpublish(publisher);
  }
  core.session.publish(publisher);
  await clock.advance(1000);
  assert.deepEqual([room.session('2_room').streams.size, publisher.session], [1, core.session]);
});
