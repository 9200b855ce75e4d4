import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { Roulette } from '../../lib/roulette/roulette.js';
import { sourceOf } from '../../lib/session/publisher.js';
import { settled } from './fake-clock.mjs';
import { FakeElement, FakeTrack } from './fake-page.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';
import { begin, clock, connections, joined, kinds, publisherOf, room, seeing, sending, subscribe, watching } from './routed-room.mjs';

beforeEach(begin);

describe('Routed media', () => {
  test('send their transceivers with publish and subscribe, after the offer that contains them', async () => {
    const { ann, ben } = await watching();
    const [published] = ann.client.askedFor('session.publish');
    assert.deepEqual([published.audioMid, published.videoMid], ['0', '1']);
    const [subscribed] = ben.client.askedFor('session.subscribe');
    assert.deepEqual([subscribed.audioMid, subscribed.videoMid, subscribed.audio, subscribed.video], ['0', '1', true, true]);
    assert.deepEqual(ann.client.asked.map((/** @type {any} */ { type }) => type), ['session.join', 'media.offer', 'session.publish']);
    assert.deepEqual(ben.client.asked.map((/** @type {any} */ { type }) => type), ['session.join', 'media.offer', 'session.subscribe']);
    assert.deepEqual([ann.client.askedFor('media.offer')[0].side, ben.client.askedFor('media.offer')[0].side], ['send', 'receive']);
    const [audio, video] = /** @type {FakePeerConnection} */ (ann.client.sides.send).transceivers;
    const layers = video.init.sendEncodings.map((/** @type {any} */ { rid, active }) => [rid, active]);
    assert.deepEqual([audio.direction, video.direction, layers], ['sendonly', 'sendonly', [['f', true], ['h', false]]]);
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
    assert.deepEqual([ann, ben].flatMap(({ events }) => events.filter(({ type }) => type === 'mediaFault')), []);
  });

  test('do not wait for ICE, nor for the answer, before they are published', async () => {
    const ann = await joined('a');
    FakePeerConnection.network = false;
    const { handle } = room;
    room.handle = (from, message) => { if (message.type !== 'media.offer') return handle.call(room, from, message); };
    ann.session.publish(publisherOf());
    await settled();
    assert.equal(room.session('2_room').streams.size, 1);
  });

  test('are shown only after new frames have arrived', async () => {
    const { watch, stream } = await watching();
    await clock.advance(1000);
    assert.deepEqual([watch.events, watch.media()], [[], null]);
    room.flow(stream.streamId, ['audio']);
    await clock.advance(1000);
    assert.deepEqual([watch.events, watch.media()], [[], null]);
    room.flow(stream.streamId);
    await clock.advance(20);
    assert.deepEqual(watch.events, ['connected']);
    assert.deepEqual(kinds(watch.media()), ['audio', 'video']);
    assert.equal(clock.pending, 0);
  });

  test('without video play audio at once, and get the video when there is one', async () => {
    const { ann, watch, publisher, stream } = await watching();
    publisher.publishVideo(false);
    await settled();
    room.flow(stream.streamId, ['audio']);
    await clock.advance(20);
    assert.deepEqual([watch.events, kinds(watch.media())], [['videoDisabled publishVideo', 'connected'], ['audio']]);
    publisher.publishVideo(true);
    await settled();
    room.flow(stream.streamId);
    await clock.advance(200);
    assert.deepEqual(kinds(watch.media()), ['audio', 'video']);
    assert.equal(ann.client.askedFor('session.update').length, 2);
  });

  test('without video count as connected after a second of silence', async () => {
    const { watch, publisher, stream } = await watching();
    publisher.publishVideo(false);
    await settled();
    await clock.advance(900);
    assert.deepEqual(watch.events, ['videoDisabled publishVideo']);
    await clock.advance(200);
    assert.deepEqual([watch.events, kinds(watch.media())], [['videoDisabled publishVideo', 'connected'], ['audio']]);
    publisher.publishVideo(true);
    await clock.advance(2000);
    assert.deepEqual(kinds(watch.media()), ['audio'], 'silence does not stand in for video');
    room.flow(stream.streamId);
    await clock.advance(200);
    assert.deepEqual(kinds(watch.media()), ['audio', 'video']);
  });

  test('lose their video when the camera is turned off, and get it back with the first new frame', async () => {
    const { watch, publisher, stream } = await watching();
    room.flow(stream.streamId);
    await clock.advance(20);
    assert.deepEqual(kinds(watch.media()), ['audio', 'video']);
    publisher.publishVideo(false);
    await settled();
    assert.deepEqual(kinds(watch.media()), ['audio']);
    publisher.publishVideo(true);
    await clock.advance(1000);
    assert.deepEqual(kinds(watch.media()), ['audio'], 'the last frame of the previous stream is not shown again');
    room.flow(stream.streamId);
    await clock.advance(200);
    assert.deepEqual(kinds(watch.media()), ['audio', 'video']);
  });

  test('published and subscribed at once share one offer', async () => {
    const ann = await joined('a');
    const others = await Promise.all(['b', 'c', 'd'].map((id) => joined(id)));
    for (const { session } of others) session.publish(publisherOf());
    await settled();
    const streams = ann.events.map(({ stream }) => stream);
    for (const stream of streams) subscribe(ann.session, stream);
    await settled();
    assert.equal(ann.client.askedFor('media.offer').length, 1);
    assert.deepEqual(ann.client.askedFor('session.subscribe').map((/** @type {any} */ { videoMid }) => videoMid), ['1', '3', '5']);
  });

  test('added while an offer is pending are in the next, which waits for the answer', async () => {
    const ann = await joined('a');
    /** @type {(() => void)[]} */
    const held = [];
    room.travel = (run) => { held.push(run); };
    ann.client.media.prepare({ tracks: () => [] });
    await settled();
    ann.client.media.takeSlot();
    ann.client.media.takeSlot();
    const third = ann.client.media.takeSlot();
    const mids = ann.client.media.mids('receive', third);
    await settled();
    assert.equal(ann.client.askedFor('media.offer').length, 2, 'one offer for each side');
    room.travel = (run) => queueMicrotask(run);
    for (const run of held) run();
    assert.deepEqual(await mids, { audioMid: '4', videoMid: '5' });
    assert.equal(ann.client.askedFor('media.offer').length, 3);
  });

  test('come back to their own publisher as a test, and end with the stream', async () => {
    const ann = await joined('a');
    const publisher = publisherOf();
    ann.session.publish(publisher);
    await settled();
    const stream = /** @type {any} */ (publisher.stream);
    const echo = subscribe(ann.session, stream);
    await settled();
    room.flow(stream.streamId);
    await clock.advance(20);
    assert.deepEqual(echo.events, ['connected']);
    assert.equal(connections().length, 2);
    ann.session.unpublish(publisher);
    assert.equal(ann.session.getSubscribersForStream(stream).length, 0);
  });

  test('are counted once for a publisher, as the statistics of its own connection', async () => {
    const { publisher, watch } = await seeing();
    const all = await publisher.getRtcStatsReport();
    assert.deepEqual(all.map(({ connectionId }) => connectionId), ['a', 'a']);
    /** @type {any} */
    const stats = await new Promise((resolve) => { watch.subscriber.getStats((/** @type {any} */ _error, /** @type {any} */ got) => resolve(got)); });
    assert.deepEqual([stats.audio.packetsReceived, stats.video.packetsReceived], [1, 1]);
  });

  test('have the server’s estimate in the statistics of subscribers, asked once a second at most', async () => {
    const { ben, watch } = await seeing();
    /** @returns {Promise<any>} */
    const stats = () => new Promise((resolve, reject) => {
      watch.subscriber.getStats((/** @type {any} */ error, /** @type {any} */ got) => (error ? reject(error) : resolve(got)));
    });
    const bandwidths = async () => (await Promise.all([stats(), stats()])).map(({ transport }) => transport.connectionEstimatedBandwidth);
    room.estimate = 640_000;
    assert.deepEqual(await bandwidths(), [640_000, 640_000]);
    assert.equal(ben.client.askedFor('media.estimate').length, 1);
    room.estimate = undefined;
    await clock.advance(999);
    assert.deepEqual(await bandwidths(), [640_000, 640_000]);
    await clock.advance(1);
    assert.deepEqual(await bandwidths(), [undefined, undefined], 'nothing limits the connection any longer');
    assert.equal(ben.client.askedFor('media.estimate').length, 2);
  });

  test('have statistics without the estimate if the server does not answer in time, or cannot be reached', async () => {
    const { ben, watch } = await seeing();
    room.estimate = 640_000;
    /** @type {any[]} */
    const got = [];
    const ask = () => watch.subscriber.getStats((/** @type {any} */ error, /** @type {any} */ stats) => got.push(error ?? stats.transport.connectionEstimatedBandwidth));
    room.travel = () => {};
    ask();
    await clock.advance(999);
    assert.deepEqual(got, []);
    await clock.advance(1);
    assert.deepEqual(got, [undefined]);
    ben.client.state = 'reconnecting';
    ask();
    await settled();
    assert.deepEqual(got, [undefined, undefined]);
    assert.equal(ben.client.askedFor('media.estimate').length, 1);
  });

  test('follow another camera without negotiation', async () => {
    const { ann, publisher } = await seeing();
    const other = /** @type {any} */ (new FakeTrack('video'));
    await publisher.setVideoSource(other);
    await settled();
    assert.equal(/** @type {any} */ (ann.client.sides.send).transceivers[1].sender.track, other);
    assert.equal(ann.client.askedFor('media.offer').length, 1);
  });

  test('report the speaker, and why video is paused', async () => {
    const { ben, watch, stream } = await seeing();
    ben.client.tell({ type: 'session.speaking', sessionId: '2_room', streamId: stream.streamId });
    ben.client.tell({ type: 'session.speaking', sessionId: '2_room' });
    for (const videoPaused of [true, true, false]) {
      ben.client.tell({ type: 'session.subscriptionChanged', sessionId: '2_room', streamId: stream.streamId, videoPaused, reason: 'slow' });
    }
    ben.client.tell({ type: 'session.subscriptionChanged', sessionId: '2_room', streamId: stream.streamId, videoPaused: true, reason: 'codec' });
    await settled();
    assert.deepEqual(ben.events.filter(({ type }) => type === 'activeSpeakerChanged').map((event) => event.stream), [stream, null]);
    assert.deepEqual(watch.events, ['connected', 'videoDisabled quality', 'videoEnabled quality', 'videoDisabled codecNotSupported']);
  });

  test('are reported as an error once, if the server does not route media', async () => {
    room.offerRefusal = new ConfabError({ code: 'media_unavailable', message: 'This server does not route media.' });
    const ann = await joined('a');
    ann.session.publish(publisherOf());
    await settled();
    assert.deepEqual(ann.events.filter(({ type }) => type === 'mediaFault').map(({ error }) => error.code), ['media_unavailable']);
    await clock.advance(60_000);
    assert.equal(ann.client.askedFor('media.offer').length, 1);
  });

  test('are offered again after the server’s pause when rate-limited', async () => {
    room.offerRefusal = new ConfabError({ code: 'rate_limited', message: 'Slowly.', retryable: true, retryAfterMs: 500 });
    const ann = await joined('a');
    ann.session.publish(publisherOf());
    await settled();
    room.offerRefusal = null;
    await clock.advance(500);
    assert.equal(connections()[0].connectionState, 'connected');
  });
});

describe('Transceivers', () => {
  test('are parked three seconds after the last stream on them, and reused', async () => {
    const { ann, publisher } = await seeing();
    const [, video] = /** @type {FakePeerConnection} */ (ann.client.sides.send).transceivers;
    publisher.on('streamDestroyed', (event) => event.preventDefault());
    ann.session.unpublish(publisher);
    await clock.advance(2900);
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
    await clock.advance(100);
    assert.deepEqual(sending(ann.client), [null, null]);
    ann.session.publish(publisher);
    await settled();
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
    assert.deepEqual(video.sender.replaced.map((track) => track?.kind ?? null), ['video', null, 'video']);
    assert.equal(ann.client.askedFor('media.offer').length, 1);
  });

  test('of an ended stream are free for the next, which waits for its first frames', async () => {
    const { ann, ben, watch } = await seeing();
    ben.session.unsubscribe(watch.subscriber);
    const second = publisherOf();
    ann.session.publish(second);
    await settled();
    const next = subscribe(ben.session, second.stream);
    // Late packets of the previous stream arrive.
    const [, video] = /** @type {FakePeerConnection} */ (ben.client.sides.receive).transceivers;
    await clock.advance(100);
    video.receiver.arrive();
    await clock.advance(500);
    assert.deepEqual([next.events, next.media()], [[], null]);
    assert.equal(ben.client.askedFor('media.offer').length, 1);
    assert.deepEqual(ben.client.askedFor('session.subscribe').map((/** @type {any} */ { videoMid }) => videoMid), ['1', '1']);
    room.flow(/** @type {any} */ (second.stream).streamId);
    await clock.advance(20);
    assert.deepEqual(next.events, ['connected']);
    assert.equal(clock.pending, 0);
  });

  test('released before the server knew them are not sent to it', async () => {
    const { ann, ben } = await watching();
    const second = publisherOf();
    ann.session.publish(second);
    await settled();
    const reported = ben.client.askedFor('session.subscribe').length;
    const { subscriber } = subscribe(ben.session, second.stream);
    ben.session.unsubscribe(subscriber);
    await settled();
    assert.equal(ben.client.askedFor('session.subscribe').length, reported);
    assert.equal(ben.client.askedFor('session.unsubscribe').length, 0);
  });

  test('carry one stream each, however quickly they are reused', async () => {
    const { ann, ben, stream } = await watching();
    const eve = await joined('c');
    const second = publisherOf();
    ann.session.publish(second);
    await settled();
    const [one, other] = [stream, second.stream].map((of) => eve.core.roster.streams.get(/** @type {any} */ (of).streamId));
    eve.session.unsubscribe(subscribe(eve.session, one).subscriber);
    subscribe(eve.session, other);
    subscribe(eve.session, one);
    await settled();
    assert.deepEqual(eve.client.askedFor('session.subscribe').map((/** @type {any} */ { streamId, videoMid }) => [streamId, videoMid]),
      [[other?.streamId, '1'], [one?.streamId, '3']]);
    assert.deepEqual([...ben.client.slots.keys()], ['1']);
  });

  test('send the last requested track', async () => {
    const { media, sides } = room.client('a');
    /** @type {any} */
    let tracks = [new FakeTrack('audio'), new FakeTrack('video')];
    const source = { tracks: () => tracks };
    media.prepare(source);
    await settled();
    const outgoing = media.hold(source);
    tracks = [];
    media.refresh(outgoing);
    await settled();
    assert.deepEqual(sending({ sides }), [null, null]);
  });

  test('reserved for a publisher that was unpublished are parked', async () => {
    const ann = await joined('a');
    const publisher = publisherOf();
    ann.session.publish(publisher);
    await sourceOf(publisher).ready;
    ann.session.unpublish(publisher);
    await settled();
    assert.equal(room.session('2_room').streams.size, 0);
    await clock.advance(3000);
    assert.deepEqual(sending(ann.client), [null, null]);
  });
});

describe('A roulette through the server', () => {
  /** @param {string} id */
  async function visitor(id) {
    const client = room.client(id);
    client.welcome = { media: { roulette: 'routed' } };
    const target = /** @type {any} */ (new FakeElement('div'));
    const roulette = new Roulette(client, { rtc: fakeRtc, clock, subscriberTarget: target, subscriberOptions: { insertMode: 'append' } });
    const publisher = publisherOf();
    roulette.usePublisher(publisher);
    await settled();
    /** @type {any[]} */
    const subscribers = [];
    roulette.on('subscriber', ({ subscriber }) => subscribers.push(subscriber));
    await roulette.start();
    return { client, roulette, publisher, subscribers };
  }

  /** @param {any} client @param {string} matchId */
  function match(client, matchId) {
    const admission = { sessionId: `2_${matchId}`, token: 'good' };
    const partner = { name: '', interests: [] };
    client.tell({ type: 'roulette.matched', matchId, mode: 'video', publish: admission, subscribe: admission, partner, textChat: true });
  }

  /** @param {any} client @param {string} matchId */
  function end(client, matchId) {
    client.tell({ type: 'session.left', sessionId: `2_${matchId}`, reason: 'matchEnded' });
    client.tell({ type: 'roulette.ended', matchId, reason: 'next' });
    room['session.leave'](client, { sessionId: `2_${matchId}` });
  }

  test('publishes right after the join, without waiting for its answer', async () => {
    Object.assign(room, { 'roulette.start': () => ({ type: 'roulette.waiting' }) });
    const ann = await visitor('a');
    match(ann.client, 'm1');
    await Promise.resolve();
    room.travel = () => {};
    await settled();
    const [join, publish] = ann.client.asked.slice(-2);
    assert.deepEqual([join.type, publish.type, publish.videoMid], ['session.join', 'session.publish', '1']);
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
  });

  test('opens its connections during the preview and keeps them through every Next, without another negotiation', async () => {
    Object.assign(room, { 'roulette.start': () => ({ type: 'roulette.waiting' }) });
    const [ann, ben] = [await visitor('a'), await visitor('b')];
    assert.deepEqual(connections().map(({ connectionState }) => connectionState), Array(4).fill('connected'));
    assert.deepEqual(sending(ann.client), [null, null]);
    const slots = [];
    for (const matchId of ['m1', 'm2', 'm3']) {
      for (const { client } of [ann, ben]) match(client, matchId);
      await settled();
      await settled();
      slots.push(ann.client.askedFor('session.subscribe').pop().videoMid);
      room.flow(ben.publisher.stream?.streamId ?? '');
      await clock.advance(20);
      assert.equal(ann.subscribers.length, slots.length);
      assert.deepEqual(kinds(ann.subscribers[slots.length - 1].element.children[0].children[0].srcObject), ['audio', 'video']);
      for (const { client } of [ann, ben]) end(client, matchId);
      await clock.advance(1000);
    }
    assert.deepEqual(slots, ['1', '3', '1'], 'the slot that was free for longer is reused first');
    assert.equal(FakePeerConnection.all.length, 4);
    assert.deepEqual(ann.client.askedFor('media.offer').map((/** @type {any} */ { side }) => side).sort(), ['receive', 'send']);
    const [, video] = /** @type {FakePeerConnection} */ (ann.client.sides.send).transceivers;
    assert.deepEqual(video.sender.replaced.map((track) => track?.kind), ['video'], 'Next does not touch the sender');
  });
});
