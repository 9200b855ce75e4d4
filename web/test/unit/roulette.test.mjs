import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { OT } from '../../lib/ot.js';
import { Roulette } from '../../lib/roulette/roulette.js';
import { sourceOf } from '../../lib/session/publisher.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeElement, installPage } from './fake-page.mjs';
import { FakeRoom } from './fake-room.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

/** A room whose clients may also search. The test decides who is matched. */
class Arena extends FakeRoom {
  /** @type {Record<string, (from: any, message: any) => any>} */
  verbs = {};
  /** @type {any[]} */
  log = [];

  'roulette.start' = () => ({ type: 'roulette.waiting' });
  'roulette.next' = (/** @type {any} */ from, /** @type {any} */ message) => this.verbs.next?.(from, message) ?? { type: 'roulette.waiting' };
  'roulette.count' = () => ({ type: 'roulette.count', online: 5, waiting: 2 });

  /** @param {any} client @param {string} matchId @param {object} [more] */
  match(client, matchId, more = {}) {
    const admission = { sessionId: `1_${matchId}`, token: 'good' };
    client.tell({
      type: 'roulette.matched', matchId, mode: 'video', publish: admission, subscribe: admission,
      partner: { name: 'Ben', interests: ['chess'] }, textChat: true, ...more,
    });
  }

  /** @param {any} client @param {string} matchId @param {string} reason */
  end(client, matchId, reason) {
    client.tell({ type: 'session.left', sessionId: `1_${matchId}`, reason: 'matchEnded' });
    client.tell({ type: 'roulette.ended', matchId, reason });
    if (reason !== 'stopped' && reason !== 'banned') client.tell({ type: 'roulette.waiting' });
    this['session.leave'](client, { sessionId: `1_${matchId}` });
  }
}

/** @type {ReturnType<typeof installPage>} */
let page;
/** @type {Arena} */
let arena;
/** @type {FakeClock} */
let clock;

beforeEach(() => {
  page = installPage();
  arena = new Arena();
  clock = new FakeClock();
  FakePeerConnection.all = [];
});

/** @param {string} id */
function visitor(id) {
  const client = arena.client(id);
  const target = /** @type {any} */ (new FakeElement('div'));
  const roulette = new Roulette(client, { rtc: fakeRtc, clock, subscriberTarget: target, subscriberOptions: { insertMode: 'append' } });
  /** @type {any[]} */
  const events = [];
  for (const name of ['waiting', 'matched', 'partner', 'ended', 'chat', 'typing', 'subscriber', 'noStream', 'recovered', 'error']) {
    roulette.on(name, (event) => events.push([name, event]));
  }
  return { client, roulette, target, events, names: () => events.map(([name]) => name) };
}

/** Two matched clients. */
async function pair() {
  const [ann, ben] = [visitor('a'), visitor('b')];
  const cameras = [ann, ben].map(({ roulette }) => {
    const publisher = OT.initPublisher(/** @type {any} */ (new FakeElement('div')), { insertMode: 'append' });
    roulette.usePublisher(publisher);
    roulette.start({ mode: 'video' });
    return publisher;
  });
  await settled();
  arena.match(ann.client, 'm1');
  arena.match(ben.client, 'm1');
  await settled();
  await settled();
  return { ann, ben, cameras };
}

/** @param {Promise<unknown>} promise @returns {Promise<any>} the rejection reason */
const rejection = (promise) => promise.then(() => assert.fail('it was not rejected'), (error) => error);

describe('Samples of the camera', () => {
  test('are taken and sent only if the application says that the person agreed', async () => {
    for (const allowsSamples of [undefined, () => false, () => true]) {
      const client = arena.client(`with ${allowsSamples}`);
      client.welcome = { ...client.welcome, sampling: { intervalMs: 10_000, width: 320, maxBytes: 1000 } };
      client.urlOf = (/** @type {string} */ path) => `https://chat.example.org${path}`;
      /** @type {any[]} */
      const sent = [];
      const roulette = new Roulette(client, {
        rtc: fakeRtc, clock, subscriberTarget: /** @type {any} */ (new FakeElement('div')), subscriberOptions: { insertMode: 'append' },
        sendSample: async (...given) => { sent.push(given); }, ...(allowsSamples && { allowsSamples }),
      });
      let taken = 0;
      const publisher = OT.initPublisher(/** @type {any} */ (new FakeElement('div')), { insertMode: 'append' });
      sourceOf(publisher).frame = async () => {
        taken += 1;
        return new Blob(['image']);
      };
      roulette.usePublisher(publisher);
      roulette.start({ mode: 'video' });
      await settled();
      arena.match(client, 'm1');
      await settled();
      await clock.advance(1000);
      await settled();
      const expected = allowsSamples?.() ? 1 : 0;
      assert.deepEqual([taken, sent.length], [expected, expected]);
      if (expected) assert.deepEqual(sent[0].slice(0, 2), ['https://chat.example.org/v1/roulette/sample', 'good']);
    }
  });
});

describe('Two strangers who meet', () => {
  test('see each other in one session', async () => {
    const { ann, ben } = await pair();
    await clock.advance(10_000);
    for (const { names, target, roulette, client } of [ann, ben]) {
      assert.deepEqual(names(), ['waiting', 'matched', 'subscriber']);
      assert.equal(roulette.state, 'matched');
      assert.equal(client.askedFor('session.join').length, 1);
      const [video] = target.children[0].children[0].children;
      assert.match(video.srcObject.id, /^stream-/);
      assert.equal(video.attributes['aria-label'], 'Partner');
    }
    assert.deepEqual(ann.events[1][1], { matchId: 'm1', mode: 'video', partner: { name: 'Ben', interests: ['chess'] }, textChat: true });
  });

  test('move on with the camera still on', async () => {
    const { ann, ben, cameras } = await pair();
    arena.verbs.next = (from) => {
      arena.end(from, 'm1', 'next');
      arena.end(ben.client, 'm1', 'partnerNext');
      return { type: 'roulette.waiting' };
    };
    await ann.roulette.next();
    await settled();
    assert.deepEqual(ann.names().slice(3, 5), ['ended', 'waiting']);
    assert.deepEqual(ben.events.find(([name]) => name === 'ended')[1], { matchId: 'm1', reason: 'partnerNext' });
    assert.deepEqual([ann.target.children, ben.target.children], [[], []]);
    assert.deepEqual(FakePeerConnection.all.map(({ connectionState }) => connectionState), ['closed', 'closed']);
    assert.deepEqual(cameras.map(({ isDestroyed }) => isDestroyed), [false, false]);
    arena.match(ann.client, 'm2');
    arena.match(ben.client, 'm2');
    await settled();
    await settled();
    assert.equal(ann.target.children.length, 1);
    assert.equal(page.devices.asked.length, 2);
    assert.deepEqual([ann, ben].flatMap(({ events }) => events.filter(([name]) => name === 'error')), []);
  });
});

describe('A match', () => {
  test('of two sessions publishes in one and subscribes in the other', async () => {
    const ann = visitor('a');
    ann.roulette.usePublisher(OT.initPublisher(/** @type {any} */ (new FakeElement('div'))));
    await ann.roulette.start();
    arena.match(ann.client, 'm1', { publish: { sessionId: '1_mine', token: 'good' }, subscribe: { sessionId: '1_theirs', token: 'good' }, textChat: false });
    await settled();
    assert.deepEqual(ann.client.askedFor('session.join').map((/** @type {any} */ { sessionId }) => sessionId), ['1_mine', '1_theirs']);
    assert.deepEqual(ann.client.askedFor('session.publish').map((/** @type {any} */ { sessionId }) => sessionId), ['1_mine']);
    const ben = arena.client('b');
    await ben.request('session.join', { sessionId: '1_theirs', token: 'good' });
    await ben.request('session.publish', { sessionId: '1_theirs', hasAudio: true, hasVideo: true });
    await settled();
    assert.equal(ann.names().pop(), 'subscriber');
    assert.equal((await rejection(ann.roulette.sendChat('hello'))).code, 'not_permitted');
  });

  test('with text only neither publishes nor expects video', async () => {
    const ann = visitor('a');
    ann.roulette.usePublisher(OT.initPublisher(/** @type {any} */ (new FakeElement('div'))));
    await ann.roulette.start({ mode: 'text' });
    arena.match(ann.client, 'm1', { mode: 'text' });
    await settled();
    await clock.advance(20_000);
    assert.deepEqual(ann.client.askedFor('session.publish'), []);
    assert.deepEqual(ann.names(), ['waiting', 'matched']);
  });

  test('with text only does not subscribe to a stream of the partner, so that the partner learns no address', async () => {
    const [ann, ben] = [visitor('a'), visitor('b')];
    for (const { roulette } of [ann, ben]) await roulette.start({ mode: 'text' });
    arena.match(ann.client, 'm1', { mode: 'text' });
    // A modified client publishes as in a video chat.
    arena.match(ben.client, 'm1', { mode: 'video' });
    ben.roulette.usePublisher(OT.initPublisher(/** @type {any} */ (new FakeElement('div'))));
    await settled();
    assert.equal(ben.client.askedFor('session.publish').length, 1);
    assert.deepEqual(ann.client.askedFor('session.subscribe'), []);
    assert.deepEqual(ann.names(), ['waiting', 'matched']);
  });

  test('publishes a camera added later, and unpublishes one that is removed', async () => {
    const ann = visitor('a');
    await ann.roulette.start();
    arena.match(ann.client, 'm1');
    await settled();
    const publisher = OT.initPublisher(/** @type {any} */ (new FakeElement('div')));
    ann.roulette.usePublisher(publisher);
    await settled();
    assert.equal(arena.session('1_m1').streams.size, 1);
    ann.roulette.usePublisher(null);
    await settled();
    assert.equal(arena.session('1_m1').streams.size, 0);
    assert.equal(publisher.isDestroyed, false);
    assert.deepEqual(ann.events.filter(([name]) => name === 'error'), []);
  });

  test('shows the partner’s next stream when the first one ends', async () => {
    const { ann, ben } = await pair();
    const first = ann.events.find(([name]) => name === 'subscriber')[1].subscriber;
    const session = { sessionId: '1_m1' };
    await ben.client.request('session.publish', { ...session, hasAudio: true, hasVideo: true, name: 'again' });
    await ben.client.request('session.unpublish', { ...session, streamId: first.stream.streamId });
    await settled();
    assert.equal(ann.events.pop()[1].subscriber.stream.name, 'again');
    assert.equal(ann.target.children.length, 1);
  });
});

test('A search that the server rejects gives the page the reason', async () => {
  Object.assign(arena, { 'roulette.start': () => { throw new ConfabError({ code: 'elsewhere', message: 'In another tab.' }); } });
  assert.equal((await rejection(visitor('a').roulette.start())).code, 'elsewhere');
});

test('A message without a partner is rejected', async () => {
  assert.equal((await rejection(visitor('a').roulette.sendChat('hello'))).code, 'not_matched');
});

test('The people online and waiting can be counted', async () => {
  assert.deepEqual(await visitor('a').roulette.count(), { online: 5, waiting: 2 });
});
