// Rooms after failures: of requests, of connections, of the server. Nobody stays without the others.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { settled } from './fake-clock.mjs';
import { refusal } from './meeting-server.mjs';
import { seeded } from './random.mjs';
import { allInside, begin, camera, clock, inside, seenBy, server, watch } from './visitors.mjs';

beforeEach(begin);

/** @param {any[]} people those who are in the room @param {string} [of] */
function assertAllSeeAll(people, of = '') {
  for (const one of people) {
    const others = people.filter((other) => other !== one).map(({ room }) => room.connectionId).sort();
    assert.deepEqual(seenBy(one), others, `${of}: ${one.id} sees ${seenBy(one)}`);
    assert.deepEqual([...one.room.people.keys()].sort(), [...others, one.room.connectionId].sort(), `${of}: ${one.id} lists`);
  }
}

describe('What fails is tried again', () => {
  test('a subscription', async () => {
    const ann = await inside('ann');
    let left = 3;
    const ben = await inside('ben');
    server.refuses = ({ type }, { id }) => (type === 'session.subscribe' && id === 'ben' && (left -= 1) >= 0 ? refusal('internal') : null);
    const eve = await inside('eve');
    assert.deepEqual(seenBy(ben), ['ann']);
    await clock.advance(5000);
    assertAllSeeAll([ann, ben, eve]);
    assert.deepEqual([ben.watched.of('subscriber').length, ben.watched.of('subscriberGone').length], [4, 3]);
    const streamId = ben.watched.of('subscriber')[0].subscriber.stream.streamId;
    const reported = ben.watched.of('error').map(({ stream, isFinal }) => [stream.streamId, isFinal]);
    assert.deepEqual(reported, [[streamId, false]], 'only the first failure is reported');
  });

  test('a subscription after the pause that the server asks for, and not after its stream ended', async () => {
    const ben = await inside('ben');
    server.refuses = ({ type }, { id }) => (type === 'session.subscribe' && id === 'ben' ? refusal('bandwidth_exceeded', { retryable: true, retryAfterMs: 60_000 }) : null);
    const ann = await inside('ann');
    await clock.advance(59_000);
    assert.equal(ben.client.askedFor('session.subscribe').length, 1);
    await clock.advance(2000);
    assert.equal(ben.client.askedFor('session.subscribe').length, 2);
    assert.deepEqual([ben.watched.of('error').map(({ error }) => error.reason), ben.watched.of('recovered').length], [['bandwidth_exceeded'], 0]);
    await ann.room.leave();
    await clock.advance(200_000);
    assert.deepEqual([ben.client.askedFor('session.subscribe').length, ben.watched.of('recovered').length], [2, 1]);
  });

  test('a subscription is not requested again if it is not permitted', async () => {
    const ben = await inside('ben');
    server.refuses = ({ type }) => (type === 'session.subscribe' ? refusal('not_permitted') : null);
    await inside('ann');
    await clock.advance(100_000);
    assert.equal(ben.client.askedFor('session.subscribe').length, 1);
    assert.deepEqual(ben.watched.of('error').map(({ error, isFinal }) => [error.reason, isFinal]), [['not_permitted', true]]);
  });

  test('publishing', async () => {
    const ann = await inside('ann');
    let left = 2;
    server.refuses = ({ type }) => (type === 'session.publish' && (left -= 1) >= 0 ? refusal('rate_limited', { retryable: true }) : null);
    const ben = await inside('ben');
    await clock.advance(5000);
    assertAllSeeAll([ann, ben]);
    assert.equal(ben.client.askedFor('session.publish').length, 3);
    const reported = ben.watched.events.filter(([name]) => name === 'error' || name === 'recovered');
    assert.deepEqual(
      reported.map(([name, { publisher, isFinal }]) => [name, publisher === ben.publisher, isFinal]), [['error', true, false], ['recovered', true, undefined]],
      'only the first failure is reported',
    );
  });

  test('publishing, until the publisher ends', async () => {
    const [, ben] = await allInside('ann', 'ben');
    server.refuses = ({ type }) => (type === 'session.publish' ? refusal('bandwidth_exceeded', { retryable: true }) : null);
    const screen = camera({ videoSource: 'screen' });
    ben.room.publish(screen);
    await clock.advance(5000);
    assert.deepEqual(ben.watched.of('error').map(({ error, isFinal, publisher }) => [error.reason, isFinal, publisher === screen]), [['bandwidth_exceeded', false, true]]);
    screen.destroy();
    assert.deepEqual(ben.watched.of('recovered').map(({ publisher }) => publisher === screen), [true]);
    const requests = ben.client.askedFor('session.publish').length;
    await clock.advance(100_000);
    assert.equal(ben.client.askedFor('session.publish').length, requests);
  });

  test('publishing is given up if it is not permitted', async () => {
    const [, ben] = await allInside('ann', 'ben');
    server.refuses = ({ type }) => (type === 'session.publish' ? refusal('not_permitted') : null);
    const screen = camera({ videoSource: 'screen' });
    ben.room.publish(screen);
    await clock.advance(20_000);
    assert.deepEqual(ben.watched.of('unpublished').map(({ publisher, reason }) => [publisher === screen, reason]), [[true, 'not_permitted']]);
    assert.deepEqual([screen.isDestroyed, ben.room.publishers], [false, [ben.publisher]]);
  });

  test('the session, if it ends and the room does not', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    const { sessionId } = /** @type {any} */ (server.rooms.get('tea'));
    server['session.leave'](ben.client, { sessionId }, 'forceDisconnected');
    ben.client.tell({ type: 'session.left', sessionId, reason: 'forceDisconnected' });
    await clock.advance(2000);
    assertAllSeeAll([ann, ben]);
    assert.deepEqual([ben.watched.names().filter((name) => name.startsWith('reconnect')), ben.client.askedFor('room.join').length], [['reconnecting', 'reconnected'], 1]);
  });

  test('the place in the room, if its session refuses it', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    const { sessionId } = /** @type {any} */ (server.rooms.get('tea'));
    let left = 1;
    server.refuses = ({ type }) => (type === 'session.join' && (left -= 1) >= 0 ? refusal('token_match_ended') : null);
    server['session.leave'](ben.client, { sessionId }, 'forceDisconnected');
    ben.client.tell({ type: 'session.left', sessionId, reason: 'forceDisconnected' });
    await clock.advance(5000);
    assertAllSeeAll([ann, ben]);
    assert.deepEqual([ben.client.askedFor('room.join').length, ben.room.isOver], [2, false]);
  });
});

describe('A connection', () => {
  test('that is resumed keeps the room and everything that happened in it', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    server.drop(ben.client);
    await ann.room.say('Are you there?');
    const eve = await inside('eve');
    server.resume(ben.client);
    await settled();
    assertAllSeeAll([ann, ben, eve]);
    assert.deepEqual(ben.room.chat.map(({ text }) => text), ['Are you there?']);
    assert.deepEqual(ben.watched.names().slice(0, 2), ['reconnecting', 'reconnected']);
  });

  test('that is lost joins the room again with the same publisher, name, hand and password', async () => {
    const ann = await inside('ann', { options: { password: 'tea' } });
    const ben = await inside('ben', { password: 'tea' });
    await ben.room.raiseHand(true);
    await ann.room.set({ password: 'milk' });
    server.drop(ann.client);
    server.expire(ann.client);
    await settled();
    await ben.room.say('Where is Ann?');
    assert.deepEqual(seenBy(ben), []);
    server.reconnect(ann.client);
    await clock.advance(2000);
    assertAllSeeAll([ann, ben]);
    const [, again] = ann.client.askedFor('room.join');
    assert.deepEqual([again.name, again.displayName, again.password], ['Tea', 'ann', 'milk']);
    assert.deepEqual([ann.publisher.isDestroyed, ann.watched.of('said').map(({ line }) => line.text)], [false, ['Where is Ann?']]);
    assert.deepEqual([ann.room.role, ben.room.role], ['guest', 'host']);
    assert.deepEqual(ann.watched.names().filter((name) => name.startsWith('re')), ['reconnecting', 'reconnected']);
    assert.equal(ann.rooms.room, ann.room);
    server.expire(ben.client);
    server.reconnect(ben.client);
    await clock.advance(2000);
    // The password changed while Ben was in the room, and only Ann knows it.
    assert.deepEqual(ben.watched.of('ended').map(({ reason }) => reason), ['room_password']);
  });

  test('that is lost forgets the files that were removed meanwhile, and keeps the messages', async () => {
    const [, ben] = await allInside('ann', 'ben');
    const place = /** @type {any} */ (server.rooms.get('tea'));
    const line = (/** @type {string} */ fileId, /** @type {number} */ at) => ({ connectionId: 'ann', displayName: 'ann', text: `${fileId}.txt`, at, file: { fileId, size: 3 } });
    for (const one of [line('f1', 1), line('f2', 2)]) ben.client.tell({ type: 'room.said', ...one });
    ben.client.tell({ type: 'room.said', connectionId: 'ann', displayName: 'ann', text: 'Hello', at: 3 });
    await settled();
    server.expire(ben.client);
    place.chat = [line('f2', 2)];
    server.reconnect(ben.client);
    await clock.advance(2000);
    assert.deepEqual(ben.watched.of('fileRemoved'), [{ fileId: 'f1' }]);
    assert.deepEqual(ben.room.chat.map(({ text }) => text), ['f2.txt', 'Hello']);
  });

  test('that is lost restores a raised hand', async () => {
    const [ann, ben] = await allInside('ann', 'ben');
    await ben.room.raiseHand(true);
    server.expire(ben.client);
    server.reconnect(ben.client);
    await clock.advance(2000);
    assert.equal(typeof ann.room.people.get('ben.1')?.handAt, 'number');
  });
});

describe('After a restart of the server', () => {
  test('everyone is in the room again, which is as it was but not locked', async () => {
    const ann = await inside('ann', { options: { password: 'tea', capacity: 5 } });
    const ben = await inside('ben', { password: 'tea' });
    const eve = await inside('eve', { password: 'tea' });
    await ann.room.set({ locked: true });
    await ann.room.say('Before');
    server.restart();
    for (const { client } of [ben, eve, ann]) server.reconnect(client);
    await clock.advance(3000);
    assertAllSeeAll([ann, ben, eve]);
    // Who was host joins first.
    assert.deepEqual([ann.room.role, ben.room.role], ['host', 'guest']);
    const { options, password } = /** @type {any} */ (server.rooms.get('tea'));
    assert.deepEqual([password, options.capacity, options.locked], ['tea', 5, false]);
    assert.deepEqual(ben.room.chat.map(({ text }) => text), ['Before']);
  });

  test('a person whose connection is lost once more, before the answer to joining again, joins on the next one', async () => {
    const ann = await inside('ann');
    const { travel } = server;
    server.restart();
    // A node of a cluster does not answer while it waits for another node to give up the room, and then closes the connection.
    server.travel = () => {};
    server.reconnect(ann.client);
    await clock.advance(0);
    assert.equal(ann.client.asked.at(-1).type, 'room.join');
    server.travel = travel;
    // As with a welcome that does not resume: the old connection ends and the new one begins in the same turn.
    server.expire(ann.client);
    server.reconnect(ann.client);
    await clock.advance(3000);
    assertAllSeeAll([ann]);
    assert.equal(ann.room.connectionId, ann.client.id);
  });
});

test('Random lives of a room end with everyone seeing everyone', async () => {
  for (let seed = 1; seed <= 3; seed += 1) {
    begin();
    const random = seeded(seed);
    const pick = (/** @type {any[]} */ list) => list[Math.floor(random() * list.length)];
    /** @type {any[]} */
    const people = await allInside('a', 'b', 'c', 'd');
    server.refuses = () => (random() < 0.05 ? refusal('rate_limited', { retryable: true }) : null);
    for (let step = 0; step < 40; step += 1) {
      const one = pick(people);
      const choice = random();
      const { client } = one;
      if (choice < 0.2 && client.isUp) server.drop(client);
      else if (choice < 0.4 && !client.isUp && client.epoch === one.resumable) server.resume(client);
      else if (choice < 0.5) {
        server.expire(client);
        one.resumable = -1;
      } else if (choice < 0.75 && one.resumable === -1) {
        server.reconnect(client);
        one.resumable = client.epoch;
      } else if (choice < 0.85) {
        one.room.unpublish(one.publisher);
        await settled();
        one.room.publish(one.publisher);
      } else if (choice < 0.88) {
        server.restart();
        for (const other of people) other.resumable = -1;
      } else await clock.advance(random() * 1500);
      for (let ticks = Math.floor(random() * 30); ticks > 0; ticks -= 1) await Promise.resolve();
      one.resumable ??= client.epoch;
    }
    server.refuses = () => null;
    for (const one of people) {
      if (one.client.isUp) continue;
      if (one.resumable === -1) server.reconnect(one.client);
      else server.resume(one.client);
    }
    await clock.advance(10_000);
    for (const { id, room, watched } of people) assert.equal(room.isOver, false, `seed ${seed}: ${id} is out: ${JSON.stringify(watched.of('ended'))}`);
    assertAllSeeAll(people, `seed ${seed}`);
  }
});

test('Repeated leaving and joining again in random order', async () => {
  for (let seed = 1; seed <= 6; seed += 1) {
    begin();
    const random = seeded(seed);
    const people = await allInside('a', 'b', 'c', 'd', 'e');
    for (let round = 0; round < 4; round += 1) {
      const order = [...people].sort(() => random() - 0.5);
      await Promise.all(order.map(async (one) => {
        one.room.leave();
        if (random() < 0.5) await settled();
        one.room = await one.rooms.join({ name: 'Tea', displayName: one.id });
        one.watched = watch(one.room);
        one.room.publish(one.publisher);
      }));
      await clock.advance(100);
      assertAllSeeAll(people, `seed ${seed}, round ${round}`);
    }
  }
});
