// A network cable between page and server that a test can pull, or fill with silence.
import { once } from 'node:events';
import net from 'node:net';
import { freePort } from './server.mjs';

/**
 * Listens on a port of its own on 127.0.0.1 and passes bytes on to `port`.
 *
 * @param {number} port the server's
 * @returns {Promise<Proxy>}
 */
export async function startProxy(port) {
  const proxy = new Proxy(port);
  // After a cut it wants the same port again, which nobody may have taken meanwhile.
  await proxy.listen(await freePort());
  return proxy;
}

class Proxy {
  /** Bytes passed on: `up` towards the server, `down` towards the page. */
  bytes = { up: 0, down: 0 };
  /** Bytes swallowed while stalled. */
  swallowed = 0;
  /** Connections accepted so far, refused ones not counted. */
  connections = 0;
  /** @type {'open' | 'cut' | 'stalled'} */
  state = 'open';
  #sockets = new Set();
  #listener;

  constructor(upstreamPort) {
    this.upstreamPort = upstreamPort;
  }

  async listen(port) {
    this.#listener = net.createServer((client) => this.#accept(client)).listen(port, '127.0.0.1');
    await once(this.#listener, 'listening');
    this.port = this.#listener.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
  }

  get open() {
    return this.#sockets.size / 2;
  }

  #accept(client) {
    this.connections += 1;
    const server = net.connect(this.upstreamPort, '127.0.0.1');
    this.#pass(client, server, 'up');
    this.#pass(server, client, 'down');
  }

  #pass(from, to, direction) {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      if (this.state === 'stalled') {
        this.swallowed += chunk.length;
        return;
      }
      this.bytes[direction] += chunk.length;
      if (!to.write(chunk)) from.pause();
    });
    to.on('drain', () => from.resume());
    from.on('end', () => { if (this.state !== 'stalled') to.end(); });
    from.on('error', () => {}); // `close` follows
    from.on('close', () => {
      this.#sockets.delete(from);
      // While stalled the other end must not notice anything, as behind a router that lost its memory.
      if (this.state !== 'stalled') to.destroy();
    });
  }

  /** Pulls the cable: every connection is reset and new ones are refused. */
  async cut() {
    this.state = 'cut';
    const closed = once(this.#listener, 'close');
    this.#listener.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }

  /** Swallows every byte in both directions, while connections stay open and new ones are accepted. */
  stall() {
    if (this.state !== 'open') throw new Error(`a proxy that is ${this.state} cannot stall`);
    this.state = 'stalled';
  }

  /**
   * Ends a cut or a stall. Connections that were stalled are reset, because bytes were lost from their middle: what a
   * real network loses TCP sends again, and here nobody does.
   */
  async heal() {
    const was = this.state;
    this.state = 'open';
    if (was === 'cut') await this.listen(this.port);
    if (was === 'stalled') for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close() {
    if (this.state !== 'cut') await this.cut();
  }
}
