import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { Client } from '../../lib/signaling/client.js';
import { Calls } from '../../lib/people/calls.js';
import { People } from '../../lib/people/people.js';
import { begin, camera, clock, device, page, quiet, room, shown, talking, watched } from './callers.mjs';
import { settled } from './fake-clock.mjs';
import { fakeRtc } from './fake-rtc.mjs';
import { FakeServer } from './fake-server.mjs';

beforeEach(begin);

describe('A second call', () => {
  test('waits, and accepting it ends the first', async () => {
    const { ann, ben, mine, theirs: [theirs], benCamera } = await talking();
    const cleo = device('cleo');
    const hers = watched(cleo.calls.start('ben', { publisher: camera() }));
    room.incoming = ((incoming) => (/** @type {any} */ call) => incoming.call(room, call, true))(room.incoming);
    await quiet();
    const waiting = watched(ben.rung[1]);
    assert.deepEqual([waiting.call.waiting, theirs.call.state], [true, 'active']);
    await waiting.call.accept({ publisher: benCamera });
    await quiet();
    assert.deepEqual([theirs.call.outcome, waiting.call.state, hers.call.state], ['ended', 'active', 'active']);
    assert.equal(waiting.call.waiting, false);
    assert.deepEqual([benCamera.isDestroyed, benCamera.session?.sessionId], [false, `1_${waiting.call.id}`]);
    assert.deepEqual(waiting.names(), ['stream', 'subscriber']);
    room.over(ben.client, String(mine.call.id), 'hungUp', 'cancelled', 'ended');
    await quiet();
    assert.deepEqual([mine.call.outcome, theirs.names().filter((name) => name === 'ended').length, ann.calls.all.length], ['hungUp', 1, 0]);
  });
});

describe('After a restart of the server', () => {
  test('a call continues: joined again, with the same camera and new video', async () => {
    const { ann, ben, mine, theirs: [theirs], annCamera } = await talking();
    const old = shown(ann.target).id;
    await clock.advance(2000);
    room.stop();
    assert.deepEqual([mine.call.state, mine.call.partnerState, ann.target.children.length], ['active', 'reconnecting', 0]);
    room.resume();
    await quiet();
    await quiet();
    assert.deepEqual([mine, theirs].map(({ call }) => [call.state, call.partnerState]), [['active', 'connected'], ['active', 'connected']]);
    for (const { target } of [ann, ben]) assert.equal(target.children.length, 1);
    assert.notEqual(shown(ann.target).id, old);
    assert.deepEqual(mine.names(), ['stream', 'subscriber', 'stream', 'subscriber']);
    assert.deepEqual([page.devices.asked.length, annCamera.isDestroyed], [2, false]);
    assert.equal(ann.client.askedFor('call.rejoin').length, 1);
    await clock.advance(1000);
    assert.equal(mine.call.elapsedMs, 3000);
  });

  test('gets requests about calls only after presence.appear', async () => {
    const server = new FakeServer();
    const client = new Client({ url: 'ws://test/v1/socket', WebSocket: server.WebSocket, clock, identity: 'a_me', page: new EventTarget() });
    const people = new People(client);
    const calls = new Calls(client, people, { rtc: fakeRtc, clock });
    const ben = { personId: 'ben', name: 'Ben', online: true };
    server.answers = {
      'presence.appear': () => ({
        type: 'presence.self', personId: 'me', name: 'Ada', visible: true, doNotDisturb: false, ringable: 'everyone', hasPosition: false,
      }),
      'call.start': () => ({ type: 'call.placed', callId: 'c', person: ben, video: true, expiresInMs: 45_000 }),
      'call.decline': () => null,
      'call.rejoin': () => server.answers['call.start']({}),
      'call.log': () => ({ type: 'call.log', calls: [{ callId: 'd', direction: 'incoming', outcome: 'missed', person: ben, video: true, at: 1, seen: false }] }),
    };
    await people.appear();
    const mine = calls.start('ben');
    await settled();
    server.send({ type: 'call.incoming', callId: 'd', person: ben, video: true, waiting: true, expiresInMs: 45_000 });
    server.send({ type: 'call.incoming', callId: 'e', person: ben, video: true, waiting: true, expiresInMs: 45_000 });
    const [, theirs, declined] = calls.all.length === 3 ? [mine, ...calls.all.filter((call) => call !== mine)] : assert.fail('two ring');
    declined.decline();
    await settled();
    server.secrets += 1;
    server.socket.drop();
    await clock.advance(5000);
    const after = server.heard.slice(server.heard.indexOf(server.heardOf('hello')[1]) + 1).filter(({ seq }) => seq !== undefined);
    assert.deepEqual(after.map(({ type, callId }) => [type, callId]), [
      ['presence.appear', undefined], ['call.rejoin', 'c'], ['call.log', undefined], ['call.decline', 'e'],
    ]);
    assert.deepEqual([mine.state, mine.id, theirs.outcome], ['placing', 'c', 'missed']);
  });

  test('a call that was still being placed is rejected', async () => {
    const ann = device('ann');
    room.startRefusal = new ConfabError({ code: 'connection_restarted', message: 'Again.', retryable: true });
    const { call } = watched(ann.calls.start('ben'));
    room.stop();
    await quiet();
    assert.deepEqual([call.outcome, call.error?.retryable], ['refused', true]);
  });
});

describe('Media through the server', () => {
  test('is opened while it rings, and closed after the last call', async () => {
    room.mediaMode = 'routed';
    const ann = device('ann');
    ann.client.welcome = { media: { roulette: 'routed' } };
    const { call } = watched(ann.calls.start('ben', { publisher: camera() }));
    await quiet();
    assert.equal(ann.client.askedFor('media.offer').length, 2);
    call.cancel();
    await quiet();
    assert.equal(ann.client.askedFor('media.close').length, 2);
    const other = watched(ann.calls.start('ben', { publisher: camera() }));
    await quiet();
    ann.client.media.attach(/** @type {any} */ ({}));
    other.call.cancel();
    await quiet();
    assert.equal(ann.client.askedFor('media.close').length, 2);
  });
});
