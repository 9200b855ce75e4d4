// Another WebRTC implementation: aiortc publishes and subscribes through the built server, with a page in Chromium or another
// aiortc client at the other end. The Python side is `../peers/aiortc_peer.py`.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { promisify } from 'node:util';
import { sharedBrowsers } from './browsers.mjs';
import { colorName, colors, framesRise, seesColor, soundArrives } from './media.mjs';
import { repository } from './server.mjs';
import { assertNoComplaints, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet, stopwatch, until } from './wait.mjs';

const { chromium } = sharedBrowsers();

/** Tones that are far enough apart. A tone is detected for each second, and a second may begin or end in silence. */
const hertzNear = 25;

let pythonPath;

/** The Python installation with aiortc. The script that installs the browsers also downloads it into a cache. */
async function python() {
  const { stdout } = await promisify(execFile)(path.join(repository, 'scripts', 'browser-setup'), ['--peers-media']);
  return stdout.trim();
}

/** A server with a routed session, and a function that creates tokens for it. */
async function routed(t) {
  const server = await serve(t);
  const session = await server.command('session', 'create', '--media', 'routed');
  const token = (role) => server.command('token', 'create', '--session', session, '--role', role);
  return { server, session, token };
}

/** An aiortc client of that session, which ends with the test. */
async function join(t, { server, session, token }, label, role = 'publisher') {
  pythonPath ??= python();
  const peer = new Peer(await pythonPath, [server.url, session, await token(role)], label);
  t.after(() => peer.process.kill('SIGKILL'));
  await peer.tells('joined');
  return peer;
}

/** The page `/try` in that session. */
async function open(t, { server, session, token }, role, color, tone) {
  const browser = await chromium();
  const page = await browser.newPage({ color, tone });
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

  constructor(command, args, label) {
    this.label = label;
    const script = path.join(repository, 'web', 'test', 'peers', 'aiortc_peer.py');
    this.process = spawn(command, ['-B', script, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
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

  /** Waits until the latest of these events passes the check, which throws `NotYet`; returns its first argument. */
  tells(event, check = () => {}) {
    return until(`${this.label} tells ${event}`, () => {
      const trouble = this.told.find(({ event: name }) => ['fault', 'failed', 'closed'].includes(name));
      if (this.ended || trouble) throw new Error(`${this.label} failed or ended:
${this.explain()}`);
      const latest = this.told.findLast(({ event: name }) => name === event);
      if (!latest) throw new NotYet('it has not');
      check(latest.args[0]);
      return latest.args[0];
    }, { why: () => this.explain() });
  }

  sees(color) {
    return this.tells('picture', ({ rgb }) => {
      if (colorName(rgb) !== color) throw new NotYet(`the picture is ${colorName(rgb)}`);
    });
  }

  hears(hertz) {
    return this.tells('sound', ({ hertz: heard, level }) => {
      if (level < 0.01 || Math.abs(heard - hertz) > hertzNear) throw new NotYet(`it hears ${heard} Hz at ${level}`);
    });
  }

  explain() {
    const lines = this.told.map((line) => `    ${JSON.stringify(line)}`).filter((line) => !line.includes('"answer"'));
    return [...lines.slice(-25), ...this.errors.slice(-25)].join('\n');
  }
}

async function isSeenAndHeard(t, codec) {
  const room = await routed(t);
  const page = await open(t, room, 'subscriber');
  const peer = await join(t, room, 'the publisher');
  const time = stopwatch();
  peer.publish('magenta', 440, codec);
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await seesColor(page, 'magenta');
  t.diagnostic(`seen after ${time()}`);
  await soundArrives(page);
  t.diagnostic(`heard after ${time()}`);
  await framesRise(page);
  assertNoComplaints(page);
}

test('VP8 published by aiortc is seen and heard in Chromium', (t) => isSeenAndHeard(t, 'VP8'));

testInFull('H264 published by aiortc is seen and heard in Chromium', 'peers-whip.test.mjs "H264 published by a WHIP client"',
  (t) => isSeenAndHeard(t, 'H264'));

testInFull('a stream published by Chromium is seen and heard by aiortc', 'peers-whip.test.mjs "a page\'s stream"', async (t) => {
  const room = await routed(t);
  const page = await open(t, room, 'publisher', 'yellow', 600);
  const peer = await join(t, room, 'the watcher', 'subscriber');
  const time = stopwatch();
  peer.do('watch');
  await peer.tells('connected');
  t.diagnostic(`connected after ${time()}`);
  await peer.sees('yellow');
  t.diagnostic(`seen after ${time()}`);
  await peer.hears(600);
  t.diagnostic(`heard after ${time()}`);
  assertNoComplaints(page);
});

testInFull('aiortc subscribes to aiortc, also to several streams in turn on the same transceivers, and with another codec',
  'SFUTests ForwardingTests.theNextStreamInATransceiverFollowsWithoutAGap, '
  + 'aSubscriberThatCannotDecodeTheVideoIsNotifiedOnceAndAgainWhenItResumes', async (t) => {
  const room = await routed(t);
  const watcher = await join(t, room, 'the watcher', 'subscriber');
  const publishers = [
    ['the first', 'cyan', 440, 'VP8'], ['the second', 'red', 880, 'H264'], ['the third', 'blue', 660, 'VP8'],
  ];
  for (const [label, color, hertz, codec] of publishers) {
    const publisher = await join(t, room, label);
    publisher.publish(color, hertz, codec);
    assert.ok((await publisher.tells('answer')).includes(` ${codec}/90000`));
    await publisher.tells('connected');
    // The first stream started before there was a subscriber, so a keyframe must be requested.
    if (label === 'the first') watcher.do('watch');
    const time = stopwatch();
    await watcher.sees(color);
    await watcher.hears(hertz);
    t.diagnostic(`${label}, in ${codec}, is seen and heard after ${time()}`);
  }
});

testInFull('the server\'s answer offers UDP and TCP, and aiortc uses what it supports',
  'RTCTests SDPAnswerTests.anAnswerIsLitePassiveAndBundled, anOfferLikeThatOfAiortcIsAnswered', async (t) => {
  const room = await routed(t);
  const peer = await join(t, room, 'one');
  peer.publish('green', 440);
  const sdp = await peer.tells('answer');
  assert.match(sdp, /^a=ice-lite\r$/m);
  assert.match(sdp, /^a=candidate:\S+ 1 udp .* typ host\r$/m);
  assert.match(sdp, /^a=candidate:\S+ 1 tcp .* typ host tcptype passive\r$/m);
  await peer.tells('connected');
});
