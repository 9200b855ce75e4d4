// A TCP proxy between page and server. A test can cut or stall its connections.
import { once } from 'node:events';
import net from 'node:net';
import { freePort } from './server.mjs';

/**
 * Listens on its own port on 127.0.0.1 and forwards bytes to `port`.
 *
 * @param {number} port the server's port
 * @returns {Promise<Proxy>}
 */
export async function startProxy(port) {
  const proxy = new Proxy(port);
  // Use a port that stays free during a cut, because the proxy then listens on the same port again.
  await proxy.listen(await freePort());
  return proxy;
}

class Proxy {
  /** The number of forwarded bytes: `up` to the server, `down` to the page. */
  bytes = { up: 0, down: 0 };
  /** The number of bytes dropped during stalls. */
  swallowed = 0;
  /** Connections accepted so far, without rejected ones. */
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
      // During a stall, the other end must not notice anything, as with a router that lost its state.
      if (this.state !== 'stalled') to.destroy();
    });
  }

  /** Resets every connection and rejects new ones. */
  async cut() {
    this.state = 'cut';
    const closed = once(this.#listener, 'close');
    this.#listener.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }

  /** Drops every byte in both directions, while connections stay open and new ones are accepted. */
  stall() {
    if (this.state !== 'open') throw new Error(`a proxy that is ${this.state} cannot stall`);
    this.state = 'stalled';
  }

  /**
   * Ends a cut or a stall. Resets stalled connections, because bytes in their middle were lost. In a real network, TCP would
   * retransmit them, but the proxy cannot.
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
