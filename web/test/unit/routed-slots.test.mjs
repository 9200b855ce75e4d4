// Slots that are added to a connection over which media already comes.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { settled } from './fake-clock.mjs';
import { FakePeerConnection } from './fake-rtc.mjs';
import { begin, clock, publisherOf, room, seeing, subscribe } from './routed-room.mjs';

beforeEach(begin);

/** Two clients, one of which watches the other's video, and another stream for which it has no slot yet. */
async function another() {
  const made = await seeing();
  const publisher = publisherOf();
  made.ann.session.publish(publisher);
  await settled();
  return { ...made, second: /** @type {any} */ (publisher.stream) };
}

/** Makes browsers apply answers only when the returned function is called. */
function holdAnswers() {
  const native = FakePeerConnection.prototype.setRemoteDescription;
  /** @type {(() => void)[]} */
  const held = [];
  FakePeerConnection.prototype.setRemoteDescription = async function (/** @type {any} */ description) {
    await new Promise((resolve) => { held.push(() => resolve(undefined)); });
    return native.call(this, description);
  };
  return async () => {
    FakePeerConnection.prototype.setRemoteDescription = native;
    for (const apply of held) apply();
    await settled();
  };
}

/** @param {any} client @returns {string[]} the streams that it subscribed to, each with the slot */
const subscribed = (client) => client.askedFor('session.subscribe')
  .map((/** @type {any} */ { streamId, audioMid, videoMid }) => `${streamId} in ${audioMid} and ${videoMid}`);

describe('A slot added to a connection in use', () => {
  test('is named to the server only after the browser applied the answer, so that no media comes before', async () => {
    const { ben, stream, second } = await another();
    const apply = holdAnswers();
    const watch = subscribe(ben.session, second);
    await settled();
    const before = [ben.client.askedFor('media.offer').length, subscribed(ben.client)];
    await apply();
    assert.deepEqual(before, [2, [`${stream.streamId} in 0 and 1`]]);
    assert.deepEqual(subscribed(ben.client), [`${stream.streamId} in 0 and 1`, `${second.streamId} in 2 and 3`]);
    assert.equal(ben.client.askedFor('media.offer').length, 2);
    room.flow(second.streamId);
    await clock.advance(20);
    assert.deepEqual(watch.events, ['connected']);
  });

  test('is named once the server took an offer that it refused at first', async () => {
    const { ben, second } = await another();
    room.offerRefusal = new ConfabError({ code: 'rate_limited', message: 'Slowly.', retryable: true, retryAfterMs: 500 });
    subscribe(ben.session, second);
    await settled();
    const before = subscribed(ben.client).length;
    room.offerRefusal = null;
    await clock.advance(500);
    assert.equal(before, 1);
    assert.deepEqual(subscribed(ben.client).slice(1), [`${second.streamId} in 2 and 3`]);
  });

  test('is named on the connection that replaces it meanwhile', async () => {
    const { ben, stream, second } = await another();
    const apply = holdAnswers();
    subscribe(ben.session, second);
    await settled();
    ben.client.tell({ type: 'media.closed', side: 'receive', code: 'dtls_failed', message: 'No.' });
    await clock.advance(0);
    await apply();
    assert.deepEqual(subscribed(ben.client).slice(1).sort(), [`${stream.streamId} in 0 and 1`, `${second.streamId} in 2 and 3`].sort());
    assert.equal(ben.client.askedFor('media.offer').length, 3);
  });

  test('is not named if its offer cannot be answered: the subscription fails', async () => {
    const { ben, second } = await another();
    room.offerRefusal = new ConfabError({ code: 'description_invalid', message: 'No.' });
    const { subscriber } = subscribe(ben.session, second);
    /** @type {string[]} */
    const ended = [];
    subscriber.on('destroyed', (/** @type {any} */ { reason }) => ended.push(reason));
    await settled();
    assert.deepEqual([subscribed(ben.client).length, ended], [1, ['failed']]);
  });
});
