import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { Backoff } from '../../lib/signaling/backoff.js';
import { begin, client, clock, events, make, names, page, rejection, server } from './client-room.mjs';
import { settled } from './fake-clock.mjs';
import { seeded } from './random.mjs';

beforeEach(begin);

describe('A client that connects', () => {
  test('sends hello with the subprotocol and gets its welcome', async () => {
    const welcome = await client.connect();
    assert.equal(welcome.resumed, false);
    assert.equal(client.state, 'connected');
    assert.deepEqual([/** @type {any} */ (server.socket).url, /** @type {any} */ (server.socket).protocol], ['ws://test/v1/socket', 'confab.v1']);
    const [hello] = server.heardOf('hello');
    assert.equal(hello.version, 1);
    assert.equal('resume' in hello, false);
    assert.deepEqual(names(), ['identity', 'connected']);
    assert.deepEqual(events[0][1], { secret: 'a_new' });
  });

  test('says that it shows warnings only if the page does', async () => {
    await client.connect();
    await make({ showsWarnings: true }).connect();
    assert.deepEqual(server.heardOf('hello').map((hello) => hello.warnings), [undefined, true]);
  });

  test('rejects after 20 s, and can connect later', async () => {
    server.isUp = false;
    const failed = rejection(client.connect());
    await clock.advance(20_000);
    const error = await failed;
    assert.deepEqual([error.name, error.code, client.state, clock.pending], ['ConfabError', 'connect_failed', 'closed', 0]);
    server.isUp = true;
    await client.connect();
    assert.equal(client.state, 'connected');
  });

  test('reports an invalid url', async () => {
    const broken = make({ WebSocket: class { constructor() { throw new SyntaxError('bad url'); } } });
    const error = await rejection(broken.connect());
    assert.equal(error.code, 'connect_failed');
    assert.match(error.message, /Check the URL/);
  });
});

describe('A request', () => {
  test('resolves with its answer', async () => {
    server.answers['roulette.count'] = () => ({ type: 'roulette.count', online: 3, waiting: 1 });
    await client.connect();
    const answer = await client.request('roulette.count');
    assert.deepEqual([answer.online, answer.waiting], [3, 1]);
  });

  test('rejects with the complete error', async () => {
    server.answers['roulette.next'] = () => ({ type: 'error', code: 'rate_limited', message: 'Slowly.', retryable: true, retryAfterMs: 500 });
    await client.connect();
    const error = await rejection(client.request('roulette.next'));
    assert.deepEqual(
      [error.name, error.code, error.message, error.retryable, error.retryAfterMs],
      ['ConfabError', 'rate_limited', 'Slowly.', true, 500],
    );
  });

  test('before connect() rejects with an error that says what to do', async () => {
    const error = await rejection(client.request('roulette.next'));
    assert.deepEqual([error.code, error.message], ['not_connected', 'Call connect() first.']);
  });

  test('also emits its answer as an event, except `ok`', async () => {
    server.answers['roulette.next'] = () => ({ type: 'roulette.waiting' });
    /** @type {string[]} */
    const reported = [];
    client.on('message', ({ type }) => reported.push(type)).on('message:roulette.waiting', ({ type }) => reported.push(`only ${type}`));
    await client.connect();
    await client.request('roulette.next');
    await client.request('roulette.stop');
    assert.deepEqual(reported, ['roulette.waiting', 'only roulette.waiting']);
  });
});

describe('A client whose socket drops', () => {
  test('starts a new connection when the server has forgotten it, and rejects pending requests', async () => {
    await client.connect();
    server.answers['roulette.next'] = () => null;
    const open = rejection(client.request('roulette.next'));
    server.secrets = 99;
    server.socket.drop();
    await clock.advance(250);
    const error = await open;
    assert.deepEqual([error.code, error.retryable], ['connection_restarted', true]);
    assert.deepEqual(names(), ['identity', 'connected', 'reconnecting', 'expired', 'connected', 'restarted']);
    assert.equal(events[4][1].resumed, false);
    assert.deepEqual(events[5][1].state, { sessions: [], roulette: { state: 'idle' } });
    await client.request('roulette.stop');
    assert.equal(server.heardOf('roulette.stop')[0].seq, 1);
    assert.equal(server.heardOf('hello')[1].identity, 'a_new');
  });

  test('returns after a pause that is spread over the upper half of its ceiling', () => {
    for (const [backoff, least] of /** @type {[Backoff, number][]} */ ([[new Backoff(() => 0), 125], [new Backoff(() => 1), 250]])) assert.equal(backoff.next(), least);
    const backoff = new Backoff(seeded(1));
    for (let attempt = 0; attempt < 1000; attempt += 1) {
      const pause = backoff.next();
      assert.ok(attempt < 5 || (pause >= 1500 && pause <= 3000), `${pause}`);
    }
  });

  test('can connect again after it left, as a new connection', async () => {
    await client.connect();
    server.socket.drop();
    client.leave();
    assert.equal((await client.connect()).resumed, false);
    page.dispatchEvent(new Event('online'));
    await settled();
    assert.equal(client.state, 'connected');
  });
});

test('A client survives an invalid message, and still counts it', async () => {
  await client.connect();
  server.send({ type: 'roulette.waiting', retryAfterMs: 'soon' });
  server.send({ type: 'session.soon' });
  server.send({ type: 'roulette.waiting' });
  assert.deepEqual(names().slice(-1), ['fault']);
  await client.request('roulette.next');
  assert.equal(server.heardOf('roulette.next')[0].ack, 3);
});
