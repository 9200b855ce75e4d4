import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { begin, client, clock, names, page, server } from './client-room.mjs';
import { settled } from './fake-clock.mjs';

beforeEach(begin);

describe('A client and its page', () => {
  /** @param {string} name @param {object} [members] */
  const happen = (name, members = {}) => page.dispatchEvent(Object.assign(new Event(name), members));

  test('sends bye when the page unloads, and starts over when it is restored', async () => {
    await client.connect();
    happen('pagehide', { persisted: true });
    await settled();
    assert.equal(server.heardOf('bye').length, 1);
    assert.equal(server.socket.closedWith, 1000);
    await clock.advance(60_000);
    assert.equal(server.sockets.length, 1);
    happen('pageshow', { persisted: true });
    await settled();
    assert.deepEqual(names().slice(-3), ['expired', 'connected', 'restarted']);
  });

  test('says when the network is back', async () => {
    await client.connect();
    let times = 0;
    client.on('online', () => { times += 1; });
    happen('online');
    assert.equal(times, 1);
  });

  test('checks its socket when the network goes, and keeps it if the server answers', async () => {
    await client.connect();
    happen('offline');
    await settled();
    assert.equal(server.heardOf('ping').length, 1);
    await clock.advance(9000);
    assert.equal(client.state, 'connected');
    server.socket.isDeaf = true;
    happen('offline');
    await clock.advance(10_000);
    assert.equal(client.state, 'reconnecting');
  });

  test('watches the page only while connected', async () => {
    await client.connect();
    client.leave();
    happen('pagehide', { persisted: false });
    happen('online');
    await settled();
    assert.equal(server.sockets.length, 1);
  });
});
