// A client of the protocol without a page.
import { WebSocket } from './remote-control.mjs';
import { NotYet, until } from './wait.mjs';

/** A minimal client of the protocol: numbers its messages and stores everything it receives. */
export class Guest {
  heard = [];
  closed;
  #seq = 0;

  static async arrive(url, identity) {
    const guest = new Guest();
    guest.socket = new WebSocket(`${url.replace('http', 'ws')}/v1/socket`, 'confab.v1');
    guest.socket.on('error', () => {});
    guest.socket.on('close', (code) => { guest.closed = code; });
    guest.socket.on('message', (data) => guest.heard.push(JSON.parse(String(data))));
    await new Promise((resolve, reject) => { guest.socket.once('open', resolve).once('error', reject); });
    guest.socket.send(JSON.stringify({ type: 'hello', version: 1, identity }));
    return guest;
  }

  /** Sends a request and waits for its answer. */
  async ask(type, members = {}) {
    this.#seq += 1;
    const re = this.#seq;
    this.socket.send(JSON.stringify({ type, seq: re, ...members }));
    return this.hear(`the answer to ${type}`, (message) => message.re === re);
  }

  hear(what, test) {
    return until(what, async () => {
      const message = this.heard.find(test);
      if (!message) throw new NotYet(`heard ${this.heard.map(({ type, code }) => code ?? type).join(', ')}; closed: ${this.closed}`);
      return message;
    });
  }

  isType(type) {
    return this.hear(type, (message) => message.type === type);
  }
}
