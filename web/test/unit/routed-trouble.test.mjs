import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { settled } from './fake-clock.mjs';
import { FakePeerConnection } from './fake-rtc.mjs';
import { begin, clock, connections, joined, publisherOf, room, seeing, sending, watching } from './routed-room.mjs';

beforeEach(begin);

/** Holds all messages back until the returned function is called. */
function hold() {
  /** @type {(() => void)[]} */
  const held = [];
  room.travel = (run) => { held.push(run); };
  return async () => {
    room.travel = (run) => queueMicrotask(run);
    for (const run of held) run();
    await settled();
  };
}

describe('A connection with the server in trouble', () => {
  test('is given a few seconds, then restarted twice, and then replaced with all its streams', async () => {
    const { ann, ben, stream, watch } = await seeing();
    FakePeerConnection.network = false;
    const [send, receive] = [ann.client.sides.send, ben.client.sides.receive].map((one) => /** @type {FakePeerConnection} */ (one));
    for (const connection of [send, receive]) connection.become('disconnected');
    await clock.advance(2900);
    assert.deepEqual([send.restarts, receive.restarts], [0, 0]);
    await clock.advance(100);
    assert.deepEqual([send.restarts, receive.restarts], [1, 1]);
    await clock.advance(10_000);
    assert.deepEqual([send.restarts, receive.restarts, send.connectionState], [2, 2, 'disconnected']);
    FakePeerConnection.network = true;
    await clock.advance(10_000);
    assert.deepEqual([send.connectionState, receive.connectionState], ['closed', 'closed']);
    assert.equal(connections().length, 2);
    const [update] = ann.client.askedFor('session.update');
    assert.deepEqual([update.streamId, update.audioMid, update.videoMid], [stream.streamId, '0', '1']);
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
    assert.equal(ben.client.askedFor('session.subscribe').length, 2);
    assert.deepEqual(watch.events, ['connected', 'disconnected']);
    room.flow(stream.streamId);
    await clock.advance(20);
    assert.deepEqual(watch.events, ['connected', 'disconnected', 'connected']);
    assert.equal(watch.media().getTracks()[1], /** @type {FakePeerConnection} */ (ben.client.sides.receive).transceivers[1].receiver.track);
    const { length } = FakePeerConnection.all;
    await clock.advance(120_000);
    assert.equal(FakePeerConnection.all.length, length);
  });

  test('recovers automatically or with the restart, and nothing else changes', async () => {
    const { ben, watch } = await seeing();
    const receive = /** @type {FakePeerConnection} */ (ben.client.sides.receive);
    receive.become('disconnected');
    receive.become('connected');
    await clock.advance(60_000);
    assert.equal(receive.restarts, 0);
    receive.become('failed');
    await clock.advance(0);
    assert.equal(receive.restarts, 1);
    assert.deepEqual(watch.events, ['connected', 'disconnected', 'connected', 'disconnected', 'connected']);
    assert.equal(ben.client.askedFor('session.subscribe').length, 1);
  });

  test('is not restarted while the server cannot be reached, but afterwards', async () => {
    const { ben } = await seeing();
    const receive = /** @type {FakePeerConnection} */ (ben.client.sides.receive);
    ben.client.state = 'reconnecting';
    receive.become('failed');
    await clock.advance(60_000);
    assert.equal(receive.restarts, 0);
    ben.client.state = 'connected';
    ben.client.emit('connected', { resumed: true });
    await clock.advance(0);
    assert.equal(receive.restarts, 1);
    assert.equal(receive.connectionState, 'connected');
  });

  test('is restarted when the client resumes or the network changes, although the browser has not noticed', async () => {
    const { ann, ben, watch } = await seeing();
    const sides = [ann.client.sides.send, ben.client.sides.receive].map((one) => /** @type {FakePeerConnection} */ (one));
    const restarts = () => sides.map((side) => side.restarts);
    for (const { client } of [ann, ben]) client.emit('connected', { resumed: true });
    await clock.advance(0);
    assert.deepEqual(restarts(), [1, 1]);
    await clock.advance(60_000);
    for (const { client } of [ann, ben]) client.emit('online');
    await clock.advance(0);
    assert.deepEqual(restarts(), [2, 2]);
    // A network that comes and goes must not cause a restart each time.
    for (let turn = 0; turn < 100; turn += 1) ben.client.emit('online');
    await clock.advance(9000);
    assert.deepEqual(restarts(), [2, 2]);
    await clock.advance(60_000);
    assert.deepEqual(restarts(), [2, 3]);
    await clock.advance(60_000);
    assert.deepEqual(restarts(), [2, 3]);
    assert.deepEqual([sides.map((side) => side.connectionState), watch.events], [['connected', 'connected'], ['connected']]);
    // Restarts of a connection that works do not use up those of one that fails.
    sides[1]?.become('failed');
    await clock.advance(0);
    assert.deepEqual([restarts()[1], sides[1]?.connectionState], [4, 'connected']);
  });

  test('uses TURN as well after its first attempt has failed, and so do all connections after it', async () => {
    FakePeerConnection.network = false;
    const relays = [{ urls: ['turns:relay.example:443?transport=tcp'], username: 'u', credential: 'c' }];
    const ann = await joined('a');
    ann.client.ice.info = { servers: [{ urls: ['stun:here'] }, ...relays], relayOnly: true };
    ann.session.publish(publisherOf());
    await clock.advance(0);
    const { send } = ann.client.sides;
    assert.deepEqual([send.configuration.iceServers, send.restarts], [[], 0]);
    await clock.advance(4900);
    assert.equal(send.restarts, 0);
    await clock.advance(100);
    assert.deepEqual([send.configuration.iceServers, send.restarts], [relays, 1]);
    assert.equal(send.configuration.iceTransportPolicy, undefined, 'direct ways are still tried');
    await clock.advance(9900);
    assert.equal(send.restarts, 1, 'the way through TURN takes longer');
    FakePeerConnection.network = true;
    await clock.advance(100);
    assert.deepEqual([send.restarts, send.connectionState], [2, 'connected']);
    ann.client.tell({ type: 'media.closed', side: 'send', code: 'dtls_failed', message: 'No.' });
    await clock.advance(60_000);
    assert.notEqual(ann.client.sides.send, send);
    assert.deepEqual(ann.client.sides.send.configuration.iceServers, relays);
  });

  test('waits as long as for a restart if there is no TURN server, and never uses STUN', async () => {
    FakePeerConnection.network = false;
    const ann = await joined('a');
    ann.session.publish(publisherOf());
    await clock.advance(9900);
    const { send } = ann.client.sides;
    assert.equal(send.restarts, 0);
    await clock.advance(100);
    assert.deepEqual([send.restarts, send.configuration.iceServers], [1, []]);
  });

  test('is replaced when the server ended it, with growing pauses if that fails', async () => {
    const { ben, watch } = await seeing();
    FakePeerConnection.network = false;
    ben.client.tell({ type: 'media.closed', side: 'receive', code: 'dtls_failed', message: 'No.' });
    await clock.advance(0);
    assert.deepEqual(watch.events, ['connected', 'disconnected']);
    assert.equal(ben.client.askedFor('media.offer').length, 2);
    assert.equal(ben.client.askedFor('session.subscribe').length, 2);
    await clock.advance(19_000);
    assert.equal(ben.client.askedFor('media.offer').length, 2);
    await clock.advance(1000);
    assert.equal(ben.client.askedFor('media.offer').length, 3);
    await clock.advance(600_000);
    assert.equal(ben.client.askedFor('media.offer').length, 4 + 9);
  });

  test('is not confused with the previous one, whose end is reported late', async () => {
    const { ben } = await seeing();
    const closed = { side: 'receive', code: 'dtls_failed', message: 'No.' };
    ben.client.emit('message:media.closed', closed);
    const deliver = hold();
    await clock.advance(0);
    assert.equal(connections().length, 2);
    ben.client.emit('message:media.closed', closed);
    await deliver();
    await clock.advance(60_000);
    assert.equal(ben.client.askedFor('media.offer').length, 2);
    assert.deepEqual(connections().map(({ connectionState }) => connectionState), ['connected', 'connected']);
  });

  test('is replaced during a publish request: the stream uses the new one', async () => {
    const ann = await joined('a');
    const publisher = publisherOf();
    ann.session.publish(publisher);
    while (ann.client.askedFor('session.publish').length === 0) await Promise.resolve();
    const deliver = hold();
    await settled();
    const [first] = connections();
    first.remoteDescription = {};
    ann.client.emit('message:media.closed', { side: 'send', code: 'dtls_failed', message: 'No.' });
    await clock.advance(0);
    await deliver();
    assert.equal(first.connectionState, 'closed');
    assert.deepEqual(ann.client.asked.map((/** @type {any} */ { type }) => type).slice(-3), ['session.publish', 'media.offer', 'session.update']);
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
  });

  test('ends with the client connection, and returns with the next publisher', async () => {
    const { ann, publisher } = await seeing();
    publisher.on('streamDestroyed', (event) => event.preventDefault());
    ann.client.emit('expired');
    assert.equal(connections().length, 1);
    ann.client.emit('connected', { resumed: false });
    await clock.advance(10_000);
    assert.equal(connections().length, 1);
    const again = await joined('a', ann.client);
    again.session.publish(publisher);
    await settled();
    assert.equal(connections().length, 2);
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
    assert.equal(clock.pending, 0);
  });

  test('that was closed while its offer was made is followed by another one', async () => {
    const ann = await joined('a');
    const publisher = publisherOf();
    publisher.on('streamDestroyed', (event) => event.preventDefault());
    const native = FakePeerConnection.prototype.setLocalDescription;
    // Browsers never settle this promise if the connection is closed meanwhile.
    FakePeerConnection.prototype.setLocalDescription = () => new Promise(() => {});
    try {
      ann.session.publish(publisher);
      await settled();
      assert.equal(connections().length, 1);
      ann.client.emit('expired');
    } finally {
      FakePeerConnection.prototype.setLocalDescription = native;
    }
    assert.equal(connections().length, 0);
    const again = await joined('a', ann.client);
    again.session.publish(publisher);
    await settled();
    assert.equal(connections().length, 1);
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
  });
});

describe('A relayed session that becomes routed', () => {
  test('continues through the server with the same streams', async () => {
    room.mediaMode = 'relayed';
    FakePeerConnection.network = false;
    const { ann, ben, publisher, stream, watch } = await watching();
    const relayed = connections();
    assert.equal(relayed.length, 2);
    FakePeerConnection.network = true;
    room.mediaMode = 'routed';
    room.broadcast('2_room', { type: 'session.mediaModeChanged', mediaMode: 'routed' });
    await settled();
    assert.deepEqual(relayed.map(({ connectionState }) => connectionState), ['closed', 'closed']);
    const [update] = ann.client.askedFor('session.update');
    assert.deepEqual([update.streamId, update.audioMid, update.videoMid], [stream.streamId, '0', '1']);
    const again = ben.client.askedFor('session.subscribe').pop();
    assert.deepEqual([again.streamId, again.audioMid, again.videoMid], [stream.streamId, '0', '1']);
    room.flow(stream.streamId);
    await clock.advance(20);
    assert.deepEqual(watch.events, ['connected']);
    ann.session.unpublish(publisher);
    await clock.advance(3000);
    assert.deepEqual(sending(ann.client), [null, null]);
    assert.deepEqual(ben.events.map(({ type }) => type), ['streamCreated', 'streamDestroyed']);
  });

  test('while a stream is being published sends its transceivers afterwards', async () => {
    room.mediaMode = 'relayed';
    const ann = await joined('a');
    const publisher = publisherOf();
    ann.session.publish(publisher);
    while (ann.client.askedFor('session.publish').length === 0) await Promise.resolve();
    room.broadcast('2_room', { type: 'session.mediaModeChanged', mediaMode: 'routed' });
    await settled();
    assert.equal(ann.client.askedFor('session.publish')[0].videoMid, undefined);
    assert.equal(ann.client.askedFor('session.update')[0].videoMid, '1');
  });
});

describe('A video that the server does not take at its bandwidth limit', () => {
  /** Publishes without video, and then turns it on while the session is full. */
  const refused = async () => {
    const [ann, ben] = [await joined('a'), await joined('b')];
    const publisher = publisherOf({ publishVideo: false });
    /** @type {string[]} */
    const reported = [];
    publisher.on('videoRefused videoRefusalOver', (/** @type {any} */ { type, error }) => reported.push(error ? `${type} ${error.code}` : type));
    ann.session.publish(publisher);
    await settled();
    room.isFull = true;
    publisher.publishVideo(true);
    await settled();
    const offers = () => ann.client.askedFor('session.update').filter((/** @type {any} */ { hasVideo }) => hasVideo).length;
    const { stream } = ben.events.find(({ type }) => type === 'streamCreated');
    return { ann, publisher, reported, offers, stream };
  };

  test('is offered again after the time that the server says, until it is accepted', async () => {
    const { reported, offers, stream } = await refused();
    assert.deepEqual([reported, offers(), stream.hasVideo], [['videoRefused bandwidth_exceeded'], 1, false]);
    await clock.advance(9000);
    assert.equal(offers(), 1);
    await clock.advance(11_000);
    assert.deepEqual([reported.length, offers()], [1, 3], 'it is reported once');
    room.isFull = false;
    await clock.advance(10_000);
    assert.deepEqual([reported.slice(1), offers(), stream.hasVideo], [['videoRefusalOver'], 4, true]);
    await clock.advance(60_000);
    assert.equal(offers(), 4);
  });

  test('is not offered again when it is turned off, or when its stream ends', async () => {
    const first = await refused();
    first.publisher.publishVideo(false);
    await clock.advance(60_000);
    assert.deepEqual([first.reported.slice(1), first.offers()], [['videoRefusalOver'], 1]);
    first.publisher.publishVideo(true);
    await settled();
    assert.deepEqual([first.reported.length, first.offers()], [3, 2]);
    first.ann.session.unpublish(first.publisher);
    await clock.advance(60_000);
    assert.deepEqual([first.reported.slice(3), first.offers()], [['videoRefusalOver'], 2]);
  });
});
