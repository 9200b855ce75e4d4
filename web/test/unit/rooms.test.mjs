// Joining a room, its people, chat and moderation.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { settled } from './fake-clock.mjs';
import { refusal } from './meeting-server.mjs';
import { allInside, begin, camera, clock, inside, seenBy, server, visitor, watch } from './visitors.mjs';

beforeEach(begin);

/** @param {Promise<unknown>} promise @returns {Promise<any>} */
const rejection = (promise) => promise.then(() => assert.fail('it was not rejected'), (error) => error);
const idsOf = (/** @type {any} */ room) => [...room.people.keys()];

describe('Joining a room', () => {
  test('resolves with its people, options and a connected session', async () => {
    const ann = await inside('ann', { options: { capacity: 5 } });
    const ben = await inside('ben');
    assert.deepEqual([ann.room.name, ann.room.role, ben.room.role, ben.room.options.capacity], ['Tea', 'host', 'guest', 5]);
    assert.deepEqual([idsOf(ann.room), idsOf(ben.room)], [['ann', 'ben'], ['ann', 'ben']]);
    assert.deepEqual([ben.room.connectionId, ben.room.me?.displayName, ben.room.session?.isConnected()], ['ben', 'ben', true]);
    assert.equal(ben.rooms.room, ben.room);
    assert.deepEqual([seenBy(ann), seenBy(ben)], [['ben'], ['ann']]);
    assert.deepEqual(ann.watched.names(), ['person', 'subscriber']);
  });

  test('gets a name from the server without one', async () => {
    const { rooms } = visitor('ann');
    const room = await rooms.join({ displayName: '' });
    assert.deepEqual([room.name, room.me?.displayName], ['abc-defg-hij', 'Quiet Fox']);
  });

  test('rejects with the reason of the server', async () => {
    const ann = await inside('ann', { options: { capacity: 1, password: 'tea' } });
    const { rooms, client } = visitor('ben');
    assert.equal((await rejection(rooms.join({ name: 'tea', password: 'milk' }))).code, 'room_password');
    assert.equal((await rejection(rooms.join({ name: 'tea', password: 'tea' }))).code, 'room_full');
    await ann.room.set({ locked: true, capacity: 9 });
    assert.equal((await rejection(rooms.join({ name: 'tea', password: 'tea' }))).code, 'room_locked');
    assert.deepEqual([rooms.room, clock.pending, client.askedFor('room.join').length], [null, 0, 3]);
  });

  test('rejects if the session cannot be joined, and gives the place up', async () => {
    server.refuses = (/** @type {any} */ { type }) => (type === 'session.join' ? refusal('session_full') : null);
    const { rooms, client } = visitor('ann');
    assert.equal((await rejection(rooms.join({ name: 'Tea' }))).code, 'session_full');
    await settled();
    assert.deepEqual([client.askedFor('room.leave').length, rooms.room, server.rooms.get('tea')?.people.length], [1, null, 0]);
  });

  test('waits while the server is too busy for the session', async () => {
    let busy = 2;
    server.refuses = (/** @type {any} */ { type }) => (type === 'session.join' && (busy -= 1) >= 0 ? refusal('rate_limited', { retryable: true, retryAfterMs: 900 }) : null);
    const { rooms } = visitor('ann');
    const joining = rooms.join({ name: 'Tea' });
    await clock.advance(2000);
    assert.equal((await joining).session?.isConnected(), true);
  });

  test('of two people at once leaves both in the room', async () => {
    const [ann, ben] = [visitor('ann'), visitor('ben')];
    const [first, second] = await Promise.all([ann.rooms.join({ name: 'Tea' }), ben.rooms.join({ name: 'tea' })]);
    first.publish(camera());
    second.publish(camera());
    await settled();
    assert.deepEqual([seenBy({ room: first }), seenBy({ room: second })], [['ben'], ['ann']]);
  });
});

describe('The lobby', () => {
  /** A person who waits for a room of Ann's. */
  async function knocking() {
    const ann = await inside('ann', { options: { lobby: true } });
    const ben = visitor('ben');
    let waited = 0;
    const joining = ben.rooms.join({ name: 'Tea', displayName: 'Ben' }, { onWaiting: () => { waited += 1; } });
    joining.catch(() => {});
    await settled();
    assert.equal(waited, 1);
    return { ann, ben, joining };
  }

  test('is reported to hosts, who admit', async () => {
    const { ann, joining } = await knocking();
    assert.deepEqual([...ann.room.knocks.values()], [{ connectionId: 'ben', displayName: 'Ben' }]);
    await ann.room.admit('ben');
    const room = await joining;
    assert.deepEqual([room.role, idsOf(room), ann.room.knocks.size], ['guest', ['ann', 'ben'], 0]);
    assert.deepEqual(ann.watched.of('knock').map(({ waiting }) => waiting), [true, false]);
  });

  test('is reported to a person who becomes host, and no longer to a guest', async () => {
    const { ann } = await knocking();
    const eve = visitor('eve');
    const joining = eve.rooms.join({ name: 'Tea' });
    await settled();
    await ann.room.admit('eve');
    const room = await joining;
    assert.equal(room.knocks.size, 0);
    await ann.room.setRole('eve', 'host');
    server.tellKnock(/** @type {any} */ (server.rooms.get('tea')), { connectionId: 'ben', displayName: 'Ben' }, true);
    await settled();
    assert.deepEqual([room.role, [...room.knocks.keys()]], ['host', ['ben']]);
    await room.setRole('ann', 'guest');
    await settled();
    assert.deepEqual([ann.room.role, ann.room.knocks.size, ann.watched.of('role')], ['guest', 0, [{ role: 'guest' }]]);
  });
});

describe('In a room', () => {
  test('people come, drop, return and leave', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    server.drop(ben.client);
    await settled();
    assert.equal(ann.room.people.get('ben')?.state, 'reconnecting');
    server.resume(ben.client);
    await settled();
    await ben.room.leave();
    await settled();
    assert.deepEqual(ann.watched.of('person').map(({ person }) => person.state), ['connected', 'reconnecting', 'connected', 'left']);
    assert.deepEqual([idsOf(ann.room), seenBy(ann)], [['ann'], []]);
    assert.deepEqual(ben.watched.names().filter((name) => name.startsWith('re') || name === 'ended'), ['reconnecting', 'reconnected', 'ended']);
    assert.deepEqual([ben.publisher.isDestroyed, ben.room.isOver, ben.rooms.room], [false, true, null]);
  });

  test('hands, reactions, messages and options are reported', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    await ben.room.raiseHand(true);
    await ben.room.react('👏');
    await ben.room.say('Hello');
    await ann.room.set({ chat: false });
    await settled();
    assert.equal(typeof ann.room.people.get('ben')?.handAt, 'number');
    assert.deepEqual(ann.watched.of('reacted'), [{ connectionId: 'ben', reaction: '👏' }]);
    assert.deepEqual(ann.watched.of('said').map(({ line }) => [line.displayName, line.text]), [['ben', 'Hello']]);
    assert.deepEqual([ben.room.options.chat, ben.watched.of('changed').length], [false, 1]);
    await ben.room.raiseHand(false);
    await settled();
    assert.equal(ann.room.people.get('ben')?.handAt, undefined);
    const eve = await inside('eve');
    assert.deepEqual(eve.room.chat.map(({ text }) => text), ['Hello']);
  });

  test('a host records the room and stops all its recordings, if the server permits it', async () => {
    server.moderatorArchives = 'individual';
    const [ann, ben] = await allInside('ann', 'ben');
    assert.equal(ann.room.hostsMayRecord, true);
    await ann.room.startRecording();
    await settled();
    assert.deepEqual(ann.client.askedFor('session.startArchive').map((/** @type {any} */ message) => message.outputMode), ['individual'], 'the server cannot compose');
    server.broadcast(ann.room.session?.sessionId ?? '', { type: 'session.archiveStarted', archiveId: 'of-an-application' });
    await settled();
    assert.deepEqual([ann, ben].map(({ room }) => room.recording.isRecorded), [true, true]);
    await ann.room.stopRecording();
    await settled();
    assert.equal(ann.client.askedFor('session.stopArchive').length, 2);
    assert.deepEqual([ann, ben].map(({ room }) => room.recording.isRecorded), [false, false]);
    server.moderatorArchives = undefined;
    const cat = await inside('cat');
    assert.equal(cat.room.hostsMayRecord, false);
  });

  test('a room says that it is being broadcast, and whether it asks for consent', async () => {
    const ann = await inside('ann');
    /** @type {any[]} */
    const news = [];
    ann.room.on({ broadcast: (/** @type {any} */ { isBroadcast, asks }) => news.push([isBroadcast, asks]) });
    const sessionId = ann.room.session?.sessionId ?? '';
    server.broadcast(sessionId, { type: 'session.broadcastStarted', broadcastId: 'x', consent: true });
    await settled();
    server.losesConsents = true;
    assert.equal((await rejection(ann.room.acceptBroadcast(true))).code, 'rate_limited');
    server.losesConsents = false;
    await ann.room.acceptBroadcast(true);
    assert.deepEqual([ann.room.broadcast, server.broadcastConsents], [{ isBroadcast: true, asks: false }, [true]]);
    server.broadcast(sessionId, { type: 'session.broadcastStopped', broadcastId: 'x' });
    await settled();
    assert.deepEqual(news, [[true, true], [true, true], [false, false]], 'the question remains after an answer that was lost');
  });

  test('a file is announced with a safe name, and sent with the secret of its upload', async () => {
    const sent = /** @type {any[]} */ ([]);
    const sendFile = async (/** @type {any} */ url, /** @type {any} */ { secret }) => { sent.push([url, secret]); };
    const ann = await inside('ann', {}, { sendFile });
    ann.client.urlOf = (/** @type {string} */ path) => `https://here${path}`;
    await ann.room.files.send(new File(['tea'], '../a\u202eb.txt'));
    assert.deepEqual([server.fileNames, sent], [['_a_b.txt'], [['https://here/v1/rooms/r/files/f1', 's1']]]);
    assert.equal((await rejection(ann.room.files.send(new File(['x'.repeat(1001)], 'a')))).code, 'message_too_large');
    assert.equal((await rejection(ann.room.files.send(new File([], 'a')))).code, 'file_unreadable');
    assert.deepEqual([ann.room.files.maxSize, sent.length], [1000, 1]);
  });

  test('an upload that is canceled before the server has answered ends at once, and is given back', async () => {
    const sent = /** @type {any[]} */ ([]);
    const ann = await inside('ann', {}, { sendFile: async (/** @type {string} */ url) => { sent.push(url); } });
    const upload = new AbortController();
    const sending = rejection(ann.room.files.send(new File(['tea'], 'a.txt'), { signal: upload.signal }));
    upload.abort();
    assert.equal((await sending).code, 'cancelled');
    await settled();
    assert.deepEqual([server.fileNames, ann.watched.of('fileRemoved'), sent], [['a.txt'], [{ fileId: 'f1' }], []]);
    assert.equal((await rejection(ann.room.files.send(new File(['tea'], 'b.txt'), { signal: upload.signal }))).code, 'cancelled');
    assert.deepEqual(server.fileNames, ['a.txt'], 'nothing is asked for an upload that was canceled before');
  });

  test('the line of a removed file leaves the chat', async () => {
    const ann = await inside('ann');
    server.rooms.get('tea')?.people[0].client.tell({
      type: 'room.said', connectionId: 'ann', displayName: 'ann', text: 'a.txt', at: 1, file: { fileId: 'f1', size: 3 },
    });
    await settled();
    assert.deepEqual(ann.room.chat.map(({ file }) => file?.fileId), ['f1']);
    await ann.room.files.remove('f1');
    await settled();
    assert.deepEqual([ann.room.chat, ann.watched.of('fileRemoved')], [[], [{ fileId: 'f1' }]]);
  });

  test('a host mutes everyone else, who may unmute', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    await ann.room.mute();
    await settled();
    const hasAudio = () => [...server.session(/** @type {any} */ (server.rooms.get('tea')).sessionId).streams.values()].map(({ info }) => info.hasAudio);
    assert.deepEqual([hasAudio(), ben.watched.of('muted').length, ann.watched.of('muted').length], [[true, false], 1, 0]);
    ben.publisher.publishAudio(true);
    await settled();
    assert.deepEqual(hasAudio(), [true, true]);
  });

  test('a host stops a screen share, which ends for good; the camera continues', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    const screen = camera({ videoSource: 'screen' });
    ben.room.publish(screen);
    await settled();
    assert.equal(seenBy(ann).length, 2);
    await ann.room.stopShare('ben');
    await settled();
    assert.deepEqual([screen.isDestroyed, ben.publisher.isDestroyed, seenBy(ann)], [true, false, ['ben']]);
    assert.deepEqual(ben.watched.of('unpublished').map(({ publisher, reason }) => [publisher === screen, reason]), [[true, 'forceUnpublished']]);
    assert.deepEqual(ben.room.publishers, [ben.publisher]);
  });

  test('a camera that a moderator unpublishes keeps its preview', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    await ann.room.session?.forceUnpublish(ben.publisher.stream?.streamId ?? '');
    await settled();
    assert.deepEqual([ben.publisher.isDestroyed, ben.room.publishers, seenBy(ann)], [false, [], []]);
    ben.room.publish(ben.publisher);
    await settled();
    assert.deepEqual(seenBy(ann), ['ben']);
  });

  test('unpublishing keeps the publisher', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    ben.room.unpublish(ben.publisher);
    await settled();
    assert.deepEqual([ben.publisher.isDestroyed, seenBy(ann), ann.watched.names().includes('subscriberGone')], [false, [], true]);
    ben.room.publish(ben.publisher);
    await settled();
    assert.deepEqual(seenBy(ann), ['ben']);
  });

  test('removing and banning end it for that person', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    await ann.room.remove('ben');
    await settled();
    assert.deepEqual([ben.watched.of('ended'), ben.room.isOver, idsOf(ann.room), ben.publisher.isDestroyed], [[{ reason: 'removed' }], true, ['ann'], false]);
    const again = await ben.rooms.join({ name: 'Tea' });
    const watched = watch(again);
    await ann.room.remove('ben', { ban: true });
    await clock.advance(5000);
    assert.deepEqual(watched.of('ended'), [{ reason: 'banned' }]);
    assert.equal((await rejection(ben.rooms.join({ name: 'Tea' }))).code, 'room_banned');
    assert.equal((await rejection(again.say('?'))).code, 'not_joined');
    assert.equal(clock.pending, 0);
  });
});
