// The browser client of Socket.IO 0.9: `io.connect()` and the object it returns. It has one connection per server, by WebSocket
// or else by polling, and rejects namespaces. A classic script that defines only `io` and may be loaded twice.
// Invariant: data of an abandoned connection is ignored, however late it arrives.

(function install(/** @type {any} */ page) {
  'use strict';
  // Keep the first copy of this script, because a second copy would lose the connections of the first.
  if (page.io && page.io.protocol === 1) return;

  /** @typedef {(...given: any[]) => void} Listener */
  /** @typedef {(text: string) => void} Hear */
  /** @typedef {{received: Hear, closed: Hear}} Hooks */

  const defaults = {
    transports: ['websocket', 'xhr-polling', 'jsonp-polling'],
    resource: 'socket.io',
    'connect timeout': 10000, // milliseconds, for a handshake or one transport
    reconnect: true,
    'reconnection delay': 500, // milliseconds before the first attempt, doubled for each further one
    'max reconnection attempts': 10,
  };
  // The server may be below a path of its origin, and this script with it.
  const own = /^(\w+:[/]+[^/]+)[/](.+[/])socket\.io[/]socket\.io\.js/.exec(/** @type {any} */ (document.currentScript || {}).src || '') || [];
  const keptPackets = 1000; // while disconnected; no page sends more before it notices
  const boundary = '\ufffd';
  const unreachable = 'The server cannot be reached.';
  const faults = ['transport not supported', 'client not handshaken', 'unauthorized'];

  /** Packets are `type:id+:endpoint:data`. In a payload of several, each is preceded by its length in UTF-16 units. */
  function parse(/** @type {string} */ text) {
    const [, type, id = '', plus = '', endpoint = '', data = ''] =
      /^([0-8])(?::(\d*)(\+?))?(?::([^:]*))?(?::([^]*))?$/.exec(text) || [];
    return { type: Number(type), id, asks: plus === '+', endpoint, data };
  }

  /** @param {string} text @returns {any} undefined if it is not JSON */
  function fromJSON(text) {
    try { return JSON.parse(text); } catch (error) { return undefined; }
  }

  function frame(/** @type {string[]} */ packets) {
    return packets.length === 1 ? packets[0] : packets.map((each) => boundary + each.length + boundary + each).join('');
  }

  function unframe(/** @type {string} */ payload) {
    const packets = payload[0] === boundary ? [] : [payload];
    const header = new RegExp(`^${boundary}(\\d+)${boundary}`);
    let rest = payload;
    for (let head = header.exec(rest); head; head = header.exec(rest)) {
      const end = head[0].length + Number(head[1]);
      packets.push(rest.slice(head[0].length, end));
      rest = rest.slice(end);
    }
    return packets;
  }

  function stamped(/** @type {string} */ url, more = '') {
    // Avoid answers from a cache.
    return `${url}${url.includes('?') ? '&' : '?'}t=${Date.now()}${more}`;
  }

  /** @param {string} url @param {string | null} body null for a GET request @param {Hear} done @param {Hear} failed */
  function request(url, body, done, failed) {
    const xhr = new XMLHttpRequest();
    xhr.open(body === null ? 'GET' : 'POST', stamped(url));
    xhr.onload = () => (xhr.status === 200 ? done : failed)(xhr.responseText);
    xhr.onerror = () => failed(unreachable);
    xhr.send(body);
    return () => {
      xhr.onload = xhr.onerror = null;
      xhr.abort();
    };
  }

  /** @param {string} url @param {string} payload @param {Hear} done @param {Hear} failed */
  function sendForm(url, payload, done, failed) {
    const body = new URLSearchParams({ d: JSON.stringify(payload) });
    // A form may be sent to another origin without permission, and the page does not need its answer.
    fetch(stamped(url), { method: 'POST', mode: 'no-cors', body }).then(() => done(''), () => failed(unreachable));
  }

  /**
   * @param {string} url @param {string} key the URL parameter for the callback's index @param {Hear} done @param {Hear} failed
   */
  function runScript(url, key, done, failed) {
    const script = document.createElement('script');
    let isOver = false;
    const end = (/** @type {Hear} */ then) => (/** @type {any} */ text) => {
      const isNews = !isOver;
      isOver = true;
      script.remove();
      if (isNews) then(text);
    };
    // Never reuse an index: an answer may arrive after the request was abandoned.
    const place = page.io.j.push(end(done)) - 1;
    script.onload = script.onerror = end(() => failed(unreachable));
    script.src = stamped(url, `&${key}=${place}`);
    // A pending script must not keep the page loading.
    const add = () => isOver || document.head.appendChild(script);
    if (document.readyState === 'complete') add();
    else page.addEventListener('load', () => setTimeout(add, 0));
    return () => end(() => {})('');
  }

  /** A transport: `write`, `close`, and `leave` for when the page unloads. */
  function overWebSocket(/** @type {string} */ url, /** @type {Hooks} */ hooks) {
    const socket = new WebSocket(url.replace(/^http/, 'ws'));
    socket.onmessage = (event) => hooks.received(String(event.data));
    socket.onclose = () => hooks.closed('transport closed');
    const send = (/** @type {string} */ packet) => socket.readyState === 1 && socket.send(packet);
    const write = (/** @type {string[]} */ packets) => packets.forEach(send);
    const close = () => socket.close();
    return { write, close, leave() { write(['0::']); close(); } };
  }

  /**
   * The polling transports: one request that waits for packets, and at most one that sends some, so that these stay in order.
   *
   * @param {(url: string, done: Hear, failed: Hear) => (() => void)} get returns a function that cancels it
   * @param {(url: string, payload: string, done: Hear, failed: Hear) => void} post
   */
  const polling = (get, post) => (/** @type {string} */ url, /** @type {Hooks} */ hooks) => {
    const unsent = /** @type {string[]} */ ([]);
    let [isPosting, isOver, giveUp] = [false, false, () => {}];
    const poll = () => {
      if (!isOver) giveUp = get(url, (text) => { hooks.received(text); poll(); }, hooks.closed);
    };
    const write = (/** @type {string[]} */ packets) => {
      unsent.push(...packets);
      if (isPosting || unsent.length === 0) return;
      isPosting = true;
      post(url, frame(unsent.splice(0)), () => { isPosting = false; write([]); }, hooks.closed);
    };
    poll();
    return {
      write,
      // Pending packets are still sent: the last one may be the disconnect.
      close() { isOver = true; giveUp(); },
      // The browser sends a `keepalive` request even after the page has unloaded.
      leave() { fetch(stamped(url, '&disconnect=1'), { keepalive: true, mode: 'no-cors' }).catch(() => {}); },
    };
  };

  /** @type {Record<string, (url: string, hooks: Hooks) => ReturnType<typeof overWebSocket>>} */
  const transports = {
    websocket: overWebSocket,
    'xhr-polling': polling((url, done, failed) => request(url, null, done, failed), request),
    'jsonp-polling': polling((url, done, failed) => runScript(url, 'i', done, failed), sendForm),
  };

  class Emitter {
    constructor() {
      this.known = /** @type {Map<string, any[]>} */ (new Map());
    }

    on(/** @type {string} */ name, /** @type {Listener} */ listener) {
      this.known.set(name, this.listeners(name).concat(listener));
      return this;
    }

    once(/** @type {string} */ name, /** @type {Listener} */ listener) {
      const first = (/** @type {any[]} */ ...given) => listener.apply(this.removeListener(name, first), given);
      return this.on(name, Object.assign(first, { listener }));
    }

    removeListener(/** @type {string} */ name, /** @type {Listener} */ listener) {
      this.known.set(name, this.listeners(name).filter((each) => each !== listener && each.listener !== listener));
      return this;
    }

    removeAllListeners(name = '') {
      for (const each of name ? [name] : this.known.keys()) this.known.delete(each);
      return this;
    }

    listeners(/** @type {string} */ name) {
      return this.known.get(name) || [];
    }

    $emit(/** @type {string} */ name, /** @type {any[]} */ ...given) {
      for (const listener of this.listeners(name)) {
        try {
          listener.apply(this, given);
        } catch (error) {
          // An exception in a handler of the page is reported as the page's own, and the other handlers still run.
          setTimeout(() => { throw error; }, 0);
        }
      }
    }
  }

  const made = /** @type {Socket[]} */ ([]);

  /** The object that a page uses. It keeps one connection to a server, and reconnects when the connection is lost. */
  class Socket extends Emitter {
    /** @param {string} base the address up to the protocol's number @param {string} query @param {object} options */
    constructor(base, query, options) {
      super();
      this.base = base;
      this.query = query;
      this.options = /** @type {any} */ (Object.assign({}, defaults, options));
      this.connected = this.connecting = this.reconnecting = false;
      this.sessionid = '';
      this.socket = this; // In Socket.IO 0.9 these were two objects, and pages use members of both.
      this.json = { send: (/** @type {any} */ data, /** @type {any} */ f) => this.pack(4, JSON.stringify(data), f) };
      this.transport = /** @type {any} */ (null);
      this.unsent = /** @type {string[]} */ ([]);
      this.answers = new Emitter(); // Acknowledgement callbacks, by number.
      this.timer = /** @type {any} */ (undefined); // For a connection attempt, the server's silence, or the pause before the next attempt.
      this.asked = this.silence = this.attempts = this.turn = 0;
      made.push(this);
    }

    /** @param {string} name @param {any[]} args the last may be a callback for the acknowledgement */
    emit(name, ...args) {
      const done = typeof args[args.length - 1] === 'function' ? args.pop() : undefined;
      return this.pack(5, JSON.stringify(args.length > 0 ? { name, args } : { name }), done, '+');
    }

    send(/** @type {string} */ text, /** @type {Listener=} */ done) {
      return this.pack(3, text, done);
    }

    of(name = '') {
      if (!name) return this;
      const refused = new Socket(this.base, this.query, this.options);
      setTimeout(() => refused.failed('This server does not support namespaces. Connect without one.'), 0);
      return refused;
    }

    connect() {
      if (!this.connected && !this.connecting) this.attempt(this.options.transports);
      return this;
    }

    disconnect() {
      this.reconnecting = false;
      this.unsent = [];
      if (this.connected) this.push('0::');
      this.ended('booted');
      return this;
    }

    /** `plus` requests data in the acknowledgement. */
    pack(/** @type {number} */ type, /** @type {string} */ data, /** @type {Listener=} */ done, plus = '') {
      if (done) this.answers.once(String(this.asked += 1), done);
      this.push(`${type}:${done ? this.asked + plus : ''}::${data}`);
      return this;
    }

    /** Sends the packet now, or after connecting. */
    push(/** @type {string} */ packet) {
      if (this.connected) this.transport.write([packet]);
      else if (this.unsent.length < keptPackets) this.unsent.push(packet);
      else this.$emit('error', 'Too many messages were sent while disconnected. The last ones are lost.');
    }

    /** Does the handshake for the first of these transports; the others are fallbacks. */
    attempt(/** @type {string[]} */ names) {
      this.drop();
      this.connecting = true;
      const failed = this.current((why) => this.failed(why));
      const shaken = this.current((answer) => this.shaken(answer, names));
      this.later(this.options['connect timeout'], failed);
      if (names[0] === 'jsonp-polling') runScript(this.base + this.query, 'jsonp', shaken, failed);
      else request(this.base + this.query, null, shaken, failed);
    }

    shaken(/** @type {string} */ answer, /** @type {string[]} */ names) {
      const [id, heartbeat, close, offered] = answer.split(':');
      const [name, ...others] = names.filter((each) => transports[each] && String(offered).split(',').includes(each));
      if (!name) return this.failed(offered ? 'The server supports none of the transports that this page uses.' : answer);
      const fallBack = this.current((why) => (others[0] ? this.attempt(others) : this.failed(why)));
      const open = this.current(() => this.open(name, id, fallBack));
      this.sessionid = id;
      // Polling receives nothing between two responses, so allow a longer silence.
      this.silence = heartbeat ? 1000 * (Number(heartbeat) + (name === 'websocket' ? 0 : Number(close))) : Infinity;
      this.later(this.options['connect timeout'], fallBack);
      this.$emit('connecting', name);
      open('');
    }

    open(/** @type {string} */ name, /** @type {string} */ id, /** @type {Hear} */ fallBack) {
      const received = this.current((text) => this.received(text));
      const closed = this.current((reason) => (this.connected ? this.ended(reason) : fallBack(reason)));
      this.transport = Object.assign(transports[name](`${this.base}${name}/${id}`, { received, closed }), { name });
    }

    received(/** @type {string} */ text) {
      const handle = this.current((packet) => this.handle(parse(packet)));
      for (const packet of unframe(text)) handle(packet);
      if (this.connected) this.later(this.silence, () => this.ended('heartbeat timeout'));
    }

    handle(/** @type {ReturnType<typeof parse>} */ { type, id, asks, endpoint, data }) {
      if (endpoint) return;
      const list = /** @type {any[]} */ ([]);
      const answer = (/** @type {any[]} */ ...given) => this.push(`6:::${id}+${JSON.stringify(given)}`);
      const hear = (/** @type {string} */ name, /** @type {any[]} */ given) => {
        if (id && !asks) this.push(`6:::${id}`);
        this.$emit(name, ...given, ...asks ? [answer] : []);
      };
      if (type === 0) this.ended('booted');
      if (type === 1 && this.connecting) this.welcomed();
      if (type === 2) this.push('2::');
      if (type === 3 || type === 4) hear('message', [type === 3 ? data : fromJSON(data)]);
      const { name, args = [] } = Object(fromJSON(data));
      if (type === 5 && name) hear(name, list.concat(args));
      const [first, rest] = data.split(/\+([^]*)/);
      if (type === 6) this.answers.$emit(first, ...list.concat(fromJSON(rest) || []));
      if (type === 7) this.faulted(first, rest);
    }

    welcomed() {
      const { reconnecting, transport } = this;
      this.connected = true;
      this.connecting = this.reconnecting = false;
      if (this.unsent.length > 0) transport.write(this.unsent.splice(0));
      this.$emit('connect');
      if (reconnecting && this.connected) this.$emit('reconnect', transport.name, this.attempts);
    }

    faulted(/** @type {string} */ reason, /** @type {string} */ advice) {
      const text = faults[Number(reason)] || reason;
      if (!this.connected) return this.failed(text);
      this.$emit('error', text);
      // Reconnecting is the only advice that the protocol has.
      if (advice) this.ended('error');
    }

    ended(/** @type {string} */ reason) {
      const wasConnected = this.connected;
      this.drop();
      if (wasConnected) this.$emit('disconnect', reason);
      if (!wasConnected || this.connecting || reason === 'booted' || !this.options.reconnect) return;
      this.attempts = 0;
      this.again();
    }

    again() {
      this.reconnecting = this.attempts < this.options['max reconnection attempts'];
      if (!this.reconnecting) return this.$emit('reconnect_failed');
      const delay = this.options['reconnection delay'] * 2 ** this.attempts;
      this.attempts += 1;
      this.later(delay, () => this.connect());
      this.$emit('reconnecting', delay, this.attempts);
    }

    hide() {
      if (this.transport) this.transport.leave();
      if (this.connected) this.ended('page hidden');
    }

    failed(reason = unreachable) {
      this.drop();
      if (this.reconnecting) return this.again();
      this.$emit('error', reason);
      this.$emit('connect_failed', reason);
    }

    drop() {
      this.turn += 1;
      this.connected = this.connecting = false;
      clearTimeout(this.timer);
      if (this.transport) this.transport.close();
      this.transport = null;
    }

    /** Handles events of the current attempt until it is abandoned, which increments `turn`. */
    current(/** @type {Hear} */ hear) {
      const { turn } = this;
      return (/** @type {string} */ text) => (turn === this.turn ? hear(text) : undefined);
    }

    later(/** @type {number} */ ms, /** @type {any} */ run) {
      clearTimeout(this.timer);
      if (ms < Infinity) this.timer = setTimeout(run, ms);
    }
  }

  /** @param {string} [url] @param {any} [given] */
  function connect(url = '', given = {}) {
    const base = `${given.secure ? 'https:' : location.protocol}//${location.host}`;
    // Pages also pass a host without a scheme, with or without slashes.
    const { origin, search, pathname } = new URL(/^(\w+:\/)?\/|^$/.test(url) ? url : `//${url}`, base);
    const usual = (origin === own[1] ? own[2] : '') + defaults.resource;
    const resource = String(given.resource || usual).replace(/^\/|\/$/g, '');
    const sockets = given['force new connection'] ? {} : page.io.sockets;
    const socket = sockets[origin] = sockets[origin] || new Socket(`${origin}/${resource}/1/`, search, given);
    if (!socket.reconnecting) socket.connect();
    return socket.of(pathname.slice(1));
  }

  // When a tab closes, Firefox often stops the first script that runs. This one does nothing and protects those that follow.
  page.addEventListener('pagehide', () => {});
  page.addEventListener('pagehide', () => made.forEach((socket) => socket.hide()));
  page.io = { version: '0.9', protocol: 1, transports: Object.keys(transports), sockets: {}, j: [], connect, Socket };
}(window));
