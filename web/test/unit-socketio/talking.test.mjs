// Tests what the Socket.IO script sends and receives over each of its transports.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seeded } from '../unit/random.mjs';
import { connected, FakePage, hearing } from './fake-page.mjs';

/** @param {string[]} packets */
const framed = (...packets) => packets.map((packet) => `\ufffd${packet.length}\ufffd${packet}`).join('');

describe('events', () => {
  test('reach every listener with their arguments, and listeners added with once only once', async () => {
    const { page, socket } = await connected();
    /** @type {any[][]} */
    const got = [];
    const listen = (/** @type {any[]} */ ...given) => got.push(['on', ...given]);
    socket.on('subscribe', listen).once('subscribe', (/** @type {any[]} */ ...given) => got.push(['once', ...given]));
    page.socket.say('5:::{"name":"subscribe","args":[{"sessionId":"s"},2]}', '5:::{"name":"subscribe"}');
    assert.deepEqual(got, [['on', { sessionId: 's' }, 2], ['once', { sessionId: 's' }, 2], ['on']]);
    socket.removeListener('subscribe', listen);
    page.socket.say('5:::{"name":"subscribe"}');
    assert.equal(got.length, 3);
  });

  test('can be removed one by one, by name or all at once', async () => {
    const { page, socket } = await connected();
    let count = 0;
    const listen = () => { count += 1; };
    const hear = () => { page.socket.say('5:::{"name":"a"}', '5:::{"name":"b"}'); return count; };
    socket.once('a', listen).removeListener('a', listen);
    assert.equal(hear(), 0);
    socket.on('a', listen).on('b', listen);
    assert.equal(hear(), 2);
    socket.removeAllListeners('a');
    assert.equal(hear(), 3);
    socket.removeAllListeners();
    assert.equal(hear(), 3);
  });

  test('reach the other listeners when one throws, and the error is reported', async () => {
    const { page, socket, heard } = await connected('xhr-polling');
    socket.listeners('news').unshift(() => { throw new Error('the page\'s own'); });
    await page.pending.answer(framed('5:::{"name":"news","args":[1]}', '5:::{"name":"news","args":[2]}'));
    await page.clock.advance(0);
    assert.deepEqual(heard, [['news', 1], ['news', 2]]);
    assert.match(String(page.reported), /the page's own/);
    assert.equal(page.pending.method, 'GET');
  });

  test('are sent in the format of the first servers', async () => {
    const { page, socket } = await connected();
    socket.emit('disconnectPartners').emit('next', { sessionId: 's-1' }).emit('next', { sessionId: undefined });
    socket.emit('many', 1, null, 'x:y');
    assert.deepEqual(page.socket.sent, [
      '5:::{"name":"disconnectPartners"}', '5:::{"name":"next","args":[{"sessionId":"s-1"}]}',
      '5:::{"name":"next","args":[{}]}', '5:::{"name":"many","args":[1,null,"x:y"]}',
    ]);
  });

  test('emitted without a connection wait for it, also after a disconnect', async () => {
    const page = new FakePage();
    const socket = page.load().connect();
    socket.on('connect', () => socket.emit('third'));
    socket.emit('first').emit('second');
    await page.pending.answer('sid-1:60:60:websocket');
    page.socket.open();
    assert.deepEqual(page.socket.sent, []);
    page.socket.say('1::');
    assert.deepEqual(page.socket.sent, ['first', 'second', 'third'].map((name) => `5:::{"name":"${name}"}`));
    page.socket.fall();
    socket.emit('fourth');
    await page.clock.advance(500);
    await page.pending.answer('sid-2:60:60:websocket');
    page.socket.open().say('1::');
    assert.deepEqual(page.socket.sent, ['fourth', 'third'].map((name) => `5:::{"name":"${name}"}`));
  });

  test('are not kept without limit', () => {
    const page = new FakePage();
    const socket = page.load().connect();
    const heard = hearing(socket);
    for (let number = 0; number < 1001; number += 1) socket.emit('next');
    assert.deepEqual(heard.map(([name]) => name), ['error']);
  });
});

describe('messages and acknowledgements', () => {
  test('messages are text or JSON', async () => {
    const { page, socket } = await connected();
    const heard = hearing(socket, 'message');
    page.socket.say('3:::hi: there\nyou', '4:::{"n":3}', '4:::null');
    assert.deepEqual(heard, [['message', 'hi: there\nyou'], ['message', { n: 3 }], ['message', null]]);
    socket.send('hello').json.send({ n: [1] });
    assert.deepEqual(page.socket.sent, ['3:::hello', '4:::{"n":[1]}']);
  });

  test('the page gets each acknowledgement once', async () => {
    const { page, socket } = await connected();
    /** @type {any[][]} */
    const done = [];
    socket.emit('next', {}, (/** @type {any[]} */ ...given) => done.push(['event', ...given]));
    socket.send('hi', (/** @type {any[]} */ ...given) => done.push(['message', ...given]));
    socket.json.send(1, (/** @type {any[]} */ ...given) => done.push(['json', ...given]));
    assert.deepEqual(page.socket.sent, ['5:1+::{"name":"next","args":[{}]}', '3:2::hi', '4:3::1']);
    page.socket.say('6:::2', '6:::1+["a+b",{"n":1}]', '6:::1+["again"]', '6:::99', '6:::');
    assert.deepEqual(done, [['message'], ['event', 'a+b', { n: 1 }]]);
  });

  test('the server gets an acknowledgement at once, or with the page\'s answer', async () => {
    const { page, socket } = await connected();
    const heard = hearing(socket, 'message');
    socket.on('ask', (/** @type {number} */ n, /** @type {Function} */ answer) => answer('ok', n + 1));
    page.socket.say('5:7+::{"name":"ask","args":[1]}', '5:8::{"name":"plain"}', '3:9::hi', '5:10+::{"name":"ignored"}');
    assert.deepEqual(page.socket.sent, ['6:::7+["ok",2]', '6:::8', '6:::9']);
    assert.deepEqual(heard, [['message', 'hi']]);
  });
});

describe('packets', () => {
  test('heartbeats are answered', async () => {
    const { page } = await connected();
    page.socket.say('2::', '2');
    assert.deepEqual(page.socket.sent, ['2::', '2::']);
  });

  test('malformed, unknown and namespace packets are ignored', async () => {
    const { page, heard } = await connected();
    page.socket.say('', 'x', '9::', '5:::', '5:::{', '5:::7', '5:::null', '5:::{"args":[1]}', '4:::{',
      '5::/x:{"name":"news"}', '0::/x', '7::/x:1+0', '6:::x+y', '\ufffd', '\ufffd9\ufffd',
      '\ufffdx\ufffd8::', '\ufffd99\ufffd5:::{"name":"ne');
    assert.deepEqual(heard, []);
    page.socket.say('5:::{"name":"news","args":"one"}', '5:::{"name":"news","args":null}');
    assert.deepEqual(heard, [['news', 'one'], ['news', null]]);
  });

  test('lengths count UTF-16 units, and packets may contain anything', async () => {
    const { page, heard } = await connected();
    const packet = (/** @type {string} */ text) => `5:::${JSON.stringify({ name: 'news', args: [text] })}`;
    const [one, other] = ['😀\ufffd', '\ufffd3\ufffd8::'].map(packet);
    assert.equal(one.length, [...one].length + 1);
    page.socket.say(framed(one, '8::', other));
    assert.deepEqual(heard, [['news', '😀\ufffd'], ['news', '\ufffd3\ufffd8::']]);
  });

  test('no payload breaks the script', async () => {
    const seed = Date.now() % 1e6;
    const random = seeded(seed);
    const alphabet = ['\ufffd', ':', '+', '0', '1', '5', '6', '7', '{', '}', '"name"', ':"news"', '[', ']', '😀'];
    const { page, socket } = await connected();
    for (let round = 0; round < 3000; round += 1) {
      const length = Math.floor(random() * 14);
      const text = Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('');
      // These two rightly end the connection.
      if (!/^0|\ufffd0|7/.test(text)) page.socket.say(text);
    }
    assert.deepEqual([socket.connected, page.reported], [true, []], `seed ${seed}`);
  });
});

describe('polling', () => {
  test('polls again after every answer, one request at a time', async () => {
    const { page, heard } = await connected('xhr-polling');
    for (const number of [1, 2, 3]) await page.pending.answer(`5:::{"name":"news","args":[${number}]}`);
    await page.pending.answer('8::');
    assert.deepEqual(heard, [['news', 1], ['news', 2], ['news', 3]]);
    assert.equal(page.requests.filter(({ state }) => state === 'waiting').length, 1);
    assert.match(page.pending.url, /\/xhr-polling\/sid-1\?t=\d+$/);
  });

  test('posts in order, and sends waiting packets together', async () => {
    const { page, socket } = await connected('xhr-polling');
    socket.emit('one').emit('two').emit('drei 😀');
    const posts = () => page.requests.filter(({ method }) => method === 'POST');
    assert.deepEqual(posts().map(({ body }) => body), ['5:::{"name":"one"}']);
    await posts()[0].answer('1');
    assert.equal(posts()[1].body, framed('5:::{"name":"two"}', '5:::{"name":"drei 😀"}'));
    await posts()[1].answer('1');
    assert.equal(posts().length, 2);
  });

  test('sends a disconnect last, after all pending packets', async () => {
    const { page, socket, heard } = await connected('xhr-polling');
    const poll = page.pending;
    socket.emit('one').disconnect();
    assert.equal(poll.state, 'given up');
    await page.pending.answer('1');
    assert.equal(page.pending.body, '0::');
    await page.pending.answer('1');
    await poll.answer('5:::{"name":"news"}');
    assert.deepEqual(heard, [['disconnect', 'booted']]);
    assert.equal(page.requests.filter(({ state }) => state === 'waiting').length, 0);
  });

  test('is lost when any request fails', async () => {
    for (const method of ['GET', 'POST']) {
      const { page, socket, heard } = await connected('xhr-polling');
      socket.emit('one');
      const request = page.requests.find((each) => each.method === method && each.state === 'waiting');
      await request?.answer('no', 500);
      assert.deepEqual(heard.map(([name]) => name), ['disconnect', 'reconnecting'], method);
      await page.clock.advance(500);
      assert.equal(page.pending.address, 'http://chat.example:8080/socket.io/1/');
    }
  });
});

describe('polling by scripts', () => {
  test('gets calls and posts forms', async () => {
    const { page, socket, heard } = await connected('jsonp-polling');
    assert.deepEqual(page.requests.map(({ kind }) => kind), ['script', 'script', 'script']);
    await page.pending.answer(framed('5:::{"name":"news","args":["\\"q\\" \u2028"]}', '8::'));
    assert.deepEqual(heard, [['news', '"q" \u2028']]);
    socket.emit('next', { sessionId: 'a b&c+d' });
    const { kind, method, body, options } = page.pending;
    assert.deepEqual([kind, method, options.mode], ['fetch', 'POST', 'no-cors']);
    const packet = '5:::{"name":"next","args":[{"sessionId":"a b&c+d"}]}';
    assert.equal(new URLSearchParams(body ?? '').get('d'), JSON.stringify(packet));
    await page.pending.answer('1');
    assert.deepEqual(heard.length, 1);
  });

  test('never takes a late answer for the answer to another request', async () => {
    const { page, io, socket, heard } = await connected('jsonp-polling');
    const late = page.pending;
    socket.disconnect();
    assert.equal(late.state, 'given up');
    io.connect();
    await page.pending.answer('sid-2:60:60:jsonp-polling');
    await page.pending.answer('1::');
    await late.answer('5:::{"name":"news","args":["of the first"]}');
    await page.pending.answer('5:::{"name":"news","args":["of the second"]}');
    assert.deepEqual(heard.slice(-1), [['news', 'of the second']]);
    assert.equal(heard.filter(([name]) => name === 'news').length, 1);
  });

  test('is lost when a script does not load or does not call back', async () => {
    for (const lose of [
      (/** @type {FakePage} */ page) => page.pending.answer('<h1>Bad gateway</h1>', 502),
      (/** @type {FakePage} */ page) => page.pending.fail(),
    ]) {
      const { page, heard } = await connected('jsonp-polling');
      await lose(page);
      assert.deepEqual(heard.map(([name]) => name), ['disconnect', 'reconnecting']);
    }
  });

  test('does not keep the page loading', async () => {
    const page = new FakePage();
    page.document.readyState = 'interactive';
    page.load().connect('', { transports: ['jsonp-polling'] });
    assert.equal(page.requests.length, 0);
    page.fire('load');
    await page.clock.advance(0);
    assert.match(page.pending.address, /\?jsonp=0$/);
  });
});
