// Random operations on routed streams with random delays. In the end, the server must send every subscribed stream to its slot,
// and nothing else.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { settled } from './fake-clock.mjs';
import { begin, clock, joined, publisherOf, room } from './routed-room.mjs';
import { FakePeerConnection } from './fake-rtc.mjs';
import { seeded } from './random.mjs';

beforeEach(begin);

const seeds = 40;
const steps = 40;

/** The subscribing client. Its subscriptions are in `watching`, by stream ID. */
class Watcher {
  /** @type {Map<string, any>} */
  watching = new Map();
  /** @type {Map<string, any>} the streams that the session knows */
  streams = new Map();

  /** @param {Awaited<ReturnType<typeof joined>>} member */
  constructor({ client, core, session }) {
    this.client = client;
    this.core = core;
    this.session = session;
    session.on('streamCreated', (/** @type {any} */ { stream }) => this.streams.set(stream.streamId, stream));
    session.on('streamDestroyed', (/** @type {any} */ { stream }) => {
      this.streams.delete(stream.streamId);
      this.watching.delete(stream.streamId);
    });
  }

  /** @param {() => number} random */
  change(random) {
    const streams = [...this.streams.values()];
    const stream = streams[Math.floor(random() * streams.length)];
    if (!stream) return;
    const known = this.watching.get(stream.streamId);
    if (known) {
      this.session.unsubscribe(known);
      this.watching.delete(stream.streamId);
    } else {
      this.watching.set(stream.streamId, this.session.subscribe(stream));
    }
  }

  /** Returns the server's assignments of streams to the slots of the subscriber's connection. */
  get received() {
    return [...this.client.slots.values()].map((/** @type {any} */ { streamId }) => streamId).sort();
  }
}

/** @param {number} seed */
async function play(seed) {
  begin();
  const random = seeded(seed);
  const [ann, ben, eve] = [await joined('a'), await joined('b'), await joined('c')];
  const watchers = [new Watcher(ben), new Watcher(eve)];
  const publishers = [publisherOf(), publisherOf(), publisherOf()];
  for (const publisher of publishers) publisher.on('streamDestroyed', (event) => event.preventDefault());
  await settled();
  /** @type {(() => void)[]} messages in transit */
  const flying = [];
  room.travel = (run) => { flying.push(run); };
  for (let step = 0; step < steps; step += 1) {
    const choice = random();
    const publisher = publishers[Math.floor(random() * publishers.length)];
    if (choice < 0.25) publisher.session ? ann.session.unpublish(publisher) : ann.session.publish(publisher);
    else if (choice < 0.9) watchers[Math.floor(random() * 2)].change(random);
    else if (choice < 0.95) [ann, ben, eve][Math.floor(random() * 3)].client.tell({ type: 'media.closed', side: random() < 0.5 ? 'send' : 'receive', code: 'dtls_failed', message: '' });
    else await clock.advance(random() * 4000);
    for (let count = Math.floor(random() * 6); count > 0; count -= 1) {
      await settled();
      flying.shift()?.();
    }
  }
  while (flying.length > 0) {
    flying.shift()?.();
    await settled();
  }
  room.travel = (run) => queueMicrotask(run);
  // Wait longer than any pause before a new connection.
  for (let round = 0; round < 13; round += 1) {
    for (const streamId of room.session('2_room').streams.keys()) room.flow(streamId);
    await clock.advance(5000);
  }
  return { ann, watchers };
}

describe('Routed streams', () => {
  test(`arrive in the right slots, however the messages cross (seeds 1 to ${seeds})`, async () => {
    for (let seed = 1; seed <= seeds; seed += 1) {
      const { ann, watchers } = await play(seed);
      const live = [...room.session('2_room').streams.keys()];
      for (const { client, core, watching, received } of watchers) {
        assert.deepEqual(received.filter((streamId) => live.includes(streamId)), [...watching.keys()].sort(), `seed ${seed}`);
        for (const streamId of live) room.flow(streamId);
        await clock.advance(500);
        for (const [streamId, subscriber] of watching) {
          const receivers = core.subscriptions.receivers(streamId);
          const [slot] = [...client.slots].find(([, { streamId: id }]) => id === streamId) ?? [];
          const transceiver = client.sides.receive?.transceivers.find((/** @type {any} */ { mid }) => mid === slot);
          assert.equal(receivers[1], transceiver?.receiver, `seed ${seed}`);
          assert.equal(subscriber.element.children[0].children[0].srcObject.getTracks()[1], transceiver?.receiver.track, `seed ${seed}`);
        }
      }
      // There must be one pair of transceivers for each simultaneous stream.
      assert.ok((ann.client.sides.send?.transceivers.length ?? 0) <= 6, `seed ${seed}`);
      assert.ok(FakePeerConnection.all.filter(({ connectionState }) => connectionState === 'connected').length <= 3, `seed ${seed}`);
    }
  });
});
