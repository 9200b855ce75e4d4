import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { FakeTrack } from './fake-page.mjs';
import { FakePeerConnection } from './fake-rtc.mjs';
import { camera, MediaWire } from './media-wire.mjs';
import { seeded } from './random.mjs';

/** @param {import('./media-wire.mjs').Sink} sink @param {string} streamId @param {string} hint */
function assertShows(sink, streamId, hint = '') {
  assert.equal(sink.media?.id, streamId, hint);
  assert.deepEqual(sink.media.getTracks().map((/** @type {any} */ { kind }) => kind).sort(), ['audio', 'video'], hint);
  assert.equal(sink.states[sink.states.length - 1], 'connected', hint);
}

/** Returns the connections that are not closed. */
const connections = () => FakePeerConnection.all.filter(({ connectionState }) => connectionState !== 'closed');

/** `a` watches what `b` publishes. */
async function watching() {
  const wire = new MediaWire();
  wire.ends.b.publish('stream-1', camera());
  const sink = wire.subscribe('a', 'stream-1');
  await wire.run();
  return { wire, sink };
}

describe('Relayed media', () => {
  test('reach a subscriber under the stream’s id, on one connection', async () => {
    const { wire, sink } = await watching();
    assertShows(sink, 'stream-1');
    assert.equal(connections().length, 2);
    assert.deepEqual(wire.faults, []);
  });

  test('are reported to the server once they work, by either end, once', async () => {
    const { wire } = await watching();
    FakePeerConnection.all[0].become('disconnected');
    FakePeerConnection.all[0].become('connected');
    const reports = wire.said.map(({ from, type, connectionId, connected }) => [from, type, connectionId, connected]);
    assert.deepEqual(reports.sort(), [['a', 'session.connected', 'b', true], ['b', 'session.connected', 'a', true]]);
  });

  test('also arrive when the subscriber was announced before the stream', async () => {
    const wire = new MediaWire();
    const sink = wire.subscribe('a', 'stream-1');
    await wire.run();
    wire.ends.b.publish('stream-1', camera());
    await wire.run();
    assertShows(sink, 'stream-1');
  });

  test('flow both ways on the same connection, and no two first offers cross', async () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const wire = new MediaWire(seeded(seed));
      wire.ends.a.publish('from-a', camera());
      wire.ends.b.publish('from-b', camera());
      const [atA, atB] = [wire.subscribe('a', 'from-b'), wire.subscribe('b', 'from-a')];
      await wire.run();
      assertShows(atA, 'from-b', `seed ${seed}`);
      assertShows(atB, 'from-a', `seed ${seed}`);
      assert.equal(connections().length, 2, `seed ${seed}`);
      assert.deepEqual(wire.faults, [], `seed ${seed}`);
      assert.ok(FakePeerConnection.all.every(({ rollbacks }) => rollbacks === 0), `seed ${seed}`);
    }
  });

  test('survive simultaneous changes: one of two crossing offers is rolled back', async () => {
    let collisions = 0;
    for (let seed = 1; seed <= 200; seed += 1) {
      const wire = new MediaWire(seeded(seed));
      const voice = () => ({ tracks: () => /** @type {any[]} */ ([new FakeTrack('audio')]) });
      wire.ends.a.publish('from-a', voice());
      wire.ends.b.publish('from-b', voice());
      const [atA, atB] = [wire.subscribe('a', 'from-b'), wire.subscribe('b', 'from-a')];
      await wire.run();
      wire.ends.a.replaceTrack('from-a', 'video', /** @type {any} */ (new FakeTrack('video')));
      await wire.walk(seed % 3);
      wire.ends.b.replaceTrack('from-b', 'video', /** @type {any} */ (new FakeTrack('video')));
      await wire.run();
      assertShows(atA, 'from-b', `seed ${seed}`);
      assertShows(atB, 'from-a', `seed ${seed}`);
      assert.deepEqual(wire.faults, [], `seed ${seed}`);
      collisions += FakePeerConnection.all.reduce((sum, { rollbacks }) => sum + rollbacks, 0);
    }
    assert.ok(collisions > 20, `only ${collisions} collisions were tried`);
  });

  test('do not wait forever for the first offer of another implementation', async () => {
    const wire = new MediaWire();
    wire.ends.a.publish('stream-1', camera());
    // `a` is the polite peer. This `b` has not subscribed through our code, so it sends no offer.
    wire.tell('a', { type: 'session.subscribed', streamId: 'stream-1', connectionId: 'b', audio: true, video: true });
    await wire.run();
    assert.deepEqual(wire.carried, []);
    await wire.clock.advance(3000);
    assert.ok(wire.carried.some(({ message }) => message.description?.type === 'offer'));
  });

  test('are restored for a subscriber who left and returned, however the messages cross', async () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = seeded(seed);
      const wire = new MediaWire(random);
      wire.ends.b.publish('stream-1', camera());
      const first = wire.subscribe('a', 'stream-1');
      await wire.walk(Math.floor(random() * 12));
      wire.unsubscribe('a', 'stream-1', first);
      await wire.walk(Math.floor(random() * 4));
      const second = wire.subscribe('a', 'stream-1');
      await wire.run();
      assertShows(second, 'stream-1', `seed ${seed}`);
      assert.equal(connections().length, 2, `seed ${seed}`);
      assert.deepEqual(wire.faults, [], `seed ${seed}`);
    }
  });

  test('end with the last subscriber: the connection closes on both sides', async () => {
    const wire = new MediaWire();
    wire.ends.a.publish('from-a', camera());
    wire.ends.b.publish('from-b', camera());
    const [atA, atB] = [wire.subscribe('a', 'from-b'), wire.subscribe('b', 'from-a')];
    await wire.run();
    wire.unsubscribe('a', 'from-b', atA);
    await wire.run();
    assert.equal(connections().length, 2);
    assert.deepEqual(connections().map(({ senders }) => senders.length).sort(), [0, 2]);
    wire.unsubscribe('b', 'from-a', atB);
    await wire.run();
    assert.equal(connections().length, 0);
    assert.equal(wire.clock.pending, 0);
  });

  test('leave out media that a subscriber does not want, without negotiation', async () => {
    const wire = new MediaWire();
    wire.ends.b.publish('stream-1', camera());
    wire.subscribe('a', 'stream-1', { video: false });
    await wire.run();
    const [sending] = connections().filter(({ senders }) => senders.length > 0);
    const kinds = () => sending.senders.map(({ track }) => track?.kind ?? null);
    assert.deepEqual(kinds(), ['audio', null]);
    const carried = wire.carried.length;
    wire.tell('b', { type: 'session.subscribed', streamId: 'stream-1', connectionId: 'a', audio: false, video: true });
    await wire.run();
    assert.deepEqual(kinds(), [null, 'video']);
    assert.equal(wire.carried.length, carried);
  });

  test('exchange a track without negotiating, and negotiate for one of a new kind', async () => {
    const wire = new MediaWire();
    const voice = new FakeTrack('audio');
    wire.ends.b.publish('stream-1', { tracks: () => /** @type {any[]} */ ([voice]) });
    const sink = wire.subscribe('a', 'stream-1');
    await wire.run();
    const carried = wire.carried.length;
    const other = /** @type {any} */ (new FakeTrack('audio'));
    wire.ends.b.replaceTrack('stream-1', 'audio', other);
    await wire.run();
    const [sending] = connections().filter(({ senders }) => senders.length > 0);
    assert.equal(sending.senders[0].track, other);
    assert.equal(wire.carried.length, carried);
    wire.ends.b.replaceTrack('stream-1', 'video', /** @type {any} */ (new FakeTrack('video')));
    await wire.run();
    assertShows(sink, 'stream-1');
  });

  test('are passed to each of several subscribers here, but arrive once', async () => {
    const { wire, sink: first } = await watching();
    const second = wire.subscribe('a', 'stream-1');
    assertShows(second, 'stream-1');
    wire.ends.a.unsubscribe('stream-1', first);
    assert.equal(connections().length, 2);
  });
});

describe('A peer connection in trouble', () => {
  /** @returns {Promise<{wire: MediaWire, sink: import('./media-wire.mjs').Sink, impolite: FakePeerConnection}>} */
  async function connected() {
    const { wire, sink } = await watching();
    // `b` publishes and has the higher ID, so it is the impolite peer.
    const [impolite] = connections().filter(({ senders }) => senders.length > 0);
    return { wire, sink, impolite };
  }

  test('is given a few seconds, then restarted with fresh credentials', async () => {
    const { wire, impolite } = await connected();
    const before = impolite.configuration.iceServers[0].urls;
    impolite.become('disconnected');
    await wire.clock.advance(2900);
    assert.equal(impolite.restarts, 0);
    await wire.clock.advance(100);
    assert.equal(impolite.restarts, 1);
    assert.notEqual(impolite.configuration.iceServers[0].urls, before);
  });

  test('is not restarted when it recovers automatically', async () => {
    const { wire, impolite } = await connected();
    impolite.become('disconnected');
    impolite.become('connected');
    await wire.clock.advance(60_000);
    assert.equal(impolite.restarts, 0);
  });

  test('is restarted at once when it failed, then replaced until it works', async () => {
    const { wire, sink, impolite } = await connected();
    FakePeerConnection.network = false;
    impolite.become('failed');
    await wire.clock.advance(250);
    assert.equal(impolite.restarts, 1);
    await wire.clock.advance(9_900);
    assert.equal(impolite.connectionState, 'failed');
    await wire.clock.advance(100);
    assert.equal(impolite.connectionState, 'closed');
    FakePeerConnection.network = true;
    await wire.clock.advance(10_000);
    await wire.run();
    assertShows(sink, 'stream-1');
    const { length } = FakePeerConnection.all;
    await wire.clock.advance(60_000);
    assert.equal(FakePeerConnection.all.length, length);
    assert.deepEqual(wire.faults, []);
  });

  test('is replaced at once between engines that cannot restart together', async () => {
    FakePeerConnection.writers = ['mozilla', '-'];
    const { wire, sink, impolite } = await connected();
    impolite.become('failed');
    await wire.clock.advance(250);
    await wire.run();
    assert.deepEqual([impolite.restarts, impolite.connectionState], [0, 'closed']);
    assert.equal(connections().length, 2);
    assertShows(sink, 'stream-1');
    FakePeerConnection.writers = [];
  });

  test('is not restarted from both ends at once', async () => {
    const { wire, impolite } = await connected();
    const polite = /** @type {FakePeerConnection} */ (connections().find((one) => one !== impolite));
    FakePeerConnection.network = false;
    impolite.become('failed');
    polite.become('failed');
    await wire.clock.advance(3000);
    assert.deepEqual([impolite.restarts, polite.restarts], [1, 0]);
  });

  test('keeps its DTLS role in every later offer', async () => {
    const { wire, impolite } = await connected();
    wire.ends.a.publish('from-a', camera());
    wire.subscribe('b', 'from-a');
    await wire.run();
    const offers = wire.carried.filter(({ message }) => message.description?.type === 'offer');
    const [first, second] = offers.map(({ from, message }) => [from, /a=setup:(\S+)/.exec(message.description.sdp)?.[1]]);
    assert.deepEqual([first, second], [['b', 'actpass'], ['a', 'active']]);
    assert.equal(impolite.connectionState, 'connected');
  });

  test('is restarted when signaling is back but media is not', async () => {
    const { wire, impolite } = await connected();
    wire.ends.b.resumed();
    await wire.clock.advance(0);
    assert.equal(impolite.restarts, 0);
    impolite.connectionState = 'disconnected';
    wire.ends.b.resumed();
    await wire.clock.advance(0);
    assert.equal(impolite.restarts, 1);
  });

  test('is replaced when the other end starts a new one', async () => {
    const { wire, sink } = await connected();
    wire.ends.b.connectionDestroyed('a');
    assert.equal(connections().length, 1);
    wire.tell('b', { type: 'session.subscribed', streamId: 'stream-1', connectionId: 'a', audio: true, video: true });
    await wire.run();
    assertShows(sink, 'stream-1');
    assert.equal(connections().length, 2);
    assert.deepEqual(wire.faults, []);
  });

  test('sends rate-limited messages again after the server’s pause', async () => {
    const wire = new MediaWire();
    let refusals = 3;
    wire.refuse = () => ((refusals -= 1) >= 0
      ? new ConfabError({ code: 'rate_limited', message: 'Slowly.', retryable: true, retryAfterMs: 500 })
      : null);
    wire.ends.b.publish('stream-1', camera());
    const sink = wire.subscribe('a', 'stream-1');
    await wire.run();
    assert.equal(sink.media, null);
    await wire.clock.advance(500);
    await wire.run();
    assertShows(sink, 'stream-1');
  });

  test('ignores unrelated connections, and claims about the streams of others', async () => {
    const wire = new MediaWire();
    wire.ends.a.receive({ type: 'session.negotiate', from: 'stranger', description: { type: 'offer', sdp: 'o=- 1 1 IN' } });
    await wire.run();
    assert.equal(FakePeerConnection.all.length, 0);
    wire.ends.b.publish('stream-1', camera());
    const sink = wire.subscribe('a', 'stream-1');
    const other = wire.subscribe('a', 'stream-2');
    await wire.run();
    assertShows(sink, 'stream-1');
    assert.equal(other.media, null);
  });
});
