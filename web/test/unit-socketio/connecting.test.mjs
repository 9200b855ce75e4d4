// Tests how the Socket.IO script finds the server, connects, falls back, gives up and reconnects.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { answerToHandshake, connected, FakePage, hearing } from './fake-page.mjs';

describe('connecting', () => {
  test('makes a handshake, opens a WebSocket and is connected when the server says so', async () => {
    const page = new FakePage();
    const socket = page.load().connect();
    const heard = hearing(socket);
    assert.equal(page.pending.address, 'http://chat.example:8080/socket.io/1/');
    assert.match(page.pending.url, /\?t=\d+$/);
    await page.pending.answer(answerToHandshake);
    assert.equal(page.socket.url, 'ws://chat.example:8080/socket.io/1/websocket/sid-1');
    assert.deepEqual(heard, [['connecting', 'websocket']]);
    page.socket.open();
    assert.equal(socket.connected, false);
    page.socket.say('1::');
    assert.deepEqual(heard, [['connecting', 'websocket'], ['connect']]);
    assert.deepEqual([socket.connected, socket.sessionid, socket.socket.sessionid], [true, 'sid-1', 'sid-1']);
    assert.equal(socket.socket.transport.name, 'websocket');
  });

  test('connects to the given address, in every form that pages use', () => {
    /** @type {[string | undefined, any, string][]} */
    const cases = [
      [undefined, {}, 'http://chat.example:8080/socket.io/1/'],
      ['', {}, 'http://chat.example:8080/socket.io/1/'],
      ['/', {}, 'http://chat.example:8080/socket.io/1/'],
      ['http://other.example', {}, 'http://other.example/socket.io/1/'],
      ['https://other.example:444/', {}, 'https://other.example:444/socket.io/1/'],
      ['//other.example:1', {}, 'http://other.example:1/socket.io/1/'],
      ['other.example:3000', {}, 'http://other.example:3000/socket.io/1/'],
      ['localhost', {}, 'http://localhost/socket.io/1/'],
      ['other.example', { secure: true }, 'https://other.example/socket.io/1/'],
      ['', { resource: '/deep/io/' }, 'http://chat.example:8080/deep/io/1/'],
      ['http://other.example/?token=a', {}, 'http://other.example/socket.io/1/?token=a'],
    ];
    for (const [url, options, expected] of cases) {
      const page = new FakePage();
      page.load().connect(url, options);
      assert.equal(page.pending.address, expected);
    }
  });

  test('connects below the path that the script is loaded from, but only to the same server, and not if the page names another', () => {
    const below = 'http://chat.example:8080/some/video/socket.io/socket.io.js';
    /** @type {[string, string | undefined, any, string][]} */
    const cases = [
      [below, undefined, {}, 'http://chat.example:8080/some/video/socket.io/1/'],
      [`${below}?v=2`, '//chat.example:8080', {}, 'http://chat.example:8080/some/video/socket.io/1/'],
      [below, 'http://other.example', {}, 'http://other.example/socket.io/1/'],
      [below, '', { resource: 'io' }, 'http://chat.example:8080/io/1/'],
      ['http://chat.example:8080/socket.io/socket.io.js', '', {}, 'http://chat.example:8080/socket.io/1/'],
      ['http://chat.example:8080/scripts/bundle.js', '', {}, 'http://chat.example:8080/socket.io/1/'],
    ];
    for (const [src, url, options, expected] of cases) {
      const page = new FakePage();
      page.document.currentScript = { src };
      page.load().connect(url, options);
      assert.equal(page.pending.address, expected, src);
    }
  });

  test('uses TLS from a page loaded over TLS', async () => {
    const page = new FakePage('https://chat.example/');
    page.load().connect('other.example');
    assert.equal(page.pending.address, 'https://other.example/socket.io/1/');
    await page.pending.answer(answerToHandshake);
    assert.equal(page.socket.url, 'wss://other.example/socket.io/1/websocket/sid-1');
  });

  test('shares one connection per server, unless the page requests a new one', () => {
    const page = new FakePage();
    const io = page.load();
    const first = io.connect();
    assert.equal(io.connect('http://chat.example:8080/'), first);
    assert.equal(page.requests.length, 1);
    assert.notEqual(io.connect('', { 'force new connection': true }), first);
    assert.equal(io.connect(), first);
    assert.notEqual(io.connect('http://other.example'), first);
    assert.equal(page.requests.length, 3);
  });

  test('keeps its connections when the page loads it twice', () => {
    const page = new FakePage();
    const io = page.load();
    const socket = io.connect();
    assert.equal(page.load(), io);
    assert.equal(io.connect(), socket);
    assert.equal(page.requests.length, 1);
  });

  test('rejects namespaces, and never requests one from the server', async () => {
    const page = new FakePage();
    const io = page.load();
    const root = io.connect();
    const address = 'http://chat.example:8080/news';
    for (const ask of [() => root.of('/news'), () => io.connect('/news'), () => io.connect(address)]) {
      const refused = ask();
      const heard = hearing(refused);
      refused.emit('hello');
      await page.clock.advance(0);
      assert.deepEqual(heard.map(([name]) => name), ['error', 'connect_failed']);
      assert.match(heard[0][1], /does not support namespaces/);
    }
    assert.equal(root.of(''), root);
    assert.equal(page.requests.length, 1);
  });

  test('reports why a server rejected the handshake', async () => {
    const page = new FakePage();
    const heard = hearing(page.load().connect());
    const why = 'banned: Come back tomorrow.';
    await page.pending.answer(why, 403);
    assert.deepEqual(heard, [['error', why], ['connect_failed', why]]);
    await page.clock.advance(100_000);
    assert.equal(page.requests.length, 1);
  });

  test('does not accept another page\'s text as a handshake', async () => {
    const page = new FakePage();
    const heard = hearing(page.load().connect());
    await page.pending.answer('<h1>Welcome</h1>');
    assert.deepEqual(heard.map(([name]) => name), ['error', 'connect_failed']);
  });

  test('limits the wait for a handshake', async () => {
    const page = new FakePage();
    const heard = hearing(page.load().connect('', { 'connect timeout': 3000 }));
    const late = page.pending;
    await page.clock.advance(3000);
    assert.deepEqual(heard.map(([name]) => name), ['error', 'connect_failed']);
    await late.answer(answerToHandshake);
    assert.equal(page.sockets.length, 0);
  });
});

describe('falling back', () => {
  test('goes from WebSocket to polling to scripts, with a handshake for each', async () => {
    const page = new FakePage();
    const heard = hearing(page.load().connect());
    await page.pending.answer(answerToHandshake);
    page.socket.fall();
    await page.pending.answer(answerToHandshake.replace('sid-1', 'sid-2'));
    assert.equal(page.pending.address, 'http://chat.example:8080/socket.io/1/xhr-polling/sid-2');
    await page.pending.fail();
    assert.equal(page.pending.address, 'http://chat.example:8080/socket.io/1/?jsonp=0');
    await page.pending.answer(answerToHandshake.replace('sid-1', 'sid-3'));
    assert.match(page.pending.address, /jsonp-polling\/sid-3\?i=1$/);
    await page.pending.answer('1::');
    assert.deepEqual(heard, [
      ['connecting', 'websocket'], ['connecting', 'xhr-polling'], ['connecting', 'jsonp-polling'], ['connect'],
    ]);
  });

  test('also falls back if a WebSocket opens but receives nothing', async () => {
    const page = new FakePage();
    const heard = hearing(page.load().connect('', { 'connect timeout': 2000 }));
    await page.pending.answer(answerToHandshake);
    const silent = page.socket.open();
    await page.clock.advance(2000);
    await page.pending.answer(answerToHandshake);
    await page.pending.answer('1::');
    silent.say('1::', '5:::{"name":"late"}');
    assert.deepEqual(heard, [['connecting', 'websocket'], ['connecting', 'xhr-polling'], ['connect']]);
    assert.equal(silent.readyState, 3);
  });

  test('uses only transports that both the page and the server support', async () => {
    const page = new FakePage();
    const io = page.load();
    const heard = hearing(io.connect('', { transports: ['flashsocket', 'jsonp-polling', 'xhr-polling'] }));
    await page.pending.answer('sid-1:60:60:websocket,flashsocket,xhr-polling');
    assert.deepEqual(heard, [['connecting', 'xhr-polling']]);
    const other = hearing(io.connect('http://other.example', { transports: ['jsonp-polling'] }));
    await page.pending.answer('sid-1:60:60:websocket');
    assert.deepEqual(other.map(([name]) => name), ['error', 'connect_failed']);
  });

  test('fails when there is no transport left', async () => {
    const page = new FakePage();
    const heard = hearing(page.load().connect('', { transports: ['websocket'] }));
    await page.pending.answer(answerToHandshake);
    page.socket.fall();
    assert.deepEqual(heard.map(([name]) => name), ['connecting', 'error', 'connect_failed']);
  });
});

describe('losing the connection', () => {
  test('reconnects, doubling the wait before each attempt', async () => {
    const { page, socket, heard } = await connected();
    page.socket.fall();
    assert.deepEqual(heard, [['disconnect', 'transport closed'], ['reconnecting', 500, 1]]);
    await page.clock.advance(499);
    assert.equal(page.requests.length, 1);
    await page.clock.advance(1);
    await page.pending.fail();
    assert.deepEqual(heard.pop(), ['reconnecting', 1000, 2]);
    await page.clock.advance(1000);
    await page.pending.answer('sid-2:60:60:websocket');
    page.socket.open().say('1::');
    assert.deepEqual(heard.slice(-3), [['connecting', 'websocket'], ['connect'], ['reconnect', 'websocket', 2]]);
    assert.equal(socket.sessionid, 'sid-2');
  });

  test('gives up after the allowed attempts, and can be started again', async () => {
    const options = { 'max reconnection attempts': 3, 'reconnection delay': 100 };
    const { page, io, heard } = await connected('websocket', options);
    page.socket.fall();
    for (const delay of [100, 200, 400]) {
      await page.clock.advance(delay);
      await page.pending.answer('no', 503);
    }
    const names = heard.map(([name]) => name);
    assert.deepEqual(names, ['disconnect', 'reconnecting', 'reconnecting', 'reconnecting', 'reconnect_failed']);
    await page.clock.advance(1e6);
    assert.equal(page.requests.length, 4);
    io.connect();
    assert.equal(page.requests.length, 5);
  });

  test('does not reconnect if the page does not want it', async () => {
    const { page, heard } = await connected('websocket', { reconnect: false });
    page.socket.fall();
    await page.clock.advance(1e6);
    assert.deepEqual(heard, [['disconnect', 'transport closed']]);
  });

  test('does not reconnect after the server ended it, until the page connects again', async () => {
    const { page, io, heard } = await connected();
    page.socket.say('0::');
    assert.equal(page.socket.readyState, 3);
    await page.clock.advance(1e6);
    assert.deepEqual(heard, [['disconnect', 'booted']]);
    io.connect();
    await page.pending.answer('sid-2:60:60:websocket');
    page.socket.open().say('1::');
    assert.deepEqual(heard.slice(1), [['connecting', 'websocket'], ['connect']]);
  });

  test('is detected by silence, which any packet ends', async () => {
    const { page, heard } = await connected();
    await page.clock.advance(59_999);
    page.socket.say('8::');
    await page.clock.advance(59_999);
    assert.deepEqual(heard, []);
    await page.clock.advance(1);
    assert.deepEqual(heard, [['disconnect', 'heartbeat timeout'], ['reconnecting', 500, 1]]);
  });

  test('is detected later when polling, because one poll may follow another', async () => {
    const { page, heard } = await connected('xhr-polling');
    await page.clock.advance(109_999);
    assert.deepEqual(heard, []);
    await page.clock.advance(1);
    assert.deepEqual(heard[0], ['disconnect', 'heartbeat timeout']);
  });

  test('is not detected if the server sends no timeout', async () => {
    const page = new FakePage();
    const heard = hearing(page.load().connect());
    await page.pending.answer('sid-1:::websocket');
    page.socket.open().say('1::');
    await page.clock.advance(1e9);
    assert.deepEqual(heard, [['connecting', 'websocket'], ['connect']]);
  });

  test('follows an error with the advice to reconnect', async () => {
    const { page, heard } = await connected('xhr-polling');
    await page.pending.answer('7:::2');
    assert.deepEqual(heard, [['error', 'unauthorized']]);
    await page.pending.answer('7:::1+0');
    const [, ...others] = heard;
    assert.deepEqual(others, [['error', 'client not handshaken'], ['disconnect', 'error'], ['reconnecting', 500, 1]]);
  });

  test('leaves nothing behind when the page closes it', async () => {
    const { page, socket, heard } = await connected();
    const { socket: line } = page;
    socket.emit('bye');
    socket.disconnect();
    assert.deepEqual(line.sent, ['5:::{"name":"bye"}', '0::']);
    assert.equal(line.readyState, 3);
    assert.deepEqual(heard, [['disconnect', 'booted']]);
    line.say('5:::{"name":"news"}');
    line.fall();
    socket.disconnect();
    assert.equal(heard.length, 1);
    assert.equal(page.clock.pending, 0);
  });

  test('can be closed while connecting or reconnecting', async () => {
    const page = new FakePage();
    const socket = page.load().connect();
    const heard = hearing(socket);
    const first = page.pending;
    socket.disconnect();
    await first.answer(answerToHandshake);
    assert.equal(page.sockets.length, 0);
    const again = await connected();
    again.page.socket.fall();
    again.socket.disconnect();
    await again.page.clock.advance(1e6);
    assert.deepEqual([heard, again.page.requests.length, again.page.clock.pending], [[], 1, 0]);
  });

  test('allows the page to act inside its event handlers', async () => {
    const { page, socket, heard } = await connected();
    socket.once('disconnect', () => socket.socket.connect());
    page.socket.fall();
    assert.deepEqual(heard, [['disconnect', 'transport closed']]);
    socket.once('connecting', () => socket.disconnect());
    await page.pending.answer(answerToHandshake);
    assert.equal(page.sockets.length, 1);
    assert.equal(page.clock.pending, 0);
  });
});

describe('a page that closes', () => {
  test('sends a disconnect on its WebSocket', async () => {
    const { page } = await connected();
    page.fire('pagehide');
    assert.deepEqual(page.socket.sent, ['0::']);
    assert.equal(page.socket.readyState, 3);
  });

  test('sends nothing after that, and reconnects if the page comes back', async () => {
    for (const transport of /** @type {const} */ (['websocket', 'xhr-polling', 'jsonp-polling'])) {
      const { page, socket, heard } = await connected(transport);
      page.fire('pagehide');
      const count = page.requests.length;
      socket.emit('next');
      assert.equal(page.requests.length, count);
      assert.deepEqual(heard, [['disconnect', 'page hidden'], ['reconnecting', 500, 1]]);
      await page.clock.advance(500);
      assert.match(page.pending.address, /socket\.io\/1\/(\?jsonp=\d+)?$/);
    }
  });

  test('sends a disconnect with a request that outlives it', async () => {
    for (const transport of /** @type {const} */ (['xhr-polling', 'jsonp-polling'])) {
      const { page } = await connected(transport);
      page.fire('pagehide');
      const { method, address, options } = page.requests[page.requests.length - 1];
      assert.equal(method, 'GET');
      assert.equal(address, `http://chat.example:8080/socket.io/1/${transport}/sid-1?disconnect=1`);
      assert.equal(options.keepalive, true);
    }
  });

  test('sends a disconnect even if the browser stops the first unload handler', async () => {
    const { page } = await connected();
    page.listeners.pagehide.shift();
    page.fire('pagehide');
    assert.deepEqual(page.socket.sent, ['0::']);
  });

  test('sends a disconnect on each of its connections', async () => {
    const { page, io } = await connected();
    io.connect('', { 'force new connection': true });
    await page.pending.answer(answerToHandshake);
    page.socket.open().say('1::');
    page.fire('pagehide');
    assert.deepEqual(page.sockets.map(({ sent }) => sent), [['0::'], ['0::']]);
  });

  test('sends nothing without a connection', () => {
    const page = new FakePage();
    page.load().connect();
    page.fire('pagehide');
    assert.equal(page.requests.length, 1);
  });
});
