// WHIP and WHEP with clients that know only an address and a token: aiortc publishes and subscribes with HTTP requests, with a
// page or another aiortc client at the other end. The Python side is `../peers/whip_client.py`, `../peers/whip_phone.py` and
// `../peers/whep_client.py`.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { promisify } from 'node:util';
import { sharedBrowsers } from './browsers.mjs';
import { colorName, colors, framesRise, remoteVideo, seesColor, soundArrives } from './media.mjs';
import { repository } from './server.mjs';
import { assertNoComplaints, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet, stopwatch, until } from './wait.mjs';

const { chromium, firefox } = sharedBrowsers();

/** Tones that are far enough apart. A tone is detected for each second, and a second may begin or end in silence. */
const hertzNear = 25;

let pythonPath;

/** The Python installation with aiortc. The script that installs the browsers also downloads it into a cache. */
async function python() {
  const { stdout } = await promisify(execFile)(path.join(repository, 'scripts', 'browser-setup'), ['--peers-media']);
  return stdout.trim();
}

/** A server with a routed session, and a function that creates tokens for it. */
async function routed(t, env, options) {
  const server = await serve(t, env, options);
  const session = await server.command('session', 'create', '--media', 'routed');
  const token = (role) => server.command('token', 'create', '--session', session, '--role', role);
  return { server, session, token };
}

async function publisher(t, { server, session, token }, label = 'the publisher') {
  return client(t, 'whip_client.py', [`${server.url}/whip/${session}`, await token('publisheronly')], label);
}

/** A phone that is held upright. It offers what Safari offers. */
async function phone(t, { server, session, token }) {
  return client(t, 'whip_phone.py', [`${server.url}/whip/${session}`, await token('publisheronly')], 'the phone');
}

async function viewer(t, { server, session, token }, label = 'the viewer') {
  return client(t, 'whep_client.py', [`${server.url}/whep/${session}`, await token('subscriber')], label);
}

async function client(t, script, args, label) {
  pythonPath ??= python();
  const peer = new Peer(await pythonPath, script, args, label);
  t.after(() => peer.process.kill('SIGKILL'));
  return peer;
}

/** The page `/try` in that session. */
async function open(t, { server, session, token }, role, { launch = chromium, ...options } = {}) {
  const browser = await launch();
  const page = await browser.newPage(options);
  t.after(() => page.close());
  await page.goto(`${server.url}/try#session=${session}&token=${await token(role)}`);
  // Without a user gesture, the page's microphone stays silent.
  await page.press('Tab');
  return page;
}

class Peer {
  /** All events of the client, the latest last. @type {{event: string, args: any[]}[]} */
  told = [];
  /** The client's other output, such as a traceback. @type {string[]} */
  errors = [];
  ended = false;

  constructor(command, script, args, label) {
    this.label = label;
    const file = path.join(repository, 'web', 'test', 'peers', script);
    this.process = spawn(command, ['-B', file, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.process.once('exit', () => { this.ended = true; });
    // The process may have ended already.
    this.process.stdin.on('error', () => {});
    createInterface({ input: this.process.stdout }).on('line', (line) => this.told.push(JSON.parse(line)));
    createInterface({ input: this.process.stderr }).on('line', (line) => this.errors.push(`    ${line}`));
  }

  do(command, more = {}) {
    this.process.stdin.write(`${JSON.stringify({ do: command, ...more })}\n`);
  }

  publish(color, hertz, codec = 'VP8') {
    this.do('publish', { color: colors[color], hertz, codec });
  }

  /** Waits until the latest of these events passes the check, which throws `NotYet`; returns its first argument, if any. */
  tells(event, check = () => {}) {
    return until(`${this.label} tells ${event}`, () => {
      const trouble = this.told.find(({ event: name }) => ['fault', 'failed'].includes(name));
      if (this.ended || trouble) throw new Error(`${this.label} failed or ended:
${this.explain()}`);
      const latest = this.told.findLast(({ event: name }) => name === event);
      if (!latest) throw new NotYet('it has not');
      check(latest.args[0]);
      return latest.args[0] ?? true;
    }, { why: () => this.explain() });
  }

  sees(color, more = 0) {
    let from;
    return this.tells('picture', ({ rgb, frames }) => {
      from ??= frames;
      if (colorName(rgb) !== color) throw new NotYet(`the picture is ${colorName(rgb)}`);
      if (frames < from + more) throw new NotYet(`${frames - from} more pictures came`);
    });
  }

  hears(hertz) {
    return this.tells('sound', ({ hertz: heard, level }) => {
      if (level < 0.01 || Math.abs(heard - hertz) > hertzNear) throw new NotYet(`it hears ${heard} Hz at ${level}`);
    });
  }

  /** Sends a request with an unsupported method or to a resource that is gone, and returns the status. */
  async status(method) {
    this.told = this.told.filter(({ event }) => event !== 'status');
    this.do('ask', { method });
    return this.tells('status');
  }

  explain() {
    return [...this.told.slice(-25).map((line) => `    ${JSON.stringify(line)}`), ...this.errors.slice(-25)].join('\n');
  }
}

async function isSeenAndHeard(t, codec, options) {
  const room = await routed(t, {}, options);
  const page = await open(t, room, 'subscriber');
  const peer = await publisher(t, room);
  const time = stopwatch();
  peer.publish('magenta', 440, codec);
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await seesColor(page, 'magenta');
  t.diagnostic(`seen after ${time()}`);
  await soundArrives(page);
  await framesRise(page);
  assertNoComplaints(page);
}

test('H264 published by a WHIP client is seen and heard on a page, below a path of a site', (t) => isSeenAndHeard(t, 'H264', { path: '/video' }));

testInFull('VP8 published by a WHIP client is seen and heard on a page', 'peers-aiortc.test.mjs "VP8 published by aiortc"',
  (t) => isSeenAndHeard(t, 'VP8'));

test('a phone that offers H264 in the high profile first is seen and heard in Chromium and in Firefox', async (t) => {
  const room = await routed(t);
  const pages = await Promise.all([chromium, firefox].map((launch) => open(t, room, 'subscriber', { launch })));
  const peer = await phone(t, room);
  peer.do('publish', { sky: colors.magenta, ground: colors.green, hertz: 440 });
  const { codec } = await peer.tells('answered');
  assert.equal(codec, 'VP8', 'the answer prefers what every browser has, whatever the order of the offer');
  for (const page of pages) {
    await seesColor(page, 'magenta', { top: 0 });
    await soundArrives(page);
    await framesRise(page);
  }
  assertNoComplaints(...pages);
});

test('the picture of a phone that is held upright stands upright in Firefox, which turns no pictures', async (t) => {
  const room = await routed(t);
  const page = await open(t, room, 'subscriber', { launch: firefox });
  const peer = await phone(t, room);
  peer.do('publish', { sky: colors.cyan, ground: colors.yellow, hertz: 440 });
  const { orientation } = await peer.tells('answered');
  assert.equal(orientation, false, 'the answer lets publishers leave the turning to subscribers');
  await seesColor(page, 'cyan', { top: 0 });
  await seesColor(page, 'yellow', { top: 0.75 });
  const [width, height] = await page.evaluate((selector) => {
    const { videoWidth, videoHeight } = document.querySelector(selector);
    return [videoWidth, videoHeight];
  }, remoteVideo);
  assert.ok(width < height, `${width} × ${height}`);
  assertNoComplaints(page);
});

testInFull('a WHIP client restarts ICE, and the video continues on another path',
  'SignalingTests WHIPTests.newCredentialsRestartICEAndChangeTheTag; '
  + 'SFUTests ConnectionTests.anICERestartLosesNothing', async (t) => {
  const room = await routed(t);
  const page = await open(t, room, 'subscriber');
  const peer = await publisher(t, room);
  peer.publish('cyan', 440);
  const { tag } = await peer.tells('created');
  await peer.tells('connected');
  await seesColor(page, 'cyan');
  peer.do('trickle');
  assert.equal(await peer.tells('trickled'), 204);
  peer.do('restart');
  assert.notEqual(await peer.tells('restarted'), tag);
  await framesRise(page, { by: 30 });
  peer.do('trickle');
  await framesRise(page);
  assertNoComplaints(page);
});

testInFull('a WHIP client ends its stream, and its address is gone',
  'SignalingTests WHIPTests.aDeleteEndsTheStreamAndTheConnection; '
  + 'ServerTests "an offer from OBS is answered"', async (t) => {
  const room = await routed(t);
  const page = await open(t, room, 'subscriber');
  const peer = await publisher(t, room);
  peer.publish('red', 440);
  await seesColor(page, 'red');
  assert.equal(await peer.status('GET'), 405);
  peer.do('delete');
  assert.equal(await peer.tells('deleted'), 200);
  await page.waitFor('the page shows no video', "!document.querySelector('.OT_subscriber video')");
  assert.equal(await peer.status('DELETE'), 404);
  assertNoComplaints(page);
});

test('below a path of a site, a page\'s stream is seen and heard by a WHEP client, also after an ICE restart', async (t) => {
  const room = await routed(t, {}, { path: '/video' });
  const page = await open(t, room, 'publisher', { color: 'yellow', tone: 600 });
  await page.waitFor('the page publishes', "document.querySelector('.OT_publisher video')?.videoWidth > 0");
  const peer = await viewer(t, room);
  const time = stopwatch();
  await untilThere(peer);
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await peer.sees('yellow');
  t.diagnostic(`seen after ${time()}`);
  await peer.hears(600);
  peer.do('restart');
  await peer.tells('restarted');
  await peer.sees('yellow', 30);
  await peer.hears(600);
  peer.do('delete');
  assert.equal(await peer.tells('deleted'), 200);
  assertNoComplaints(page);
});

testInFull('WHEP shows a WHIP stream, and the next one when the publisher returns',
  'SignalingTests WHIPTests.aViewerGetsTheNewestCameraAndThenTheNext; '
  + 'ServerTests "a WHIP stream is announced to the session, and WHEP can watch it"', async (t) => {
  const room = await routed(t);
  const first = await publisher(t, room, 'the first');
  first.publish('cyan', 440);
  await first.tells('connected');
  const peer = await viewer(t, room);
  peer.do('watch');
  await peer.sees('cyan');
  first.do('delete');
  await first.tells('deleted');
  const second = await publisher(t, room, 'the second');
  second.publish('blue', 880);
  await peer.sees('blue');
  await peer.hears(880);
});

/** Retries until there is a stream, because a page publishes only once its connection is ready. */
function untilThere(peer) {
  peer.do('watch');
  return until('there is something to watch', () => {
    if (peer.told.some(({ event }) => event === 'created')) return true;
    const refused = peer.told.findIndex(({ event, args }) => event === 'fault' && args[0].startsWith('Refused: 404'));
    if (refused < 0) throw new NotYet('no answer has come');
    peer.told.splice(refused, 1);
    peer.do('watch');
    throw new NotYet('it was 404');
  }, { why: () => peer.explain() });
}
