import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { settled } from './fake-clock.mjs';
import { begin, joined, publisherOf, room, subscribe, watching } from './routed-room.mjs';

describe('A pinned video', () => {
  beforeEach(begin);

  /** @param {any} client @returns {(number | undefined)[]} the priorities that were sent to the server, in order */
  const reported = (client) => client.askedFor('session.subscribe').map((/** @type {any} */ { priority }) => priority);

  test('is requested with its priority, and without one when it is released', async () => {
    const { ben, watch: { subscriber } } = await watching();
    for (const priority of [1, 1, 250, 0, 2, null]) {
      subscriber.setPriority(priority);
      await settled();
    }
    assert.deepEqual(reported(ben.client), [undefined, 1, 100, undefined, 2, undefined]);
    assert.throws(() => subscriber.setPriority(Number.NaN), /The priority must be a number/);
  });

  test('is requested with its priority from the beginning', async () => {
    const { ben, stream, watch: { subscriber } } = await watching();
    ben.session.unsubscribe(subscriber);
    subscribe(ben.session, stream, { priority: 3 });
    await settled();
    assert.deepEqual(reported(ben.client), [undefined, 3]);
  });

  test('keeps the highest priority of its subscribers that show it', async () => {
    const { ben, stream, watch: { subscriber } } = await watching();
    const other = subscribe(ben.session, stream, { priority: 2 });
    await settled();
    subscriber.setPriority(1);
    await settled();
    other.subscriber.subscribeToVideo(false);
    await settled();
    assert.deepEqual(reported(ben.client), [undefined, 2, 1]);
  });

  test('has no priority in a relayed session', async () => {
    room.mediaMode = 'relayed';
    const [ann, ben] = [await joined('a', undefined, '1_room'), await joined('b', undefined, '1_room')];
    ann.session.publish(publisherOf());
    await settled();
    const { subscriber } = subscribe(ben.session, ben.events.find(({ type }) => type === 'streamCreated').stream, { priority: 1 });
    await settled();
    subscriber.setPriority(2);
    await settled();
    assert.deepEqual(reported(ben.client), [undefined]);
  });
});
