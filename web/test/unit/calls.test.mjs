import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { OT } from '../../lib/ot.js';
import { Calls } from '../../lib/people/calls.js';
import { People } from '../../lib/people/people.js';
import { begin, camera, clock, device, element, page, quiet, rejection, ringing, room, shown, talking, watched } from './callers.mjs';
import { settled } from './fake-clock.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

beforeEach(begin);

describe('A call', () => {
  test('rings, is accepted, and both see each other', async () => {
    const { ann, ben, mine, theirs: [theirs], annCamera } = await talking();
    assert.deepEqual(mine.states, ['placing', 'ringing', 'joining', 'active']);
    assert.deepEqual(theirs.states, ['incoming', 'joining', 'active']);
    assert.deepEqual(mine.names(), ['stream', 'subscriber']);
    assert.deepEqual(theirs.names(), ['stream', 'subscriber']);
    for (const { target } of [ann, ben]) assert.match(shown(target).id, /^stream-/);
    assert.deepEqual([mine.call.person.name, theirs.call.person.name, mine.call.id], ['ben', 'ann', theirs.call.id]);
    assert.deepEqual([mine.call.devices, mine.call.since, mine.call.withVideo, mine.call.partnerState], [1, room.since, true, 'connected']);
    assert.equal(page.devices.asked.length, 2);
    assert.equal(annCamera.isDestroyed, false);
    await clock.advance(5000);
    assert.equal(mine.call.elapsedMs, 5000);
  });

  test('reports when it rings nowhere, and its deadline', async () => {
    const ann = device('ann');
    const { call } = watched(ann.calls.start('nobody', { video: true }));
    assert.deepEqual([call.state, call.id, call.person.personId], ['placing', null, 'nobody']);
    await quiet();
    assert.deepEqual([call.state, call.devices], ['ringing', 0]);
    assert.ok(Math.abs(Number(call.expiresAt) - Date.now() - 45_000) < 40_000);
  });

  test('without video sends none, and its camera can be turned on and off in the call', async () => {
    const { ann, ben, mine, theirs: [theirs], annCamera } = await talking({ video: false });
    assert.deepEqual([theirs.call.video, theirs.call.withVideo, mine.call.sendsVideo], [false, false, false]);
    const stream = () => [...room.session(`1_${mine.call.id}`).streams.values()].find(({ info }) => info.connectionId === 'ann')?.info;
    assert.deepEqual([stream()?.hasAudio, stream()?.hasVideo], [true, false]);
    await mine.call.setVideo(true);
    await quiet();
    assert.deepEqual([stream()?.hasVideo, theirs.call.withVideo, theirs.call.video, mine.call.sendsVideo], [true, true, false, true]);
    await mine.call.setVideo(false);
    await quiet();
    assert.deepEqual([stream()?.hasVideo, theirs.call.withVideo], [false, false]);
    assert.equal(ann.client.askedFor('call.update').length, 2);
    assert.equal(ben.client.askedFor('call.update').length, 0);
    assert.equal(annCamera.isDestroyed, false);
  });

  test('opens a camera for a publisher that has none', async () => {
    const { theirs: [theirs] } = await ringing();
    const publisher = camera({ videoSource: null });
    await theirs.call.accept({ video: false, publisher });
    await quiet();
    assert.deepEqual([publisher.getVideoSource().track, theirs.call.sendsVideo], [null, false]);
    await theirs.call.setVideo(true);
    assert.equal(publisher.getVideoSource().type, 'camera');
    page.devices.refuse = () => Object.assign(new Error('no'), { name: 'NotAllowedError' });
    await publisher.setVideoSource(null);
    assert.equal((await rejection(theirs.call.setVideo(true))).name, 'OT_USER_MEDIA_ACCESS_DENIED');
  });

  test('with video turned on while it rings reports that after acceptance', async () => {
    const { ann, mine, theirs: [theirs] } = await ringing({ video: false });
    await mine.call.setVideo(true);
    assert.equal(ann.client.askedFor('call.update').length, 0);
    await theirs.call.accept({ video: true });
    await quiet();
    assert.equal(theirs.call.withVideo, true);
  });

  test('can be received without a publisher', async () => {
    const { ben, theirs: [theirs], mine } = await ringing();
    await theirs.call.accept();
    await quiet();
    assert.deepEqual([mine.call.state, theirs.call.state], ['active', 'active']);
    assert.deepEqual([mine.names(), theirs.names()], [[], ['stream', 'subscriber']]);
    assert.match(shown(ben.target).id, /^stream-/);
  });

  test('takes the camera from the chat it was shown in, and leaves it free', async () => {
    const { theirs: [theirs], ben } = await ringing();
    const publisher = camera();
    const chat = OT.initSession('1', '1_chat', { client: ben.client, rtc: fakeRtc, clock });
    publisher.once('streamDestroyed', (event) => event.preventDefault());
    chat.connect('good');
    await quiet();
    chat.publish(publisher);
    await quiet();
    await theirs.call.accept({ publisher });
    await quiet();
    assert.deepEqual([publisher.session?.sessionId, room.session('1_chat').streams.size], [`1_${theirs.call.id}`, 0]);
    theirs.call.end();
    chat.publish(publisher);
    await quiet();
    assert.equal(publisher.session, chat);
    chat.unpublish(publisher);
    assert.equal(publisher.isDestroyed, true);
  });

  test('hands a stream to a program that inserts it itself', async () => {
    const ann = device('ann');
    const client = room.client('ben');
    const calls = new Calls(client, new People(client), { rtc: fakeRtc, clock });
    const target = element();
    calls.on('incoming', (call) => {
      /** @type {any} */ (call).on('stream', (/** @type {any} */ { subscribe }) => subscribe(target, { insertMode: 'append' }));
      /** @type {any} */ (call).accept();
    });
    ann.calls.start('ben', { publisher: camera() });
    await quiet();
    assert.equal(target.children[0].children[0].children[0].attributes['aria-label'], 'ann');
  });

  test('reports when the other is briefly disconnected', async () => {
    const { ann, mine } = await talking();
    ann.client.tell({ type: 'call.partner', callId: mine.call.id, state: 'reconnecting' });
    await settled();
    assert.equal(mine.call.partnerState, 'reconnecting');
    ann.client.tell({ type: 'call.partner', callId: mine.call.id, state: 'connected' });
    await settled();
    assert.equal(mine.call.partnerState, 'connected');
  });
});

describe('A call ends', () => {
  test('when one hangs up: audio and video at once, but the publishers remain', async () => {
    const { ann, ben, mine, theirs: [theirs], annCamera, benCamera } = await talking();
    await clock.advance(3000);
    const done = mine.call.end();
    assert.deepEqual([mine.call.state, mine.call.outcome, ann.target.children.length], ['ended', 'ended', 0]);
    await done;
    await quiet();
    assert.deepEqual(mine.ending(), { outcome: 'ended', durationMs: 3000 });
    assert.deepEqual(theirs.ending(), { outcome: 'hungUp', durationMs: 1234 });
    assert.deepEqual([ben.target.children.length, ann.calls.all, ben.calls.all], [0, [], []]);
    assert.deepEqual([annCamera, benCamera].map(({ isDestroyed, session }) => [isDestroyed, session]), [[false, null], [false, null]]);
    assert.deepEqual(FakePeerConnection.all.map(({ connectionState }) => connectionState), ['closed', 'closed']);
    assert.equal(clock.pending, 0);
    for (const { client, reported } of [ann, ben]) {
      assert.equal(client.askedFor('call.seen').length, 1);
      assert.deepEqual(reported, []);
    }
    assert.equal(mine.names().filter((name) => name === 'ended').length, 1);
  });

  test('when it is canceled before it had an id', async () => {
    const [ann, ben] = [device('ann'), device('ben')];
    const { call } = watched(ann.calls.start('ben'));
    call.end();
    assert.equal(call.outcome, 'cancelled');
    await quiet();
    assert.deepEqual([ann.calls.all, ben.rung[0].outcome], [[], 'cancelled']);
    assert.equal((await rejection(ben.rung[0].accept())).code, 'call_state');
    assert.equal(ann.client.askedFor('call.end').length, 1);
  });

  test('when it was canceled and accepted at once', async () => {
    const { ann, mine, theirs: [theirs] } = await ringing();
    const accepted = theirs.call.accept({ publisher: camera() });
    await Promise.resolve();
    room['call.cancel'] = () => { throw new ConfabError({ code: 'call_state', message: 'Accepted.' }); };
    await mine.call.cancel();
    await accepted;
    await quiet();
    assert.deepEqual([mine.call.outcome, theirs.call.outcome], ['cancelled', 'hungUp']);
    assert.deepEqual(ann.client.askedFor('session.join'), []);
  });

  test('as refused when the server rejects it', async () => {
    const ann = device('ann');
    room.startRefusal = new ConfabError({ code: 'call_not_allowed', message: 'Contacts only.' });
    const { call, ending } = watched(ann.calls.start('ben'));
    await quiet();
    assert.deepEqual([call.state, call.outcome, call.error?.code, ending().error.code], ['ended', 'refused', 'call_not_allowed', 'call_not_allowed']);
    room.startRefusal = null;
    ann.calls.start('ben');
    const second = watched(ann.calls.start('cleo'));
    await quiet();
    assert.equal(second.ending().error.code, 'call_state');
  });

  test('while disconnected: here at once, on the other end after reconnecting', async () => {
    const { ann, mine, theirs: [theirs] } = await talking();
    /** @type {(() => void)[]} */
    const waiting = [];
    room.travel = (run) => waiting.push(run);
    ann.client.state = 'reconnecting';
    mine.call.end();
    assert.deepEqual([mine.call.state, ann.target.children.length, theirs.call.state], ['ended', 0, 'active']);
    room.travel = (run) => queueMicrotask(run);
    waiting.forEach((run) => run());
    await quiet();
    assert.equal(theirs.call.outcome, 'hungUp');
  });

  test('missed without a device is reported once, and only to a listener', async () => {
    const { client, calls, reported } = device('ann');
    const missed = {
      type: 'call.ended', callId: 'old', reason: 'missed', direction: 'incoming', video: true, at: 5,
      person: { personId: 'ben', name: 'Ben', online: false },
    };
    client.tell(missed);
    client.tell(missed);
    await quiet();
    const { type, reason, ...rest } = missed;
    assert.deepEqual(reported, [{ ...rest, outcome: 'missed' }]);
    assert.equal(client.askedFor('call.seen').length, 2);
    calls.off('ended');
    client.tell({ ...missed, callId: 'older' });
    await quiet();
    assert.equal(client.askedFor('call.seen').length, 2);
  });
});

test('The log can be read, deleted and marked as seen', async () => {
  const { client, calls } = device('ann');
  const logged = { callId: 'c', direction: 'incoming', outcome: 'missed', person: { personId: 'ben', name: 'Ben', online: false }, video: true, at: 1, seen: false };
  Object.assign(room, { 'call.log': () => ({ type: 'call.log', calls: [logged], next: 'more' }), 'call.forget': () => ({}) });
  assert.deepEqual(await calls.log({ limit: 1 }), { calls: [logged], next: 'more' });
  await calls.forget('c');
  await calls.forget();
  await calls.seen('c');
  assert.deepEqual(client.asked, [
    { type: 'call.log', limit: 1 }, { type: 'call.forget', callId: 'c' }, { type: 'call.forget' }, { type: 'call.seen', callId: 'c' },
  ]);
});
