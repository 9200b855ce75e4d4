import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { begin, client, clock, events, make, names, rejection, server } from './client-room.mjs';
import { settled } from './fake-clock.mjs';

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

  test('sends its credential, and never both a token and an identity', async () => {
    await make({ identity: 'a_me', name: 'Ann' }).connect();
    assert.deepEqual([server.heard[0].identity, server.heard[0].name, server.heard[0].token], ['a_me', 'Ann', undefined]);
    await make({ identity: 'a_me', token: 'jwt' }).connect();
    const [, hello] = server.heardOf('hello');
    assert.deepEqual([hello.identity, hello.token], [undefined, 'jwt']);
  });

  test('retries while the server is down, and rejects after 20 s', async () => {
    server.isUp = false;
    const failed = rejection(client.connect());
    await clock.advance(19_000);
    assert.equal(client.state, 'connecting');
    assert.ok(server.sockets.length >= 6);
    await clock.advance(1000);
    const error = await failed;
    assert.deepEqual([error.name, error.code, error.retryable], ['ConfabError', 'connect_failed', true]);
    assert.equal(client.state, 'closed');
    assert.equal(clock.pending, 0);
    server.isUp = true;
    await client.connect();
    assert.equal(client.state, 'connected');
  });

  test('gives up a socket that opens and then stays silent', async () => {
    server.greet = () => {};
    client.connect();
    await clock.advance(10_000);
    assert.equal(server.sockets.length, 1);
    await clock.advance(300);
    assert.equal(server.sockets.length, 2);
  });

  test('does not retry when its version is not supported', async () => {
    server.greet = (_hello, socket) => {
      socket.say({ type: 'error', code: 'version_unsupported', message: 'Reload the page.', retryable: false });
      socket.drop(4400);
    };
    const error = await rejection(client.connect());
    assert.equal(error.code, 'version_unsupported');
    await clock.advance(60_000);
    assert.equal(server.sockets.length, 1);
    assert.deepEqual(names(), ['closed']);
    assert.deepEqual([events[0][1].code, events[0][1].error.code], [4400, 'version_unsupported']);
  });

  test('waits as long as the server says when there are too many connections', async () => {
    const { greet } = server;
    server.greet = (_hello, socket) => {
      socket.say({ type: 'error', code: 'too_many_connections', message: 'Later.', retryable: true, retryAfterMs: 12_000 });
      socket.drop(4429);
    };
    client.connect();
    await clock.advance(11_000);
    assert.equal(server.sockets.length, 1);
    server.greet = greet;
    await clock.advance(1000);
    assert.equal(client.state, 'connected');
  });

  test('waits five minutes at most, whatever the server says', async () => {
    await client.connect();
    for (const retryAfterMs of [301_000, 2 ** 52]) {
      const tried = server.sockets.length;
      server.socket.say({ type: 'error', code: 'too_many_connections', message: 'Later.', retryable: true, retryAfterMs });
      server.socket.drop(4429);
      await clock.advance(299_000);
      assert.equal(server.sockets.length, tried);
      await clock.advance(1000);
      assert.equal(client.state, 'connected');
    }
  });

  test('does not wait for an error that no close followed', async () => {
    for (const next of ['pong', 'roulette.waiting']) {
      begin();
      await client.connect();
      server.socket.say({ type: 'error', code: 'rate_limited', message: 'Later.', retryable: true, retryAfterMs: 60_000 });
      if (next === 'pong') server.socket.say({ type: next });
      else server.send({ type: next });
      server.socket.drop();
      await clock.advance(3000);
      assert.equal(client.state, 'connected', next);
    }
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

  test('is answered by the error that precedes a close, and the next attempt waits as long as the error says', async () => {
    server.answers['roulette.count'] = () => null;
    await client.connect();
    const answer = rejection(client.request('roulette.count'));
    await settled();
    const re = server.heardOf('roulette.count')[0].seq;
    server.socket.say({ type: 'error', re, code: 'storage_failed', message: 'Not stored.', retryable: true, retryAfterMs: 2000 });
    assert.equal((await answer).code, 'storage_failed');
    server.socket.drop(1012);
    await clock.advance(1900);
    assert.equal(server.sockets.length, 1);
    await clock.advance(200);
    assert.equal(server.sockets.length, 2);
  });

  test('before connect() rejects with an error that says what to do', async () => {
    const error = await rejection(client.request('roulette.next'));
    assert.deepEqual([error.code, error.message], ['not_connected', 'Call connect() first.']);
  });

  test('that is too long is not sent', async () => {
    await client.connect();
    const error = await rejection(client.request('session.signal', { data: 'x'.repeat(70_000) }));
    assert.equal(error.code, 'message_too_large');
    await client.request('session.negotiate', { description: { type: 'offer', sdp: 'x'.repeat(70_000) } });
    await client.request('media.offer', { side: 'send', sdp: 'x'.repeat(70_000) });
  });

  test('made while connecting is sent after the welcome', async () => {
    client.connect();
    await client.request('roulette.next');
    assert.deepEqual(server.heard.map(({ type }) => type), ['hello', 'roulette.next']);
  });

  test('also emits its answer as an event, except `ok`', async () => {
    server.answers['roulette.next'] = () => ({ type: 'roulette.waiting' });
    /** @type {string[]} */
    const told = [];
    client.on('message', ({ type }) => told.push(type)).on('message:roulette.waiting', ({ type }) => told.push(`only ${type}`));
    await client.connect();
    await client.request('roulette.next');
    await client.request('roulette.stop');
    assert.deepEqual(told, ['roulette.waiting', 'only roulette.waiting']);
  });
});

describe('A client whose socket drops', () => {
  test('resumes: messages that either end lacks are sent again, once and in order', async () => {
    /** @type {number[]} */
    const told = [];
    client.on('message:roulette.waiting', ({ retryAfterMs }) => told.push(retryAfterMs));
    await client.connect();
    server.send({ type: 'roulette.waiting', retryAfterMs: 1 });
    server.socket.isDeaf = true;
    server.send({ type: 'roulette.waiting', retryAfterMs: 2 });
    const lost = client.request('roulette.next');
    server.socket.drop();
    assert.equal(client.state, 'reconnecting');
    const queued = client.request('roulette.stop');
    await clock.advance(250);
    assert.equal(client.state, 'connected');
    await Promise.all([lost, queued]);
    assert.deepEqual(told, [1, 2]);
    assert.deepEqual(server.heard.map(({ type }) => type), ['hello', 'hello', 'roulette.next', 'roulette.stop']);
    assert.deepEqual(server.heardOf('hello')[1].resume, { secret: 'secret 1', received: 1 });
    assert.deepEqual(names(), ['identity', 'connected', 'reconnecting', 'connected']);
    assert.equal(events[3][1].resumed, true);
  });

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

  test('keeps trying, and reports after the grace that the connection has expired', async () => {
    await client.connect();
    server.isUp = false;
    server.socket.drop();
    await clock.advance(59_000);
    assert.deepEqual(names(), ['identity', 'connected', 'reconnecting']);
    await clock.advance(1000);
    assert.equal(names().pop(), 'expired');
    server.isUp = true;
    await clock.advance(8000);
    assert.deepEqual(names().slice(-3), ['expired', 'connected', 'restarted']);
    assert.equal('resume' in server.heard[server.heard.length - 1], false);
  });

  test('lets requests wait, up to the size of the replay buffer', async () => {
    await client.connect();
    server.isUp = false;
    server.socket.drop();
    for (let number = 0; number < 256; number += 1) client.request('roulette.count').catch(() => {});
    const error = await rejection(client.request('roulette.count'));
    assert.deepEqual([error.code, error.retryable], ['offline_queue_full', true]);
    server.isUp = true;
    await clock.advance(8000);
    assert.equal(server.heardOf('roulette.count').length, 256);
  });

  test('starts a new connection when it no longer has the messages that the server lacks', async () => {
    await client.connect();
    server.socket.isDeaf = true;
    for (let number = 0; number < 300; number += 1) client.request('roulette.count').catch(() => {});
    server.socket.drop();
    await clock.advance(300);
    assert.equal(client.state, 'connected');
    assert.equal(server.heardOf('bye').length, 1);
    assert.deepEqual(names().slice(-3), ['expired', 'connected', 'restarted']);
  });

  test('opens a new socket when a message is missing, and requests it', async () => {
    /** @type {number[]} */
    const told = [];
    client.on('message:roulette.waiting', ({ retryAfterMs }) => told.push(retryAfterMs));
    await client.connect();
    server.socket.isDeaf = true;
    server.send({ type: 'roulette.waiting', retryAfterMs: 1 });
    server.socket.isDeaf = false;
    server.send({ type: 'roulette.waiting', retryAfterMs: 2 });
    assert.equal(client.state, 'reconnecting');
    await clock.advance(250);
    assert.deepEqual(told, [1, 2]);
  });

  test('returns 125 ms after 1001 from a restarting server if its random number is 0', async () => {
    await make({ random: () => 0 }).connect();
    const closed = server.socket;
    closed.drop(1001);
    await clock.advance(124);
    assert.equal(server.socket, closed);
    await clock.advance(1);
    assert.notEqual(server.socket, closed);
  });

  test('does not reconnect after a ban', async () => {
    await client.connect();
    server.socket.say({ type: 'error', code: 'banned', message: 'Until Friday.', retryable: false });
    server.socket.drop(4403);
    await clock.advance(60_000);
    assert.equal(client.state, 'closed');
    assert.equal(server.sockets.length, 1);
    assert.equal(events[events.length - 1][1].error.message, 'Until Friday.');
    assert.equal(clock.pending, 0);
  });
});

describe('A client that receives nothing', () => {
  test('keeps its socket if the device sleeps between ping and pong', async () => {
    await client.connect();
    server.socket.isDeaf = true;
    await clock.advance(10_000);
    clock.sleep(3_600_000);
    server.socket.isDeaf = false;
    await clock.advance(9_000);
    assert.equal(server.sockets.length, 1);
    assert.equal(client.state, 'connected');
    assert.equal(server.heardOf('ping').length, 1, 'the first was not heard');
    await clock.advance(60_000);
    assert.equal(server.sockets.length, 1);
    server.socket.isDeaf = true;
    await clock.advance(20_000);
    assert.equal(server.sockets[0].closedWith, 4000, 'without a sleep one silence is enough');
  });

  test('pings after 10 s and opens a new socket 10 s later', async () => {
    await client.connect();
    await clock.advance(10_000);
    assert.equal(server.heardOf('ping').length, 1);
    await clock.advance(9000);
    assert.equal(client.state, 'connected');
    server.socket.isDeaf = true;
    await clock.advance(11_000);
    assert.equal(client.state, 'reconnecting');
    // Close code 4000 does not mean that the client leaves, so the server keeps the connection.
    assert.equal(server.sockets[0].closedWith, 4000);
    await clock.advance(250);
    assert.equal(client.state, 'connected');
  });

  test('sends a separate acknowledgement, after 2 s or 32 messages', async () => {
    await client.connect();
    server.send({ type: 'roulette.waiting' });
    await clock.advance(1999);
    assert.deepEqual(server.heardOf('ack'), []);
    await clock.advance(1);
    assert.deepEqual(server.heardOf('ack'), [{ type: 'ack', ack: 1 }]);
    for (let number = 0; number < 32; number += 1) server.send({ type: 'roulette.waiting' });
    await settled();
    assert.deepEqual(server.heardOf('ack')[1], { type: 'ack', ack: 33 });
  });

  test('acknowledges a page of a roster at once if another page follows', async () => {
    await client.connect();
    const roster = { type: 'session.roster', sessionId: '1_x', connections: [], streams: [] };
    server.send({ ...roster, more: true });
    server.send(roster);
    await settled();
    assert.deepEqual(server.heardOf('ack'), [{ type: 'ack', ack: 1 }]);
  });

  test('survives an invalid message, and still counts it', async () => {
    await client.connect();
    server.send({ type: 'roulette.waiting', retryAfterMs: 'soon' });
    server.send({ type: 'session.soon' });
    server.send({ type: 'roulette.waiting' });
    assert.deepEqual(names().slice(-1), ['fault']);
    await client.request('roulette.next');
    assert.equal(server.heardOf('roulette.next')[0].ack, 3);
  });
});
