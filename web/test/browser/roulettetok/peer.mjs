// Original clients that are no browsers: scripts of web/test/peers, each a process that a test drives by lines.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { repository } from '../server.mjs';
import { NotYet, until } from '../wait.mjs';

/** What RouletteTok's server says, and the end; everything else a peer tells is only kept for explanations. */
const told = new Set(['initial', 'subscribe', 'empty', 'disconnectPartner', 'closed', 'disconnect', 'error', 'fault']);

let pythonPath;

/** The Python that has the client of 2015, fetched once into a cache by the script that also installs the browsers. */
async function python() {
  const { stdout } = await promisify(execFile)(path.join(repository, 'scripts', 'browser-setup'), ['--peers']);
  return stdout.trim();
}

/** How a test can name a kind of original client. */
export const kinds = ['websocket', 'xhr-polling', 'jsonp-polling', 'ios'];

/**
 * Starts an original client of this kind; it ends with the test.
 *
 * @param {import('node:test').TestContext} t
 * @param {number} port
 * @param {'websocket' | 'xhr-polling' | 'jsonp-polling' | 'ios'} kind
 * @param {{poll?: number, label?: string}} [options] `poll`: how many seconds a poll is waited for
 */
export async function startPeer(t, port, kind, { poll, label = kind } = {}) {
  pythonPath ??= python();
  const script = kind === 'ios' ? ['original_ios.py', port] : ['original_python.py', port, kind, ...poll ? [poll] : []];
  const peer = new Peer(await pythonPath, script.map(String), kind, label);
  t.after(() => peer.kill());
  await peer.until('it has a session of its own', () => peer.session);
  return peer;
}

class Peer {
  /** What it was told and the test has not looked at yet. @type {{event: string, args: any[]}[]} */
  news = [];
  /** Everything it wrote, for explanations. @type {string[]} */
  log = [];
  /** Its own session, once it knows it. @type {string | undefined} */
  session;
  /** @type {{code: number | null, signal: string | null} | undefined} */
  ended;

  constructor(command, [script, ...args], kind, label) {
    Object.assign(this, { kind, label });
    const folder = path.join(repository, 'web', 'test', 'peers');
    this.process = spawn(command, ['-B', path.join(folder, script), ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.process.once('exit', (code, signal) => { this.ended = { code, signal }; });
    // A command for one that has gone.
    this.process.stdin.on('error', () => {});
    createInterface({ input: this.process.stdout }).on('line', (line) => this.#hear(line));
    createInterface({ input: this.process.stderr }).on('line', (line) => this.log.push(`  ${line}`));
  }

  #hear(line) {
    this.log.push(line);
    const { event, args } = JSON.parse(line);
    if (event === 'initial') this.session = args[0].sessionId;
    if (told.has(event)) this.news.push({ event, args });
  }

  do(command, more = {}) {
    this.process.stdin.write(`${JSON.stringify({ do: command, ...more })}\n`);
  }

  /** Asks for a partner, the way its kind does. */
  next() {
    if (this.kind === 'ios') this.do('live');
    else this.do('emit', { name: 'next', args: [{ sessionId: this.session }] });
  }

  /** Ends the conversation for both. */
  part() {
    if (this.kind === 'ios') this.do('press');
    else this.do('emit', { name: 'disconnectPartners' });
  }

  until(what, probe, options) {
    return until(`${what} (${this.label})`, async () => {
      if (this.ended?.code) throw new Error(`${this.label} crashed:\n${this.explain()}`);
      return probe();
    }, { why: () => this.explain(), ...options });
  }

  /** The next thing it is told must be this; its argument. */
  async hears(event, options) {
    const [first] = await this.until(`it hears ${event}`, () => {
      if (this.news.length === 0) throw new NotYet('it heard nothing more');
      return this.news;
    }, options);
    this.news.shift();
    assert.equal(first.event, event, `${this.label}:\n${this.explain()}`);
    return first.args[0];
  }

  /** It is told of a partner: his session. */
  async meets(partner) {
    const { sessionId, token } = await this.hears('subscribe');
    assert.equal(sessionId, partner.session, `${this.label} is to watch ${partner.label}`);
    assert.ok(token);
  }

  /** Waits until this many lines like this one were written, in all. */
  wrote(pattern, count = 1) {
    return this.until(`it wrote ${pattern}`, () => {
      const found = this.log.filter((line) => pattern.test(line)).length;
      if (found < count) throw new NotYet(`${found} times`);
      return true;
    });
  }

  /** SIGKILL: it gets to say nothing. */
  kill(signal = 'SIGKILL') {
    this.process.kill(signal);
  }

  explain() {
    // Tokens are long and say nothing.
    return this.log.slice(-25).map((line) => `    ${line.replace(/ey[\w.-]{40,}([\w-]{6})/g, '…$1')}`).join('\n');
  }
}

/** The first asks and waits, so that it meets the second and nobody else. */
export async function pair(one, other) {
  one.next();
  await one.hears('empty');
  other.next();
  await Promise.all([one.meets(other), other.meets(one)]);
}

/** They heard nothing that the test did not look at, and none has crashed. */
export function assertNoNews(...peers) {
  for (const peer of peers) {
    assert.deepEqual([peer.news, peer.ended], [[], undefined], `${peer.label}:\n${peer.explain()}`);
  }
}
