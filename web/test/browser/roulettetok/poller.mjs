// An xhr-polling client on plain sockets, which cancels polls at any time. It has received only the data that arrived before
// the cancellation, and the server must know which data that is.
import assert from 'node:assert/strict';
import net from 'node:net';

/** Returns the packets of a payload, which contains either a single packet or several with their lengths. */
function packetsOf(payload) {
  if (!payload.startsWith('\ufffd')) return [payload];
  return payload.split('\ufffd').slice(1).filter((_, index) => index % 2 === 1);
}

export class Poller {
  /** The number of polls that ended in each way. */
  polls = { answered: 0, givenUp: 0 };
  #isOver = false;

  constructor(port) {
    this.port = port;
  }

  /** Makes the handshake and the first poll, which is answered at once. */
  static async arrive(port) {
    const poller = new Poller(port);
    const answer = await fetch(`http://127.0.0.1:${port}/socket.io/1/`);
    [poller.id] = (await answer.text()).split(':');
    assert.equal(await poller.#poll(30_000), '1::');
    return poller;
  }

  get url() {
    return `/socket.io/1/xhr-polling/${this.id}`;
  }

  /** Polls until `end`, with a timeout of `pollTimeout()` milliseconds per poll. Passes every event that arrives to `hear`. */
  async run(pollTimeout, hear) {
    while (!this.#isOver) {
      const payload = await this.#poll(pollTimeout());
      this.polls[payload === undefined ? 'givenUp' : 'answered'] += 1;
      for (const packet of payload === undefined ? [] : packetsOf(payload)) {
        if (packet.startsWith('5:::')) hear(JSON.parse(packet.slice(4)));
      }
    }
  }

  end() {
    this.#isOver = true;
  }

  /** Sends one poll on a separate connection. Returns its payload, or undefined on a timeout. */
  #poll(pollTimeout) {
    return new Promise((resolve, reject) => {
      const line = net.connect(this.port, '127.0.0.1');
      line.write(`GET ${this.url}?t=${Date.now()} HTTP/1.1\r\nHost: 127.0.0.1:${this.port}\r\n\r\n`);
      const isUp = AbortSignal.timeout(Math.ceil(pollTimeout));
      isUp.addEventListener('abort', () => {
        line.destroy();
        resolve(undefined);
      });
      let received = Buffer.alloc(0);
      line.on('data', (chunk) => {
        received = Buffer.concat([received, chunk]);
        const body = bodyOf(received);
        if (body === undefined) return;
        // Close the connection cleanly, so that the answer counts as read.
        line.end();
        resolve(body);
      });
      line.on('error', reject);
    });
  }

  async emit(name, argument) {
    const body = `5:::${JSON.stringify({ name, args: [argument] })}`;
    const answer = await fetch(`http://127.0.0.1:${this.port}${this.url}`, { method: 'POST', body });
    if (await answer.text() !== '1') throw new Error(`a post was answered with ${answer.status}`);
  }
}

/** Returns the body of a complete answer, or undefined while it is incomplete. */
function bodyOf(received) {
  const start = received.indexOf('\r\n\r\n') + 4;
  if (start < 4) return undefined;
  const head = received.subarray(0, start).toString();
  if (!head.startsWith('HTTP/1.1 200')) throw new Error(head);
  const end = start + Number(/content-length: (\d+)/i.exec(head)[1]);
  return received.length < end ? undefined : received.subarray(start, end).toString();
}
