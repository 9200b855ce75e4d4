// Commands and events over one WebSocket. This is the part that the Chrome DevTools Protocol and WebDriver BiDi have in common.
import { createRequire } from 'node:module';
import { within } from './wait.mjs';

/** The package for WebSocket clients and servers. Node contains a client only since version 22, and no server. */
export const { WebSocket, WebSocketServer } = loadWebSocketPackage();

function loadWebSocketPackage() {
  // First try Node's own search path, including `NODE_PATH`, and then Debian's packages, which only Debian's Node finds.
  const places = [[import.meta.url, 'ws'], ['/usr/share/nodejs/', './ws']];
  for (const [from, name] of places) {
    try {
      return createRequire(from)(name);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new Error('the WebSocket package "ws" is missing: run scripts/browser-setup');
}

/** The error if a command failed. `code` is the protocol's error code. */
export class CommandError extends Error {
  constructor(method, code, message) {
    super(`${method}: ${message}`);
    this.code = code;
  }
}

/** The timeout that detects a hanging browser. No command takes this long, not even a screenshot on a busy machine. */
const commandTimeout = 60_000;

export class RemoteControl {
  #lastId = 0;
  #pending = new Map();
  #listeners = new Map();

  /**
   * @param {string} url
   * @param {import('./namespace.mjs').Machine} [machine] the machine to which the address belongs
   * @returns {Promise<RemoteControl>}
   */
  static async connect(url, machine) {
    // Screenshots are large messages, and the other end is always our own browser.
    const socket = new WebSocket(url, { maxPayload: 256 * 1024 * 1024, perMessageDeflate: false, agent: machine?.agent });
    const opened = new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    await within(opened, 20_000, () => `no connection to ${url} yet`);
    return new RemoteControl(socket);
  }

  constructor(socket) {
    this.socket = socket;
    socket.on('message', (data) => this.#receive(JSON.parse(data)));
    socket.on('error', () => {}); // a killed browser resets the connection; `close` follows and is what counts
    socket.on('close', () => {
      for (const { method, reject } of this.#pending.values()) {
        reject(new Error(`${method}: the browser is gone`));
      }
      this.#pending.clear();
    });
  }

  /**
   * @param {string} method
   * @param {object} [params]
   * @param {object} [envelope] more fields beside `id`, such as CDP's `sessionId`
   */
  send(method, params = {}, envelope = {}) {
    if (this.socket.readyState !== WebSocket.OPEN) return Promise.reject(new Error(`${method}: the browser is gone`));
    const id = ++this.#lastId;
    const answer = new Promise((resolve, reject) => this.#pending.set(id, { method, resolve, reject }));
    this.socket.send(JSON.stringify({ id, method, params, ...envelope }));
    return within(answer, commandTimeout, () => `${method}: no answer from the browser yet`);
  }

  /**
   * @param {string} event
   * @param {(params: any, sessionId?: string) => void} listener
   */
  on(event, listener) {
    if (!this.#listeners.has(event)) this.#listeners.set(event, []);
    this.#listeners.get(event).push(listener);
  }

  #receive(message) {
    if (message.id !== undefined && message.id !== null) {
      const waiting = this.#pending.get(message.id);
      if (!waiting) return;
      this.#pending.delete(message.id);
      const { error } = message;
      // In CDP, `error` is {code, message}. In BiDi, `error` is the code, and `message` is next to it.
      if (error) waiting.reject(new CommandError(waiting.method, error.code ?? error, error.message ?? message.message));
      else waiting.resolve(message.result);
    } else {
      for (const listener of this.#listeners.get(message.method) ?? []) listener(message.params, message.sessionId);
    }
  }

  close() {
    this.socket.terminate();
  }
}
