// The page `/check` on networks and servers on which something does not work: each fault is found, and the sentence names it. Every
// machine is a network namespace.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, afterEach } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { check, sentenceOf } from './checker.mjs';
import { Machine, startNetwork, whyNoNetwork } from './namespace.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { isFull, testInFull } from './tier.mjs';
import { startTurn } from './turn.mjs';

const skip = isFull ? await whyNoNetwork() : 'only with --all';
const network = skip ? undefined : await startNetwork(['one']);
if (network) {
  after(() => network.close());
  afterEach(() => network.clear());
}
const [one] = network?.clients ?? [];
const { chromium, firefox } = sharedBrowsers(one);
/** Browsers on this machine. */
const here = sharedBrowsers();
/** The rules that find the faults. */
const proofs = 'unit/check-verdicts "problems if …"; unit/check-network "the check reports it if …"; unit-app/check-words "the sentence if …"';

/** Opens the page, lets the network become bad, and checks. @param {() => Promise<unknown>} [spoil] */
async function found(t, browser, spoil = async () => {}, url = Machine.serverURL(browser)) {
  const page = await browser.newPage({ color: 'red' });
  t.after(() => page.close());
  await page.goto(`${url}/check`);
  await spoil();
  const levels = await check(page);
  const sentence = await sentenceOf(page);
  t.diagnostic(sentence);
  assertNothingThrown(page);
  return { levels, sentence };
}

testInFull('where UDP is blocked, the check says so, and measures TCP', proofs, { skip }, async (t) => {
  await serve(t, {}, network.options);
  const { levels, sentence } = await found(t, await chromium(), () => one.loseDatagrams());
  assert.deepEqual([levels.server, levels.udp, levels.tcp, levels.turn], ['good', 'fair', 'good', 'none']);
  assert.notEqual(levels.up, 'none');
  assert.match(sentence, /UDP to \S+ is blocked/);
});

testInFull('where UDP and TCP are blocked, the check says that there is no audio and video', proofs, { skip }, async (t) => {
  await serve(t, {}, network.options);
  const { levels, sentence } = await found(t, await firefox(), () => one.allowOnly(8080));
  assert.deepEqual([levels.server, levels.udp, levels.tcp, levels.turn, levels.up], ['good', 'bad', 'bad', 'fair', 'bad']);
  assert.match(sentence, /^Neither UDP nor TCP reaches the server at 10\.201\.0\.1:\d+/);
});

testInFull('an announced address that is wrong is found', proofs, { skip }, async (t) => {
  await serve(t, { CONFAB_MEDIA_ADDRESS: '10.201.0.99' }, network.options);
  const { levels, sentence } = await found(t, await firefox());
  assert.deepEqual([levels.server, levels.udp, levels.tcp], ['good', 'bad', 'bad']);
  assert.match(sentence, /^The server announces 10\.201\.0\.99:\d+ for media, where it cannot be reached/);
});

for (const [name, launch] of [['Chromium', () => chromium()], ['Firefox', () => firefox()]]) {
  testInFull(`${name} measures lost packets, and what a slow network carries in each direction`, proofs, { skip }, async (t) => {
    await serve(t, {}, network.options);
    const browser = await launch();
    const lossy = await found(t, browser, () => one.lose(10));
    assert.notEqual(lossy.levels.up, 'good');
    assert.match(lossy.sentence, /% of the packets are lost on the upload/i);
    await network.clear();
    const slow = await found(t, browser, () => one.slowDown({ sent: 400 }));
    assert.match(slow.sentence, /the upload carries only [1-4]\d\d kbit/i);
    await network.clear();
    const { sentence } = await found(t, browser, () => one.slowDown({ received: 400 }));
    // The estimate of what a browser receives is not exact within ten seconds.
    assert.match(sentence, /the download carries only \d+ kbit/i);
  });
}

testInFull('a TURN server with the same secret works, and one with another is found', proofs, { skip }, async (t) => {
  const { address } = network.server;
  const turn = await startTurn(t, { address, machine: network.server });
  const settings = turn.env(`turn:${address}:${turn.port}?transport=udp`);
  const server = await serve(t, settings, network.options);
  assert.equal((await found(t, await chromium())).levels.turn, 'good');
  await server.close();
  await serve(t, { ...settings, CONFAB_ICE_TURN_SECRET: 'another-secret-than-that-of-the-server' }, network.options);
  const { levels, sentence } = await found(t, await chromium());
  assert.deepEqual([levels.udp, levels.turn], ['good', 'fair']);
  assert.match(sentence, /The TURN server refuses the credentials/i);
});

testInFull('a proxy that does not pass on Upgrade is found', proofs, async (t) => {
  const server = await serve(t);
  // Without a listener for upgrades, node passes on the request without them.
  const proxy = http.createServer((request, response) => {
    const { upgrade, connection, ...headers } = request.headers;
    const passed = http.request({ port: server.port, path: request.url, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    request.pipe(passed);
  });
  await new Promise((resolve) => { proxy.listen(0, '127.0.0.1', resolve); });
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const browser = await here.chromium();
  const { levels, sentence } = await found(t, browser, undefined, `http://127.0.0.1:${proxy.address().port}`);
  assert.deepEqual([levels.camera, levels.server, levels.udp, levels.up], ['good', 'bad', 'none', 'none']);
  assert.match(sentence, /^The server 127\.0\.0\.1 answers over HTTP, but no WebSocket can be opened/);
});

