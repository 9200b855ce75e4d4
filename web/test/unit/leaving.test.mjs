import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { begin, client, clock, names, page, rejection, server } from './client-room.mjs';
import { settled } from './fake-clock.mjs';

beforeEach(begin);

describe('A client that leaves while its connection is away', () => {
  /** Connects, and loses the connection to a server that is down. */
  const lose = async () => {
    await client.connect();
    server.isUp = false;
    server.socket.drop();
    await clock.advance(1000);
    assert.equal(client.state, 'reconnecting');
  };

  test('is closed at once, and tells the server as soon as it can be reached', async () => {
    await lose();
    const open = rejection(client.request('roulette.next'));
    client.leave();
    assert.equal((await open).code, 'left');
    assert.deepEqual([client.state, names().at(-1)], ['closed', 'closed']);
    await clock.advance(5000);
    server.isUp = true;
    await clock.advance(3000);
    const [, hello] = server.heardOf('hello');
    assert.deepEqual(hello.resume, { secret: 'secret 1', received: 0 });
    assert.deepEqual(server.heard.slice(-2).map(({ type }) => type), ['hello', 'bye']);
    assert.deepEqual([server.socket.closedWith, clock.pending, client.state], [1000, 0, 'closed']);
  });

  test('tells nothing after the time for which the server keeps the connection', async () => {
    await lose();
    client.leave();
    await clock.advance(60_000);
    const tried = server.sockets.length;
    assert.ok(tried > 10);
    server.isUp = true;
    await clock.advance(60_000);
    assert.deepEqual([server.sockets.length, clock.pending], [tried, 0]);
  });

  test('does not try again when the server refuses', async () => {
    await lose();
    client.leave();
    server.isUp = true;
    server.greet = (_hello, socket) => socket.drop(4409);
    await clock.advance(3000);
    const tried = server.sockets.length;
    await clock.advance(60_000);
    assert.deepEqual([server.sockets.length, clock.pending], [tried, 0]);
  });

  test('can connect again, as a new connection', async () => {
    await lose();
    client.leave();
    server.isUp = true;
    const welcome = await client.connect();
    assert.equal(welcome.resumed, false);
    page.dispatchEvent(new Event('online'));
    await settled();
    assert.equal(client.state, 'connected');
  });
});
