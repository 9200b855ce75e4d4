import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { Client } from '../../lib/signaling/client.js';
import { Calls } from '../../lib/people/calls.js';
import { People } from '../../lib/people/people.js';
import { CallRoom } from './call-room.mjs';
import { begin, camera, clock, device, page, quiet, ringing, room, shown, talking, watched } from './callers.mjs';
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

  test('no longer waits when the first has ended', async () => {
    const { ben, theirs: [theirs] } = await talking();
    ben.client.tell({ type: 'call.incoming', callId: 'w', person: { personId: 'cleo', name: 'Cleo', online: true }, video: true, waiting: true, expiresInMs: 1 });
    await quiet();
    const [, waiting] = ben.rung;
    theirs.call.end();
    assert.deepEqual([waiting.waiting, waiting.state], [false, 'incoming']);
  });

  test('announced twice rings once, and not again after declining', async () => {
    const { ben, theirs: [theirs], mine } = await ringing();
    const again = () => ben.client.tell(room.incoming(/** @type {any} */ (room.calls.get(String(mine.call.id)))));
    again();
    await quiet();
    assert.equal(ben.rung.length, 1);
    const { 'call.decline': decline } = CallRoom.prototype;
    room['call.decline'] = () => {};
    await theirs.call.decline();
    room['call.decline'] = decline;
    again();
    await quiet();
    assert.deepEqual([ben.rung.length, mine.call.outcome], [1, 'declined']);
  });
});

describe('Two who call each other', () => {
  /**
   * Ann calls Ben while his call rings on her device. The call with the smaller ID continues.
   * @param {boolean} hersGoesOn
   * @param {boolean} endFirst whether the notice of the end arrives before the acceptance
   */
  async function glare(hersGoesOn, endFirst) {
    const [ann, ben] = [device('ann'), device('ben')];
    const his = watched(ben.calls.start('ann', { publisher: camera() }));
    await quiet();
    const atHers = watched(ann.rung[0]);
    room['call.start'] = (from, { personId, video }) => {
      const call = { id: 'hers', caller: from, callee: personId, callees: [ben.client], video, with: new Map([[from, video]]), taken: null };
      room.calls.set('hers', call);
      queueMicrotask(() => {
        const theirs = /** @type {any} */ (room.calls.get(String(his.call.id)));
        const [goesOn, over] = hersGoesOn ? [call, theirs] : [theirs, call];
        goesOn.taken = goesOn === call ? ben.client : ann.client;
        const accepted = () => [ann, ben].forEach(({ client }) => client.tell(room.acceptedFor(goesOn, client)));
        const ended = () => {
          room.tellEnd(over, over.caller, 'merged', { into: goesOn.id });
          if (over === theirs) room.tellEnd(over, ann.client, 'merged', { into: goesOn.id });
        };
        for (const tell of endFirst ? [ended, accepted] : [accepted, ended]) tell();
      });
      return room.placed(call);
    };
    const hers = watched(ann.calls.start('ben', { publisher: camera() }));
    await quiet();
    return { ann, ben, his, hers, atHers };
  }

  for (const hersGoesOn of [true, false]) {
    for (const endFirst of [true, false]) {
      test(`are in one call, ${hersGoesOn ? 'the second' : 'the first'}, with ${endFirst ? 'the end' : 'the acceptance'} first`, async () => {
        const { ann, ben, his, hers, atHers } = await glare(hersGoesOn, endFirst);
        const id = hersGoesOn ? 'hers' : 'call-1';
        assert.deepEqual([his, hers].map(({ call }) => [call.state, call.id]), [['active', id], ['active', id]]);
        assert.deepEqual([atHers.call.outcome, atHers.call.waiting], ['merged', false]);
        assert.deepEqual([ann, ben].map(({ calls, rung }) => [calls.all.length, rung.length]), [[1, 1], [1, 0]]);
        for (const { names } of [his, hers]) assert.deepEqual(names(), ['stream', 'subscriber']);
        assert.deepEqual([...ann.told, ...ben.told], []);
        await hers.call.end();
        await quiet();
        assert.equal(his.call.outcome, 'hungUp');
      });
    }
  }
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

  test('a call keeps ringing', async () => {
    const { mine, theirs: [theirs] } = await ringing();
    room.stop();
    room.resume();
    await quiet();
    assert.deepEqual([mine.call.state, theirs.call.state], ['ringing', 'incoming']);
    await theirs.call.accept({ publisher: camera() });
    await quiet();
    assert.deepEqual([mine.call.state, theirs.call.state], ['active', 'active']);
  });

  test('an acceptance that it did not receive is sent again', async () => {
    const { ben, mine, theirs: [theirs] } = await ringing();
    const { 'call.accept': accept } = CallRoom.prototype;
    room['call.accept'] = () => { throw new ConfabError({ code: 'connection_restarted', message: 'Again.' }); };
    await theirs.call.accept({ publisher: camera() });
    room['call.accept'] = accept;
    room.stop();
    room.resume();
    await quiet();
    assert.deepEqual([mine.call.state, theirs.call.state, ben.client.askedFor('call.accept').length], ['active', 'active', 2]);
  });

  test('that has forgotten the call, the call is lost', async () => {
    const { mine, theirs: [theirs], annCamera } = await talking();
    room.stop();
    room.calls.clear();
    room.resume();
    await quiet();
    assert.deepEqual([mine.call.outcome, theirs.call.outcome, annCamera.isDestroyed], ['connectionLost', 'connectionLost', false]);
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

  test('a device that only rang does not take the call from the one that answered, and stops ringing', async () => {
    const { bens, theirs: [theirs, rang], mine } = await ringing({ devices: ['ben', 'ben.2'] });
    // The device's connection was down when the other device answered.
    const { tellEnd } = room;
    room.tellEnd = (call, client, reason) => { if (reason !== 'answeredElsewhere') tellEnd.call(room, call, client, reason); };
    await theirs.call.accept({ publisher: camera() });
    await quiet();
    room.stop();
    room.resume();
    await quiet();
    await quiet();
    assert.deepEqual(bens.map(({ client }) => client.askedFor('call.rejoin').length), [1, 0]);
    assert.deepEqual([mine, theirs].map(({ call }) => [call.state, call.partnerState]), [['active', 'connected'], ['active', 'connected']]);
    assert.deepEqual([rang.call.outcome, bens[1].calls.all.length], ['answeredElsewhere', 0]);
  });

  test('a call that rang, and was answered elsewhere or ended meanwhile, ends as in the call log', async () => {
    for (const [outcome, durationMs, told] of [['declined', undefined, 'declined'], ['hungUp', 5000, 'answeredElsewhere']]) {
      begin();
      const { mine, theirs: [theirs] } = await ringing();
      room.stop();
      room.calls.clear();
      room.logged = [{ callId: mine.call.id, outcome, durationMs }];
      room.resume();
      await quiet();
      assert.equal(theirs.call.outcome, told);
    }
  });

  test('a call that is accepted before it rang again is not ended here', async () => {
    const { theirs: [theirs], mine } = await ringing();
    room.stop();
    for (const client of room.clients) client.emit('connected', { resumed: false });
    theirs.call.accept({ publisher: camera() });
    await quiet();
    assert.deepEqual([mine.call.state, theirs.call.state], ['active', 'active']);
  });

  test('a call that another device answered meanwhile ends here as answered elsewhere', async () => {
    const { mine, theirs: [theirs] } = await talking();
    room.stop();
    room['call.rejoin'] = () => { throw new ConfabError({ code: 'elsewhere', message: 'On your other device.' }); };
    room.resume();
    await quiet();
    assert.deepEqual([mine, theirs].map(({ call }) => call.outcome), ['answeredElsewhere', 'answeredElsewhere']);
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
