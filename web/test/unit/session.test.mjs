import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { OT } from '../../lib/ot.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { installPage } from './fake-page.mjs';
import { FakeRoom } from './fake-room.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

/** @type {ReturnType<typeof installPage>} */
let page;
/** @type {FakeRoom} */
let room;
/** @type {FakeClock} */
let clock;

beforeEach(() => {
  page = installPage();
  room = new FakeRoom();
  clock = new FakeClock();
  FakePeerConnection.all = [];
  FakePeerConnection.network = true;
});

/** @param {string} id @param {object} [options] */
function join(id, options = {}) {
  const client = room.client(id);
  const session = OT.initSession('1', '1_room', { client, rtc: fakeRtc, clock, ...options });
  /** @type {any[]} */
  const events = [];
  const names = ['sessionConnected', 'sessionDisconnected', 'sessionReconnecting', 'sessionReconnected', 'connectionCreated',
    'connectionDestroyed', 'streamCreated', 'streamDestroyed', 'streamPropertyChanged', 'signal', 'muteForced', 'mediaFault'];
  for (const name of names) session.on(name, (event) => events.push(event));
  return { client, session, events, types: () => events.map(({ type }) => type) };
}

/** @param {string} id @param {object} [options] */
async function joined(id, options) {
  const made = join(id, options);
  made.session.connect('good');
  await settled();
  assert.equal(made.session.isConnected(), true);
  return made;
}

/** @param {(callback: (error?: any) => void) => void} call @returns {Promise<any>} the callback's argument */
const called = (call) => new Promise((resolve) => call(resolve));

/** Two clients in a session, one of which publishes to the other. */
async function watching() {
  const [ann, ben] = [await joined('a'), await joined('b')];
  const publisher = ann.session.publish(page.element(), { insertMode: 'append' });
  await settled();
  const { stream } = ben.events.find(({ type }) => type === 'streamCreated');
  const target = page.element();
  const subscriber = ben.session.subscribe(stream, target, { insertMode: 'append', label: 'Partner' });
  await settled();
  return { ann, ben, publisher, stream, subscriber, target };
}

describe('A session that connects', () => {
  test('emits all connections and streams, and has its capabilities', async () => {
    const ann = await joined('a');
    ann.session.publish(page.element());
    await settled();
    const ben = await joined('b');
    assert.deepEqual(ben.types(), ['sessionConnected', 'connectionCreated', 'connectionCreated', 'streamCreated']);
    assert.deepEqual(ben.session.capabilities?.forceMute, 1);
    assert.deepEqual([ben.session.connection?.id, ben.session.connection?.connectionId, ben.session.connection?.data], ['b', 'b', 'data of b']);
    const [, own, other, { stream }] = ben.events;
    assert.equal(own.connection, ben.session.connection);
    assert.equal(stream.connection, other.connection);
    assert.deepEqual([stream.id, stream.hasVideo, stream.videoType, stream.videoDimensions], [stream.streamId, true, 'camera', { width: 640, height: 480 }]);
    assert.equal(ann.types().pop(), 'connectionCreated');
  });

  test('emits no connection events if they are turned off', async () => {
    const { types } = await joined('a', { connectionEventsSuppressed: true });
    await joined('b');
    assert.deepEqual(types(), ['sessionConnected']);
  });

  test('reports an invalid token', async () => {
    const { session } = join('a');
    const error = await called((callback) => session.connect('token_expired', callback));
    assert.deepEqual([error.name, error.code, error.reason], ['OT_AUTHENTICATION_ERROR', 1004, 'token_expired']);
    assert.equal(session.isConnected(), false);
    assert.equal(await called((callback) => session.connect('good', callback)), undefined);
  });

  test('left while connecting stays disconnected', async () => {
    const { session, client, types } = join('a');
    const connected = called((callback) => session.connect('good', callback));
    await Promise.resolve();
    session.disconnect();
    assert.equal((await connected).name, 'OT_NOT_CONNECTED');
    await settled();
    assert.equal(client.askedFor('session.leave').length, 1);
    assert.deepEqual(types(), []);
  });

  test('reports exceptions to the whole page', async () => {
    /** @type {any} */
    let reported;
    OT.once('exception', (/** @type {any} */ event) => { reported = event; });
    const { session } = join('a');
    await called((callback) => session.connect('', callback));
    assert.deepEqual([reported.title, reported.code, reported.target], ['OT_INVALID_PARAMETER', 1011, session]);
  });
});

describe('Publishing and subscribing', () => {
  test('carry a camera to another page', async () => {
    const { ben, publisher, stream, subscriber, target } = await watching();
    assert.equal(publisher.stream?.streamId, stream.streamId);
    const [video] = target.children[0].children[0].children;
    assert.equal(video.srcObject.id, stream.streamId);
    assert.equal(video.attributes['aria-label'], 'Partner');
    assert.equal(target.children[0].className, 'OT_root OT_subscriber OT_loading');
    video.happen('loadeddata');
    assert.equal(target.children[0].className, 'OT_root OT_subscriber');
    assert.equal(video.className, 'OT_video-element');
    assert.equal(OT.subscribers.find((one) => one.id === subscriber.id), subscriber);
    assert.deepEqual(ben.session.getSubscribersForStream(stream), [subscriber]);
    assert.equal(ben.types().includes('mediaFault'), false);
  });

  test('call back when the video has arrived', async () => {
    const { ben, stream } = await watching();
    const error = await called((callback) => ben.session.subscribe(stream, page.element(), {}, callback));
    assert.equal(error, undefined);
  });

  test('report when the camera or the microphone is turned off', async () => {
    const { ann, ben, publisher, subscriber } = await watching();
    /** @type {string[]} */
    const reported = [];
    subscriber.on('videoDisabled videoEnabled', ({ type, reason }) => reported.push(`${type} ${reason}`));
    publisher.publishVideo(false);
    await settled();
    publisher.publishVideo(true).publishAudio(false);
    await settled();
    assert.deepEqual(reported, ['videoDisabled publishVideo', 'videoEnabled publishVideo']);
    const changes = ben.events.filter(({ type }) => type === 'streamPropertyChanged');
    assert.deepEqual(changes.map(({ changedProperty, newValue }) => [changedProperty, newValue]), [['hasVideo', false], ['hasVideo', true], ['hasAudio', false]]);
    assert.equal(ann.types().filter((type) => type === 'streamPropertyChanged').length, 3);
    assert.deepEqual(page.devices.given.map(({ enabled }) => enabled), [false, true]);
  });

  test('notify the publisher of media that no subscriber wants', async () => {
    const { ben, stream, subscriber } = await watching();
    subscriber.subscribeToVideo(false);
    await settled();
    const [, again] = ben.client.askedFor('session.subscribe');
    assert.deepEqual([again.streamId, again.audio, again.video], [stream.streamId, true, false]);
    const [sending] = FakePeerConnection.all.filter(({ senders }) => senders.length > 0);
    assert.deepEqual(sending.senders.map(({ track }) => track?.kind ?? null), ['audio', null]);
  });

  test('continue with another camera, without a new stream', async () => {
    const { ann, publisher } = await watching();
    const { deviceId } = await publisher.cycleVideo();
    assert.equal(deviceId, 'back');
    await settled();
    const [sending] = FakePeerConnection.all.filter(({ senders }) => senders.length > 0);
    assert.equal(sending.senders.find(({ track }) => track.kind === 'video')?.track.settings.deviceId, 'back');
    assert.deepEqual(page.devices.given.map(({ readyState }) => readyState), ['live', 'ended', 'live']);
    assert.equal(ann.client.askedFor('session.publish').length, 1);
  });

  test('end with the stream: off the page, unless that is prevented', async () => {
    const { ann, ben, publisher, subscriber, target } = await watching();
    let destroyed = '';
    subscriber.on('destroyed', ({ reason }) => { destroyed = reason; });
    ann.session.unpublish(publisher);
    await settled();
    assert.equal(ben.events[ben.events.length - 1].reason, 'clientDisconnected');
    assert.equal(destroyed, 'clientDisconnected');
    assert.deepEqual(target.children, []);
    assert.equal(publisher.isDestroyed, true);
    assert.deepEqual(page.devices.given.map(({ readyState }) => readyState), ['ended', 'ended']);
    assert.deepEqual(FakePeerConnection.all.map(({ connectionState }) => connectionState), ['closed', 'closed']);
    assert.equal(ben.client.askedFor('session.unsubscribe').length, 0);
  });

  test('let a publisher outlive its session, to be published in another', async () => {
    const { ann, publisher } = await watching();
    publisher.on('streamDestroyed', (event) => event.preventDefault());
    await ann.session.disconnect();
    assert.deepEqual([publisher.session, publisher.stream, publisher.isDestroyed], [null, null, false]);
    const again = await joined('c');
    assert.equal(await called((callback) => again.session.publish(publisher, callback)), undefined);
    assert.equal(publisher.stream?.connection, again.session.connection);
    assert.equal(page.devices.asked.length, 1);
  });

  test('do not start for a publisher that was unpublished meanwhile', async () => {
    const ann = await joined('a');
    const publisher = OT.initPublisher(page.element());
    const error = called((callback) => ann.session.publish(publisher, callback));
    ann.session.unpublish(publisher);
    assert.equal((await error).name, 'OT_STREAM_CREATE_FAILED');
    await settled();
    assert.equal(room.session('1_room').streams.size, 0);
    assert.equal(publisher.session, null);
  });

  test('need a role that allows them', async () => {
    room.capabilities = { ...room.capabilities, publish: false };
    const ann = await joined('a');
    const error = await called((callback) => ann.session.publish(page.element(), callback));
    assert.deepEqual([error.name, error.code], ['OT_PERMISSION_DENIED', 1500]);
    assert.deepEqual(ann.client.askedFor('session.publish'), []);
  });

  test('need an existing stream of another connection', async () => {
    const { ann, publisher, stream } = await watching();
    const own = /** @type {any} */ (publisher.stream);
    assert.equal((await called((callback) => ann.session.subscribe(own, page.element(), callback))).name, 'OT_INVALID_PARAMETER');
    ann.session.unpublish(publisher);
    await settled();
    const late = await joined('d');
    assert.equal((await called((callback) => late.session.subscribe(stream, page.element(), callback))).name, 'OT_STREAM_NOT_FOUND');
  });

  test('start muted in a muted session', async () => {
    room.muted = true;
    const ann = await joined('a');
    ann.session.publish(page.element());
    await settled();
    assert.equal(ann.client.askedFor('session.publish')[0].hasAudio, false);
  });
});

describe('Signals', () => {
  test('reach everyone, including the sender, as a typed and as a general event', async () => {
    const [ann, ben] = [await joined('a'), await joined('b')];
    /** @type {any} */
    let typed;
    ann.session.on('signal:chat', (event) => { typed = event; });
    assert.equal(await called((callback) => ann.session.signal({ type: 'chat', data: 'hello' }, callback)), undefined);
    await settled();
    assert.deepEqual([typed.type, typed.data, typed.from === ann.session.connection], ['signal:chat', 'hello', true]);
    const heard = ben.events[ben.events.length - 1];
    assert.deepEqual([heard.type, heard.from.id], ['signal:chat', 'a']);
  });

  test('may be for one connection, and may be empty', async () => {
    const [ann, ben] = [await joined('a'), await joined('b')];
    ann.session.signal({ to: /** @type {any} */ (ben.session.connection) });
    await settled();
    assert.deepEqual(ann.types().includes('signal'), false);
    assert.equal(ben.types().pop(), 'signal');
  });

  test('are rejected before they are sent if they are invalid', async () => {
    const { session, client } = await joined('a');
    for (const [signal, code] of /** @type {[any, number][]} */ ([
      [{ type: 'a b' }, 400], [{ type: 'x'.repeat(129) }, 400], [{ data: { a: 1 } }, 400], [{ data: 'ä'.repeat(5000) }, 413],
    ])) {
      const error = await called((callback) => session.signal(signal, callback));
      assert.deepEqual([error.name, error.code], ['OT_INVALID_PARAMETER', code]);
    }
    assert.deepEqual(client.askedFor('session.signal'), []);
  });

  test('wait for the connection, unless retryAfterReconnect is false', async () => {
    const { session, client } = await joined('a');
    client.state = 'reconnecting';
    client.emit('reconnecting');
    const error = await called((callback) => session.signal({ data: 'now', retryAfterReconnect: false }, callback));
    assert.equal(error.name, 'OT_NOT_CONNECTED');
    session.signal({ data: 'later' });
    assert.equal(client.askedFor('session.signal').length, 1);
  });
});

describe('Moderating', () => {
  test('removes a connection', async () => {
    const [ann, ben] = [await joined('a'), await joined('b')];
    await ann.session.forceDisconnect('b');
    await settled();
    assert.deepEqual([ben.types().pop(), ben.events.pop().reason], ['sessionDisconnected', 'forceDisconnected']);
    assert.equal(ann.events.pop().reason, 'forceDisconnected');
  });

  test('ends a stream, and its publisher gets the reason', async () => {
    const { ben, publisher, stream } = await watching();
    let reason = '';
    publisher.on('streamDestroyed', (event) => { reason = event.reason; });
    await ben.session.forceUnpublish(stream);
    await settled();
    assert.equal(reason, 'forceUnpublished');
  });

  test('mutes one stream, or all with exceptions', async () => {
    const { ann, ben, publisher, stream } = await watching();
    let muted = 0;
    publisher.on('muteForced', () => { muted += 1; });
    await ben.session.forceMuteStream(stream);
    await settled();
    assert.equal(muted, 1);
    assert.equal(stream.hasAudio, false);
    publisher.publishAudio(true);
    await ben.session.forceMuteAll([stream]);
    await settled();
    assert.equal(muted, 1);
    await ben.session.forceMuteAll();
    await settled();
    assert.equal(muted, 2);
    await ben.session.disableForceMute();
    await settled();
    assert.deepEqual(ann.events.filter(({ type }) => type === 'muteForced').map(({ active }) => active), [true, true, false]);
  });

  test('emits the start and the end of recordings, also those that started before it connected', async () => {
    room.archives = [{ archiveId: 'x', name: 'Meeting' }];
    const { session, client } = join('a');
    /** @type {any[]} */
    const events = [];
    for (const name of ['archiveStarted', 'archiveStopped']) {
      session.on(name, ({ type, id, name: title, consent }) => events.push([type, id, title, consent]));
    }
    assert.equal(session.isRecorded, false);
    session.connect('good');
    await settled();
    assert.deepEqual(events.splice(0), [['archiveStarted', 'x', 'Meeting', false]]);
    client.tell({ type: 'session.archiveStarted', sessionId: '1_room', archiveId: 'y', consent: true });
    client.tell({ type: 'session.archiveStarted', sessionId: '1_room', archiveId: 'y', consent: true });
    await settled();
    assert.deepEqual(events.splice(0), [['archiveStarted', 'y', '', true]]);
    room.losesConsents = true;
    await assert.rejects(session.acceptRecording(true), { code: 'rate_limited' });
    assert.equal(session.asksConsent, true, 'the question remains');
    room.losesConsents = false;
    await session.acceptRecording(true);
    assert.deepEqual([room.consents, session.asksConsent], [[true], false]);
    for (const archiveId of ['x', 'unknown', 'y']) client.tell({ type: 'session.archiveStopped', sessionId: '1_room', archiveId });
    await settled();
    assert.deepEqual(events, [['archiveStopped', 'x', 'Meeting', undefined], ['archiveStopped', 'y', '', undefined]]);
    assert.equal(session.isRecorded, false);
  });

  test('emits the start and the end of broadcasts, and asks for consent apart from recordings', async () => {
    room.broadcasts = [{ broadcastId: 'x' }];
    const { session, client } = join('a');
    /** @type {any[]} */
    const events = [];
    for (const name of ['broadcastStarted', 'broadcastStopped']) session.on(name, ({ type, id, consent }) => events.push([type, id, consent]));
    assert.equal(session.isBroadcast, false);
    session.connect('good');
    await settled();
    assert.deepEqual([events.splice(0), session.isBroadcast, session.asksBroadcastConsent], [[['broadcastStarted', 'x', false]], true, false]);
    for (let count = 0; count < 2; count += 1) client.tell({ type: 'session.broadcastStarted', sessionId: '1_room', broadcastId: 'y', consent: true });
    await settled();
    assert.deepEqual([events.splice(0), session.asksBroadcastConsent, session.asksConsent], [[['broadcastStarted', 'y', true]], true, false]);
    await session.acceptBroadcast(false);
    assert.deepEqual([room.broadcastConsents, room.consents, session.asksBroadcastConsent], [[false], [], false]);
    for (const broadcastId of ['x', 'unknown', 'y']) client.tell({ type: 'session.broadcastStopped', sessionId: '1_room', broadcastId });
    await settled();
    assert.deepEqual([events, session.isBroadcast], [[['broadcastStopped', 'x', undefined], ['broadcastStopped', 'y', undefined]], false]);
  });

  test('a moderator starts and stops recordings, and others are refused', async () => {
    const { session } = join('a');
    /** @type {any[]} */
    const events = [];
    session.on('archiveStarted', ({ id, name }) => events.push(['started', id, name]));
    session.on('archiveStopped', ({ id }) => events.push(['stopped', id]));
    session.connect('good');
    await settled();
    await session.startArchive({ name: 'Meeting', outputMode: 'individual' });
    await settled();
    const [[, id]] = events;
    assert.deepEqual(events.splice(0), [['started', id, 'Meeting']]);
    await session.stopArchive(id);
    await settled();
    assert.deepEqual(events, [['stopped', id]]);
    room.capabilities = { ...room.capabilities, forceDisconnect: false };
    await assert.rejects(session.startArchive(), { code: 'not_permitted' });
  });

  test('is rejected without permission, as a promise and in the callback', async () => {
    room.capabilities = { ...room.capabilities, forceDisconnect: false };
    const { session } = await joined('a');
    /** @type {any} */
    let reported;
    await session.forceDisconnect('b', (error) => { reported = error; }).catch((error) => {
      assert.deepEqual([error.name, error.code], ['OT_PERMISSION_DENIED', 1520]);
    });
    assert.equal(reported.code, 1520);
  });
});

describe('A session that loses its connection', () => {
  test('reports it, resumes, and checks its media', async () => {
    const { ann, ben } = await watching();
    ben.client.emit('reconnecting');
    ben.client.emit('connected', { resumed: true });
    assert.deepEqual(ben.types().slice(-2), ['sessionReconnecting', 'sessionReconnected']);
    assert.equal(ben.session.isConnected(), true);
    assert.equal(ann.session.isConnected(), true);
  });

  test('ends when the server has forgotten it, and nothing of it is left', async () => {
    const { ben, subscriber, target } = await watching();
    let reason = '';
    subscriber.on('destroyed', (event) => { reason = event.reason; });
    ben.client.emit('reconnecting');
    ben.client.emit('expired');
    assert.deepEqual(ben.types().slice(-2), ['sessionReconnecting', 'sessionDisconnected']);
    assert.equal(ben.events.pop().reason, 'networkDisconnected');
    assert.equal(reason, 'networkDisconnected');
    assert.deepEqual(target.children, []);
    assert.equal(FakePeerConnection.all.filter(({ connectionState }) => connectionState !== 'closed').length, 1);
    assert.equal(clock.pending, 0);
  });

  test('reports that media stopped and resumed', async () => {
    const { subscriber } = await watching();
    /** @type {string[]} */
    const reported = [];
    subscriber.on('connected disconnected', ({ type }) => reported.push(type));
    const [sending] = FakePeerConnection.all.filter(({ senders }) => senders.length > 0);
    const receiving = FakePeerConnection.all.find((one) => one !== sending);
    receiving?.become('disconnected');
    receiving?.become('connected');
    assert.deepEqual(reported, ['disconnected', 'connected']);
  });
});
