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

beforeEach(() => {
  page = installPage();
  room = new FakeRoom();
  FakePeerConnection.all = [];
  FakePeerConnection.network = true;
});

/** @param {string} id */
async function joined(id) {
  const client = room.client(id);
  const session = OT.initSession('1', '1_room', { client, rtc: fakeRtc, clock: new FakeClock() });
  /** @type {any[]} */
  const events = [];
  for (const name of ['sessionConnected', 'connectionCreated', 'streamCreated', 'signal']) session.on(name, (event) => events.push(event));
  session.connect('good');
  await settled();
  assert.equal(session.isConnected(), true);
  return { client, session, events, types: () => events.map(({ type }) => type) };
}

describe('A session whose roster comes in pages', () => {
  test('is connected with the first page of a large roster, and emits the others as they arrive', async () => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      const { session } = await joined(id);
      if (id === 'd') session.publish(page.element());
      await settled();
    }
    room.pageSize = 2;
    const late = await joined('z');
    const connections = () => late.events.filter(({ type }) => type === 'connectionCreated').map(({ connection }) => connection.id);
    assert.deepEqual(late.types(), ['sessionConnected', 'connectionCreated', 'connectionCreated', 'connectionCreated']);
    assert.deepEqual(connections(), ['z', 'a', 'b']);
    room.turnPage('1_room', late.client);
    await settled();
    assert.deepEqual(connections(), ['z', 'a', 'b', 'c', 'd']);
    const { stream } = late.events.find(({ type }) => type === 'streamCreated');
    assert.equal(stream.connection, late.events.find(({ connection }) => connection?.id === 'd').connection);
    room.turnPage('1_room', late.client);
    await settled();
    assert.deepEqual(connections(), ['z', 'a', 'b', 'c', 'd', 'e']);
    assert.deepEqual(late.types().slice(-1), ['connectionCreated']);
  });

  test('gives the sender of a signal as the object that its page completes', async () => {
    const ann = await joined('a');
    const ben = await joined('b');
    room.pageSize = 1;
    const late = await joined('z');
    ben.session.signal({ type: 'chat', data: 'hello' });
    await settled();
    const { from } = late.events.find(({ type }) => type === 'signal:chat');
    assert.deepEqual([from.id, from.data], ['b', '']);
    room.turnPage('1_room', late.client);
    await settled();
    const { connection } = late.events[late.events.length - 1];
    assert.equal(connection, from);
    assert.equal(from.data, 'data of b');
    assert.equal(ann.session.isConnected(), true);
  });

  test('emits nothing more of a page whose handler disconnected', async () => {
    for (const id of ['a', 'b', 'c']) await joined(id);
    room.pageSize = 1;
    const late = await joined('z');
    late.session.on('connectionCreated', () => late.session.disconnect());
    room.pageSize = 2;
    room.turnPage('1_room', late.client);
    await settled();
    assert.equal(late.types().filter((type) => type === 'connectionCreated').length, 3);
    assert.equal(late.session.isConnected(), false);
  });
});
