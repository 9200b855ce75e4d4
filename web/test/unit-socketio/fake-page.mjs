// A page as the Socket.IO script sees it. The test controls its requests, sockets and timers. `load` runs the script as a
// browser would.
import { readFileSync } from 'node:fs';
import { FakeClock, settled } from '../unit/fake-clock.mjs';

const script = readFileSync(new URL('../../socket.io/socket.io.js', import.meta.url), 'utf8');
const open = 1;

/** A request, whichever way the page made it. It is answered, fails or is canceled once. */
class FakeRequest {
  /** @type {'waiting' | 'answered' | 'failed' | 'given up'} */
  state = 'waiting';

  /**
   * @param {string} kind @param {string} method @param {string} url @param {string | null} body
   * @param {any} [options]
   */
  constructor(kind, method, url, body, options) {
    this.kind = kind;
    this.method = method;
    this.url = url;
    this.body = body;
    /** @type {any} */
    this.options = options;
    /** @type {(status: number, text: string) => void} */
    this.onAnswer = () => {};
    this.onFailure = () => {};
  }

  /** The URL without the parameters that only prevent caching. */
  get address() {
    return this.url.replace(/([?&])t=\d+&?/, '$1').replace(/[?&]$/, '');
  }

  /** @param {string} text */
  async answer(text, status = 200) {
    // A canceled request may still be answered, because the server does not know that it was canceled.
    if (this.state === 'waiting') this.state = 'answered';
    this.onAnswer(status, text);
    await settled();
  }

  async fail() {
    this.state = 'failed';
    this.onFailure();
    await settled();
  }
}

class FakeSocket {
  readyState = 0;
  /** @type {string[]} */
  sent = [];
  onmessage = (/** @type {{data: string}} */ event) => { void event; };
  onclose = () => {};

  /** @param {string} url */
  constructor(url) {
    this.url = url;
  }

  /** @param {string} text */
  send(text) {
    if (this.readyState !== open) throw new Error('The socket is not open.');
    this.sent.push(text);
  }

  close() {
    this.readyState = 3;
  }

  // The test's interface.

  open() {
    this.readyState = open;
    return this;
  }

  /** @param {string[]} frames */
  say(...frames) {
    for (const data of frames) this.onmessage({ data });
    return this;
  }

  fall() {
    this.readyState = 3;
    this.onclose();
  }
}

export class FakePage {
  clock = new FakeClock();
  /** @type {FakeRequest[]} */
  requests = [];
  /** @type {FakeSocket[]} */
  sockets = [];
  /**
   * Errors that listeners threw, as `window.onerror` would get them.
   * @type {unknown[]}
   */
  reported = [];
  /** @type {Record<string, (() => void)[]>} */
  listeners = {};
  /** @type {any} */
  window = {
    addEventListener: (/** @type {string} */ name, /** @type {() => void} */ run) => {
      (this.listeners[name] ??= []).push(run);
    },
  };
  document = {
    readyState: 'complete',
    createElement: () => this.#script(),
    head: { appendChild: (/** @type {any} */ element) => element.start() },
    /** @type {{src: string} | null} */
    currentScript: null,
  };

  constructor(href = 'http://chat.example:8080/talk') {
    this.location = new URL(href);
  }

  /** The `io` the script leaves behind. @returns {any} */
  load() {
    const page = this;
    const WebSocket = class extends FakeSocket {
      /** @param {string} url */
      constructor(url) {
        super(url);
        page.sockets.push(this);
      }
    };
    const names = {
      window: this.window, document: this.document, location: this.location, WebSocket, URL, URLSearchParams,
      XMLHttpRequest: this.#xhr(), fetch: this.#fetch,
      setTimeout: this.#timer, clearTimeout: this.clock.clearTimeout,
    };
    new Function(...Object.keys(names), script)(...Object.values(names));
    return this.window.io;
  }

  /** @param {string} name */
  fire(name) {
    for (const run of this.listeners[name] ?? []) run();
  }

  /** Returns the newest unanswered request. Throws if there is none. */
  get pending() {
    const found = this.requests.filter(({ state }) => state === 'waiting').pop();
    if (!found) throw new Error(`none waits; there were ${this.requests.map(({ method, url }) => [method, url])}`);
    return found;
  }

  /** Returns the newest socket. Throws if there is none. */
  get socket() {
    const found = this.sockets[this.sockets.length - 1];
    if (!found) throw new Error('there is no socket');
    return found;
  }

  /** @param {FakeRequest} request */
  #add(request) {
    this.requests.push(request);
    return request;
  }

  /**
   * The page's clock, which stands still until the test advances it. Keeps the errors that a browser would report.
   * @param {() => void} run @param {number} ms
   */
  #timer = (run, ms) => {
    const { setTimeout: due } = this.clock;
    return due(() => {
      try {
        run();
      } catch (error) {
        this.reported.push(error);
      }
    }, ms);
  };

  #xhr() {
    const page = this;
    return class {
      status = 0;
      responseText = '';
      /** @type {(() => void) | null} */
      onload = null;
      /** @type {(() => void) | null} */
      onerror = null;
      /** @type {FakeRequest | undefined} */
      request;

      /** @param {string} method @param {string} url */
      open(method, url) {
        Object.assign(this, { method, url });
      }

      /** @param {string | null} body */
      send(body) {
        const { method, url } = /** @type {any} */ (this);
        this.request = page.#add(new FakeRequest('xhr', method, url, body));
        this.request.onFailure = () => this.onerror?.();
        this.request.onAnswer = (status, text) => {
          Object.assign(this, { status, responseText: text });
          this.onload?.();
        };
      }

      abort() {
        if (this.request) this.request.state = 'given up';
      }
    };
  }

  #fetch = (/** @type {string} */ url, /** @type {any} */ options) => new Promise((resolve, reject) => {
    const { method = 'GET', body = '' } = options;
    const request = this.#add(new FakeRequest('fetch', method, url, String(body), options));
    request.onAnswer = () => resolve({});
    request.onFailure = () => reject(new TypeError('failed'));
  });

  #script() {
    const page = this;
    return {
      src: '',
      onload: () => {},
      onerror: () => {},
      /** @type {FakeRequest | undefined} */
      request: undefined,
      start() {
        const request = page.#add(new FakeRequest('script', 'GET', this.src, null));
        this.request = request;
        request.onFailure = () => this.onerror();
        request.onAnswer = (status, text) => {
          const place = /[?&](?:i|jsonp)=(\d+)/.exec(this.src)?.[1];
          // A script of another kind, such as an error page, calls no callback.
          if (status === 200) page.window.io.j[Number(place)](text);
          this.onload();
        };
      },
      remove() {
        if (this.request?.state === 'waiting') this.request.state = 'given up';
      },
    };
  }
}

/** Events that only the script itself emits. */
const own = [
  'connecting', 'connect', 'disconnect', 'connect_failed', 'error', 'reconnecting', 'reconnect', 'reconnect_failed',
];

/**
 * Records the script's own events, and those named here.
 * @param {any} socket @param {string[]} more @returns {any[][]}
 */
export function hearing(socket, ...more) {
  /** @type {any[][]} */
  const heard = [];
  for (const name of [...own, ...more]) {
    socket.on(name, (/** @type {any[]} */ ...given) => heard.push([name, ...given]));
  }
  return heard;
}

export const answerToHandshake = 'sid-1:60:50:websocket,xhr-polling,jsonp-polling';

/**
 * A page whose script is connected over this transport.
 * @param {'websocket' | 'xhr-polling' | 'jsonp-polling'} transport @param {Record<string, any>} [options]
 */
export async function connected(transport = 'websocket', options = {}) {
  const page = new FakePage();
  const io = page.load();
  const socket = io.connect('', { transports: [transport], ...options });
  const heard = hearing(socket, 'news');
  await page.pending.answer(answerToHandshake);
  if (transport === 'websocket') page.socket.open().say('1::');
  else await page.pending.answer('1::');
  heard.length = 0;
  return { page, io, socket, heard };
}
