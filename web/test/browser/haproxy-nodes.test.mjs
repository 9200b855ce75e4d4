// The configuration of HAProxy for several servers, in front of two that share nothing. It needs no browser.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { startHAProxyOfNodes } from './haproxy.mjs';
import { WebSocket } from './remote-control.mjs';
import { startServer } from './server.mjs';
import { NotYet, until } from './wait.mjs';

/** How long each server keeps a dropped connection, which the welcome says. It shows at which server a client is. */
const graces = { n1: 31_000, n2: 32_000 };

/** A client that has said hello. */
class Guest {
  /** The close code; undefined while the socket is open. */
  closed;
  #seq = 0;

  /** @param {number} port @param {string} [query] */
  static async arrive(port, query = '') {
    const guest = new Guest();
    guest.socket = new WebSocket(`ws://127.0.0.1:${port}/v1/socket${query}`, 'confab.v1');
    guest.socket.on('error', () => {});
    guest.socket.on('close', (code) => { guest.closed = code; });
    await once(guest.socket, 'open');
    const welcome = guest.#answer((message) => message.type === 'welcome');
    guest.socket.send(JSON.stringify({ type: 'hello', version: 1 }));
    const { graceMs } = (await welcome).resume;
    guest.node = Object.keys(graces).find((name) => graces[name] === graceMs);
    return guest;
  }

  #answer(matches) {
    return new Promise((resolve, reject) => {
      const hear = (data) => {
        const message = JSON.parse(String(data));
        if (!matches(message)) return;
        this.socket.off('message', hear);
        resolve(message);
      };
      this.socket.on('message', hear).once('close', (code) => reject(new Error(`closed with ${code}`)));
    });
  }

  /** Sends a request and waits for its answer. */
  async ask(type) {
    this.#seq += 1;
    const seq = this.#seq;
    const answer = this.#answer(({ re }) => re === seq);
    this.socket.send(JSON.stringify({ type, seq, ack: 0 }));
    return answer;
  }
}

test('HAProxy sends clients to the node they name, none to a node that is not ready, and cuts those of a dead one', async (t) => {
  const [first, second] = await Promise.all(Object.entries(graces).map(([name, ms]) => startServer({
    env: {
      CONFAB_CONNECTION_RESUME_GRACE: `${ms / 1000}s`, CONFAB_TRUSTED_PROXIES: '127.0.0.1', CONFAB_SOCKET_IO_ENABLED: `${name === 'n1'}`,
      ...(name === 'n1' ? { CONFAB_PERCH_IDENT: 'perch', CONFAB_PERCH_SECRET: 'shipped-with-the-app' } : {}),
    },
  })));
  t.after(() => Promise.all([first.close(), second.close()]));
  const port = await startHAProxyOfNodes(t, first, second);
  /** @type {Guest[]} */
  const guests = [];
  t.after(() => { for (const { socket } of guests) socket.terminate(); });
  const arrive = async (query) => {
    const guest = await Guest.arrive(port, query);
    guests.push(guest);
    return guest;
  };
  const isNow = (node, query) => until(`a client with "${query ?? ''}" gets to ${node}`, async () => {
    const guest = await arrive(query);
    if (guest.node === node) return guest;
    guest.socket.terminate();
    throw new NotYet(`it got to ${guest.node}`);
  });

  for (const node of ['n2', 'n1', 'n2', 'n1', 'n1', 'n1', 'n1', 'n1', 'n1']) assert.equal((await arrive(`?at=${node}`)).node, node);
  assert.equal((await arrive('?at=n3')).node, 'n2', 'a name that HAProxy does not know gets to the node with the fewest clients');
  assert.equal((await arrive()).node, 'n2', 'and so does no name');

  // Later requests of Socket.IO name their node in an id. Socket.IO is off at n2, so the answers to an unknown id differ.
  const status = async (at, path) => (await fetch(`http://127.0.0.1:${at}${path}`)).status;
  for (const path of ['/socket.io/?EIO=4&transport=polling&sid=n', '/socket.io/1/xhr-polling/n']) {
    const [on, off] = [await status(first.port, `${path}1-x`), await status(second.port, `${path}1-x`)];
    assert.notEqual(on, off);
    for (let round = 0; round < 4; round += 1) {
      assert.equal(await status(port, `${path}1-x`), on, path);
      assert.equal(await status(port, `${path}2-x`), off, path);
    }
  }

  // WebSockets of PerchRTC's clients name the node in a token. The protocol is off on n2, so the two nodes answer this request differently.
  const type = async (at, path) => (await fetch(`http://127.0.0.1:${at}${path}`)).headers.get('content-type');
  for (const path of ['/xirsys/ws/n', '/xirsys/ws/v2/n']) {
    const [on, off] = [await type(first.port, `${path}1-x`), await type(second.port, `${path}1-x`)];
    assert.notEqual(on, off);
    for (let round = 0; round < 4; round += 1) {
      assert.equal(await type(port, `${path}1-x`), on, path);
      assert.equal(await type(port, `${path}2-x`), off, path);
    }
  }

  // A node that an operator drains.
  assert.match(await second.command('node', 'drain'), /^draining, \d+ connections, disconnects everyone in 1\d{3} s$/m);
  await isNow('n1');
  const here = guests.filter(({ node, closed }) => node === 'n2' && closed === undefined);
  assert.equal(here.length, 4);
  for (const guest of here) assert.equal((await guest.ask('roulette.count')).type, 'roulette.count', 'it keeps those it has');
  assert.equal((await arrive('?at=n2')).node, 'n2', 'and they can resume there');
  assert.match(await second.command('node', 'serve'), /^serving/m);
  await isNow('n2');

  // A node that does not answer: its clients cannot notice that before their own timeouts.
  const ofSecond = guests.filter(({ node, closed }) => node === 'n2' && closed === undefined);
  const stopped = performance.now();
  process.kill(second.child.process.pid, 'SIGSTOP');
  await until('the clients of the node that does not answer are cut', () => ofSecond.every(({ closed }) => closed !== undefined));
  t.diagnostic(`${ofSecond.length} clients were cut after ${Math.round(performance.now() - stopped)} ms`);
  assert.equal((await arrive('?at=n2')).node, 'n1', 'who asks for a dead node gets another one');
  const ofFirst = guests.filter(({ node, closed }) => node === 'n1' && closed === undefined);
  for (const guest of ofFirst) await guest.ask('roulette.count');
  process.kill(second.child.process.pid, 'SIGCONT');
  await isNow('n2', '?at=n2');

  // A node that is gone.
  const killed = performance.now();
  await first.kill();
  await until('its clients are cut', () => ofFirst.every(({ closed }) => closed !== undefined));
  assert.equal((await arrive('?at=n1')).node, 'n2');
  t.diagnostic(`${ofFirst.length} clients were cut and another one was welcome after ${Math.round(performance.now() - killed)} ms`);
});
