import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { Client } from '../../lib/signaling/client.js';
import { People } from '../../lib/people/people.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeServer } from './fake-server.mjs';

const me = { personId: 'me', name: 'Ada', visible: true, doNotDisturb: false, ringable: 'everyone', hasPosition: false };
const ben = { personId: 'ben', name: 'Ben', online: true };
const berlin = { latitude: 52.5, longitude: 13.4, accuracy: 20 };
const row = { personId: 'ben', name: 'Ben', distance: 2, busy: false };

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
    'nearby.watch': ({ unit, radius }) => ({ type: 'nearby.list', unit, radius, people: [row], next: 'more' }),
  };
  client = new Client({ url: 'ws://test/v1/socket', WebSocket: server.WebSocket, clock, random: () => 1, page: new EventTarget(), ...options });
  people = new People(client);
  events = [];
  people.on('self', (event) => events.push(event));
}

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

test('a request that moves to another node is sent there after those that restore this person’s presence', async () => {
  await people.appear();
  server.answers['presence.find'] = () => (server.sockets.length === 1
    ? { type: 'error', code: 'elsewhere', at: 'n2', message: 'This person is on another server.', retryable: true }
    : { type: 'presence.person', person: ben });
  assert.deepEqual(await people.find('ben'), ben);
  assert.match(/** @type {any} */ (server.socket).url, /[?]at=n2$/);
  assert.deepEqual(asked().map(({ type }) => type), ['presence.appear', 'presence.find']);
});

describe('A person who goes online', () => {
  test('connects, and gets their own values', async () => {
    const self = await people.appear({ name: 'Ada', ringable: 'contacts' });
    assert.deepEqual(self, { ...me, ringable: 'contacts' });
    assert.deepEqual(people.self, self);
    assert.deepEqual(events, [self]);
    assert.deepEqual(asked(), [{ type: 'presence.appear', name: 'Ada', ringable: 'contacts' }]);
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
    assert.deepEqual(await people.watch({ unit: 'mi', radius: 200 }), { people: [row], next: 'more', unit: 'mi', radius: 200 });
    await people.forgetPosition();
    assert.deepEqual(await people.set({ doNotDisturb: true }), { ...me, doNotDisturb: true });
    await people.leave();
    assert.deepEqual(asked().slice(6), [
      { type: 'presence.block', personId: 'ben' }, { type: 'presence.unblock', personId: 'ben' }, { type: 'presence.unlink', deviceId: 'd' },
      { type: 'contact.keep', matchId: 'm' }, { type: 'contact.keep', callId: 'c' }, { type: 'contact.remove', personId: 'ben' },
      { type: 'nearby.move', ...berlin }, { type: 'nearby.watch', unit: 'mi', radius: 200 }, { type: 'nearby.forget' },
      { type: 'presence.set', doNotDisturb: true }, { type: 'presence.leave' },
    ]);
  });
});

test('Waiting requests are rejected when the client leaves', async () => {
  await people.appear();
  server.isUp = false;
  server.socket.drop();
  await clock.advance(70_000);
  const found = rejection(people.find('ben'));
  client.leave();
  assert.equal((await found).code, 'not_connected');
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
