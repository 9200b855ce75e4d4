import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { Client } from '../../lib/signaling/client.js';
import { People } from '../../lib/people/people.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeServer } from './fake-server.mjs';

const me = { personId: 'me', name: 'Ada', visible: true, doNotDisturb: false, ringable: 'everyone', hasPosition: false };
const ben = { personId: 'ben', name: 'Ben', online: true };
const berlin = { latitude: 52.5, longitude: 13.4, accuracy: 20 };
/** @param {string} personId @param {number} [distance] */
const row = (personId, distance = 2) => ({ personId, name: personId, distance, busy: false });

/** @type {FakeServer} */
let server;
/** @type {FakeClock} */
let clock;
/** @type {Client} */
let client;
/** @type {People} */
let people;
/** @type {any[]} */
let events;

beforeEach(() => {
  server = new FakeServer();
  clock = new FakeClock();
  begin({ identity: 'a_me' });
});

/** @param {object} options */
function begin(options) {
  const appears = (/** @type {any} */ { type, seq, ack, re, ...members }) => ({ type: 'presence.self', ...me, ...members });
  server.answers = {
    'presence.appear': appears, 'presence.set': appears,
    'nearby.watch': ({ unit, radius }) => ({ type: 'nearby.list', unit, radius, people: [row('ben'), row('cleo', 5)], next: 'more' }),
  };
  client = new Client({ url: 'ws://test/v1/socket', WebSocket: server.WebSocket, clock, random: () => 1, page: new EventTarget(), ...options });
  people = new People(client);
  events = [];
  for (const name of ['self', 'nearby', 'contactAsked', 'contactAdded', 'contactChanged', 'contactRemoved', 'unlinked', 'deleted', 'error']) {
    people.on(name, (event) => events.push([name, event]));
  }
}

const names = () => events.map(([name]) => name);
/** Returns the requests since the most recent hello, in order. */
const asked = () => server.heard.slice(server.heard.map(({ type }) => type).lastIndexOf('hello') + 1)
  .filter(({ seq }) => seq !== undefined).map(({ seq, ack, ...message }) => message);
/** @param {Promise<unknown>} promise @returns {Promise<any>} */
const rejection = (promise) => promise.then(() => assert.fail('it was not rejected'), (error) => error);

/** Stops the server. When it is back, it has forgotten everyone. */
async function restart() {
  server.secrets += 1;
  server.socket.drop();
  await clock.advance(5000);
  await settled();
}

describe('A person who goes online', () => {
  test('connects, and gets their own values', async () => {
    const self = await people.appear({ name: 'Ada', ringable: 'contacts' });
    assert.deepEqual(self, { ...me, ringable: 'contacts' });
    assert.deepEqual(people.self, self);
    assert.deepEqual(events, [['self', self]]);
    assert.deepEqual(asked(), [{ type: 'presence.appear', name: 'Ada', ringable: 'contacts' }]);
  });

  test('gets the reason for a rejected name, and stays offline', async () => {
    server.answers['presence.appear'] = () => ({ type: 'error', code: 'invalid_name', message: 'Choose another.', retryable: false });
    assert.equal((await rejection(people.appear({ name: '\n' }))).code, 'invalid_name');
    await restart();
    assert.deepEqual(asked(), []);
  });

  test('gets changes made on another device', async () => {
    await people.appear();
    server.send({ type: 'presence.self', ...me, visible: false });
    assert.equal(people.self?.visible, false);
    assert.equal(events[1][1].visible, false);
  });

  test('sends each request, and gets plain answers', async () => {
    await people.appear();
    Object.assign(server.answers, {
      'presence.find': () => ({ type: 'presence.person', person: ben }),
      'presence.link': () => ({ type: 'presence.linkCode', code: 'K7QM-4T9X', expiresInMs: 300_000 }),
      'presence.devices': () => ({ type: 'presence.devices', devices: [{ deviceId: 'd', label: 'Phone', current: true, present: true }] }),
      'presence.blocked': () => ({ type: 'presence.blocked', people: [ben] }),
      'contact.list': () => ({ type: 'contact.list', people: [ben] }),
    });
    assert.deepEqual(await people.find('ben'), ben);
    assert.deepEqual(await people.makeLinkCode(), { code: 'K7QM-4T9X', expiresInMs: 300_000 });
    assert.deepEqual(await people.devices(), [{ deviceId: 'd', label: 'Phone', current: true, present: true }]);
    assert.deepEqual(await people.blocked(), [ben]);
    assert.deepEqual(await people.contacts(), [ben]);
    await people.block('ben');
    await people.unblock('ben');
    await people.unlink('d');
    await people.keep({ matchId: 'm' });
    await people.keep({ callId: 'c' });
    await people.removeContact('ben');
    await people.move(berlin);
    await people.forgetPosition();
    assert.deepEqual(await people.set({ doNotDisturb: true }), { ...me, doNotDisturb: true });
    await people.leave();
    assert.deepEqual(asked().slice(6), [
      { type: 'presence.block', personId: 'ben' }, { type: 'presence.unblock', personId: 'ben' }, { type: 'presence.unlink', deviceId: 'd' },
      { type: 'contact.keep', matchId: 'm' }, { type: 'contact.keep', callId: 'c' }, { type: 'contact.remove', personId: 'ben' },
      { type: 'nearby.move', ...berlin }, { type: 'nearby.forget' }, { type: 'presence.set', doNotDisturb: true }, { type: 'presence.leave' },
    ]);
  });

  test('gets contact events', async () => {
    await people.appear();
    server.send({ type: 'contact.asked', matchId: 'm' });
    server.send({ type: 'contact.added', person: ben, callId: 'c' });
    server.send({ type: 'contact.changed', person: { ...ben, online: false } });
    server.send({ type: 'contact.removed', personId: 'ben' });
    assert.deepEqual(events.slice(1), [
      ['contactAsked', { matchId: 'm' }], ['contactAdded', { person: ben, callId: 'c' }],
      ['contactChanged', { person: { ...ben, online: false } }], ['contactRemoved', { personId: 'ben' }],
    ]);
  });
});

describe('A location that is deleted', () => {
  const told = () => asked().map(({ type }) => type);

  test('during a pending move is not sent again', async () => {
    await people.appear();
    /** @type {any} */
    let answer = null;
    server.answers['nearby.move'] = ({ seq }) => { answer = seq; return null; };
    const moved = people.move(berlin);
    await settled();
    const forgotten = people.forgetPosition();
    server.send({ type: 'ok', re: answer });
    await Promise.all([moved, forgotten]);
    await restart();
    assert.deepEqual(told(), ['presence.appear']);
  });

  test('on another device is no longer sent again, ends the list, and is reported', async () => {
    await people.appear();
    await people.move(berlin);
    await people.watch({ unit: 'mi', radius: 200 });
    let heard = 0;
    people.on('positionForgotten', () => { heard += 1; });
    server.send({ type: 'presence.self', ...me, hasPosition: false });
    server.send({ type: 'presence.self', ...me, hasPosition: false });
    await restart();
    assert.deepEqual([heard, told()], [1, ['presence.appear']]);
  });
});

describe('A page of the people nearby', () => {
  test('is answered, and emitted in full with every change', async () => {
    await people.appear();
    const page = await people.watch({ unit: 'mi', radius: 200 });
    assert.deepEqual(page, { people: [row('ben'), row('cleo', 5)], next: 'more', unit: 'mi', radius: 200 });
    server.send({ type: 'nearby.changed', people: [row('dora', 10), row('ben', 10)], gone: [], order: ['cleo', 'ben', 'dora'], next: 'more' });
    server.send({ type: 'nearby.changed', people: [], gone: ['cleo'], order: ['ben', 'dora'] });
    const pages = events.filter(([name]) => name === 'nearby').map(([, event]) => event);
    assert.deepEqual(pages, [
      page,
      { ...page, people: [row('cleo', 5), row('ben', 10), row('dora', 10)] },
      { people: [row('ben', 10), row('dora', 10)], unit: 'mi', radius: 200 },
    ]);
  });

  test('leaves out unknown people', async () => {
    await people.appear();
    await people.watch({ unit: 'km', radius: 80 });
    server.send({ type: 'nearby.changed', people: [], order: ['nobody', 'ben', 'cleo'] });
    assert.deepEqual(events[events.length - 1][1].people, [row('ben'), row('cleo', 5)]);
    server.send({ type: 'nearby.changed', people: [], gone: ['ben'] });
    assert.deepEqual(events[events.length - 1][1].people, [row('cleo', 5)]);
  });

  test('ends when it is no longer watched, even with late messages', async () => {
    await people.appear();
    await people.watch({ unit: 'mi', radius: 200 });
    people.unwatch();
    server.send({ type: 'nearby.changed', people: [], gone: ['ben'], order: ['cleo'] });
    await settled();
    people.watch({ unit: 'mi', radius: 200 });
    people.unwatch();
    await settled();
    assert.equal(names().filter((name) => name === 'nearby').length, 1);
    await restart();
    assert.deepEqual(asked().map(({ type }) => type), ['presence.appear']);
  });

  test('that is rejected leaves the previous one unchanged', async () => {
    await people.appear();
    await people.watch({ unit: 'mi', radius: 200 });
    server.answers['nearby.watch'] = () => ({ type: 'error', code: 'rate_limited', message: 'Wait.', retryable: true });
    assert.equal((await rejection(people.watch({ unit: 'mi', radius: 5 }))).code, 'rate_limited');
    await restart();
    assert.equal(asked().find(({ type }) => type === 'nearby.watch').radius, 200);
  });
});

describe('After a restart of the server', () => {
  test('the last values are sent again, before any waiting request', async () => {
    await people.appear({ name: 'Ada', visible: false });
    await people.move(berlin);
    await people.watch({ unit: 'km', radius: 80, limit: 10 });
    server.isUp = false;
    server.secrets += 1;
    server.socket.drop();
    await clock.advance(70_000);
    const found = people.find('ben');
    server.answers['presence.find'] = () => ({ type: 'presence.person', person: ben });
    server.isUp = true;
    await clock.advance(5000);
    assert.deepEqual(await found, ben);
    assert.deepEqual(asked(), [
      { type: 'presence.appear' }, { type: 'nearby.move', ...berlin }, { type: 'nearby.watch', unit: 'km', radius: 80, limit: 10 },
      { type: 'presence.find', personId: 'ben' },
    ]);
    assert.equal(names().filter((name) => name === 'nearby').length, 2);
    assert.equal(names().includes('error'), false);
  });

  test('that has forgotten them, their settings are sent too', async () => {
    begin({});
    await people.appear({ name: 'Ada', visible: false });
    await people.set({ ringable: 'contacts' });
    server.send({ type: 'presence.self', ...me, name: 'Ada of the phone', visible: false });
    server.greet = (hello, socket) => server.welcome({ ...hello, identity: undefined }, socket);
    await restart();
    assert.deepEqual(asked(), [{ type: 'presence.appear', name: 'Ada of the phone', visible: false, ringable: 'everyone' }]);
  });

  test('a pending request is sent again, unless it must not be', async () => {
    await people.appear();
    server.answers['presence.devices'] = () => null;
    server.answers['presence.delete'] = () => null;
    const [devices, deleted] = [people.devices(), rejection(people.deleteEverything())];
    await settled();
    server.answers['presence.devices'] = () => ({ type: 'presence.devices', devices: [] });
    await restart();
    assert.deepEqual(await devices, []);
    assert.equal((await deleted).code, 'connection_restarted');
    assert.equal(server.heardOf('presence.delete').length, 1);
    assert.equal(names().includes('deleted'), false);
  });

  test('a rejection is reported to the page', async () => {
    await people.appear();
    server.answers['presence.appear'] = () => ({ type: 'error', code: 'rate_limited', message: 'Wait.', retryable: true });
    await restart();
    assert.equal(events[events.length - 1][1].error.code, 'rate_limited');
  });

  test('nothing is sent for a person who had left, nor after a short drop', async () => {
    await people.appear();
    server.socket.drop();
    await clock.advance(5000);
    assert.deepEqual([client.state, asked()], ['connected', []]);
    await people.leave();
    await restart();
    assert.deepEqual(asked(), []);
  });

  test('waiting requests are rejected when the client leaves', async () => {
    await people.appear();
    server.isUp = false;
    server.socket.drop();
    await clock.advance(70_000);
    const found = rejection(people.find('ben'));
    client.leave();
    assert.equal((await found).code, 'not_connected');
  });
});

describe('A device', () => {
  test('that uses a code starts over as the other person, without its own settings', async () => {
    await people.appear({ name: 'Phone', visible: false });
    await people.move(berlin);
    /** @type {string[]} */
    const states = [];
    for (const name of ['reconnecting', 'connected', 'closed']) client.on(name, () => states.push(name));
    server.answers['presence.useLink'] = () => ({ type: 'presence.linked', personId: 'other' });
    server.answers['presence.appear'] = () => ({ type: 'presence.self', ...me, personId: 'other', name: 'Other' });
    const self = await people.useLink('K7QM-4T9X', 'My phone');
    assert.deepEqual([self?.personId, self?.name], ['other', 'Other']);
    assert.deepEqual(states, ['reconnecting', 'connected']);
    assert.equal(server.heardOf('presence.useLink')[0].label, 'My phone');
    const hellos = server.heardOf('hello');
    assert.deepEqual([hellos.length, hellos[1].resume, hellos[1].identity], [2, undefined, 'a_me']);
    assert.deepEqual(asked(), [{ type: 'presence.appear' }, { type: 'nearby.move', ...berlin }]);
    server.greet = (hello, socket) => server.welcome({ ...hello, identity: undefined }, socket);
    await restart();
    assert.deepEqual(asked()[0], { type: 'presence.appear' });
  });

  test('is linked too when it was offline', async () => {
    await client.connect();
    server.answers['presence.useLink'] = () => ({ type: 'presence.linked', personId: 'other' });
    assert.equal(await people.useLink('K7QM-4T9X'), null);
    assert.deepEqual([client.state, asked()], ['connected', []]);
  });

  test('with a wrong code stays unchanged', async () => {
    await people.appear();
    server.answers['presence.useLink'] = () => ({ type: 'error', code: 'link_invalid', message: 'Make another.', retryable: false });
    assert.equal((await rejection(people.useLink('AAAA-AAAA'))).code, 'link_invalid');
    assert.equal(server.heardOf('hello').length, 1);
  });

  for (const event of ['unlinked', 'deleted']) {
    test(`that is ${event} is notified, and forgets its state`, async () => {
      await people.appear({ name: 'Ada' });
      server.send({ type: `presence.${event}` });
      server.socket.drop(4409);
      assert.equal(names().pop(), event);
      assert.deepEqual([client.state, people.self], ['closed', null]);
      await client.connect();
      await settled();
      assert.deepEqual(asked(), []);
    });
  }

  test('that deletes everything is notified once', async () => {
    await people.appear();
    await people.deleteEverything();
    assert.equal(names().filter((name) => name === 'deleted').length, 1);
    begin({ identity: 'a_me' });
    await people.appear();
    server.answers['presence.delete'] = () => { server.send({ type: 'presence.deleted' }); };
    await people.deleteEverything();
    assert.equal(names().filter((name) => name === 'deleted').length, 1);
  });
});

describe('The export', () => {
  /** @type {any[]} */
  let fetched;
  /** @param {(url: string) => Response} respond */
  const answering = (respond) => {
    fetched = [];
    globalThis.fetch = async (url, options) => {
      fetched.push([url, /** @type {any} */ (options).headers.Authorization]);
      return respond(String(url));
    };
  };

  test('is fetched from the same server with our secret', async () => {
    answering(() => new Response('{"name":"Ada"}'));
    await people.appear();
    assert.equal(people.exportUrl, 'http://test/v1/person');
    assert.equal(await (await people.export()).text(), '{"name":"Ada"}');
    assert.deepEqual(fetched, [['http://test/v1/person', 'Bearer a_me']]);
  });

  test('that is rejected reports why', async () => {
    await people.appear();
    answering(() => new Response('{"code":"rate_limited","message":"Later.","retryable":true,"retryAfterMs":1000}', { status: 429 }));
    assert.equal((await rejection(people.export())).retryAfterMs, 1000);
    answering(() => new Response('oops', { status: 502 }));
    assert.equal((await rejection(people.export())).code, 'http_502');
    answering(() => { throw new TypeError('no network'); });
    assert.equal((await rejection(people.export())).code, 'connect_failed');
  });

  test('needs an identity', async () => {
    begin({});
    assert.equal((await rejection(people.export())).code, 'not_connected');
  });
});
