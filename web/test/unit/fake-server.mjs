// A server for one client, behind a fake `WebSocket`. It welcomes, numbers, acknowledges and resumes as in protocol §1 and §3.
// The test defines its answers.
import { Link } from '../../lib/signaling/link.js';

const opening = 0;
const open = 1;
const closed = 3;

export class FakeServer {
  /** @type {FakeSocket[]} every socket ever opened */
  sockets = [];
  /** @type {any[]} every message a client sent, in order */
  heard = [];
  /** @type {Record<string, (message: any) => any>} by type: the answer's members, nothing for `ok`, null for no answer */
  answers = {};
  /** Whether the server is up. */
  isUp = true;
  grace = 30_000;
  link = new Link();
  secrets = 0;
  /** @type {(hello: any, socket: FakeSocket) => void} */
  greet = (hello, socket) => this.welcome(hello, socket);

  constructor() {
    const server = this;
    /** @type {any} the `WebSocket` class for the client */
    this.WebSocket = class extends FakeSocket {
      /** @param {string} url @param {string} protocol */
      constructor(url, protocol) {
        super(url, protocol, server);
      }
    };
  }

  get socket() {
    return this.sockets[this.sockets.length - 1];
  }

  /** @param {string} type */
  heardOf(type) {
    return this.heard.filter((message) => message.type === type);
  }

  /** @param {any} hello @param {FakeSocket} socket */
  welcome(hello, socket) {
    const missing = hello.resume?.secret === `secret ${this.secrets}` ? this.link.replay(hello.resume.received) : null;
    if (hello.resume && !missing) socket.say({ type: 'error', code: 'resume_failed', message: 'Start again.', retryable: true });
    if (!missing) this.link = new Link();
    this.secrets += 1;
    socket.say({
      type: 'welcome', version: 1, server: '1', connectionId: 'c'.repeat(32), resumed: Boolean(missing), received: this.link.received,
      ...(hello.identity || hello.token ? {} : { identity: 'a_new' }),
      resume: { secret: `secret ${this.secrets}`, graceMs: this.grace }, pingMs: 10_000,
      ice: { servers: [], relayOnly: false, expiresAt: null },
      limits: { message: 65536, description: 262144, interests: 10, signal: 8192 },
      state: { sessions: [], roulette: { state: 'idle' } },
    });
    for (const message of missing ?? []) socket.say(message);
  }

  /**
   * Sends a numbered message, like every message after the welcome.
   * @param {any} message
   */
  send(message) {
    const numbered = this.link.send(message);
    if (this.socket?.readyState === open) this.socket.say(numbered);
  }

  /** @param {any} message @param {FakeSocket} socket */
  receive(message, socket) {
    this.heard.push(message);
    if (message.type === 'hello') return this.greet(message, socket);
    if (message.type === 'ping') return socket.say({ type: 'pong' });
    if (typeof message.ack === 'number') this.link.acknowledged(message.ack);
    if (message.seq === undefined || this.link.receive(message.seq) !== 'deliver') return;
    const answer = this.answers[message.type]?.(message);
    if (answer === null) return;
    this.send({ type: 'ok', ...answer, re: message.seq });
  }
}

class FakeSocket {
  readyState = opening;
  /** @type {(event?: any) => void} */
  onopen = () => {};
  /** @type {(event: {data: string}) => void} */
  onmessage = () => {};
  /** @type {(event: {code: number}) => void} */
  onclose = () => {};
  /** @type {number | undefined} the code with which the client closed it */
  closedWith;
  /** Whether the client's messages are lost, as on a dead network. */
  isDeaf = false;

  /** @param {string} url @param {string} protocol @param {FakeServer} server */
  constructor(url, protocol, server) {
    Object.assign(this, { url, protocol });
    this.server = server;
    server.sockets.push(this);
    queueMicrotask(() => {
      if (this.readyState !== opening) return;
      if (!server.isUp) return this.drop();
      this.readyState = open;
      this.onopen();
    });
  }

  /** @param {string} text */
  send(text) {
    // Asynchronous, as on a network, so the server finishes its current message first.
    if (this.readyState === open && !this.isDeaf) queueMicrotask(() => this.server.receive(JSON.parse(text), this));
  }

  /** @param {number} code */
  close(code) {
    this.closedWith = code;
    this.readyState = closed;
  }

  // ---- The server's side

  /** @param {any} message */
  say(message) {
    if (this.readyState === open && !this.isDeaf) this.onmessage({ data: JSON.stringify(message) });
  }

  drop(code = 1006) {
    this.readyState = closed;
    this.onclose({ code });
  }
}
