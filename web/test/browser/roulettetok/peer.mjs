// Legacy clients that are not browsers. They are scripts in web/test/peers, which run as processes that a test controls with
// JSON lines.
import assert from 'node:assert/strict';
import { python, PythonPeer } from '../python-peer.mjs';
import { NotYet, until } from '../wait.mjs';

/** The events of RouletteTok's server, and the end. Other events are kept only for error messages. */
const reported = new Set(['initial', 'subscribe', 'empty', 'disconnectPartner', 'closed', 'disconnect', 'error', 'fault']);

/** The names of the kinds of legacy clients. */
export const kinds = ['websocket', 'xhr-polling', 'jsonp-polling', 'ios'];

/** The kinds of Python's client of later versions: a transport, and the version of Engine.IO. */
export const engineKinds = ['polling-3', 'websocket-3', 'upgrade-3', 'polling-4', 'websocket-4', 'upgrade-4'];

const command = (port, kind, poll) => {
  const [transport, version] = kind.split('-');
  if (engineKinds.includes(kind)) return { packages: `--peers-engine-${version}`, script: ['engine_python.py', port, transport] };
  if (kind === 'ios') return { packages: '--peers', script: ['legacy_ios.py', port] };
  return { packages: '--peers', script: ['legacy_python.py', port, kind, ...poll ? [poll] : []] };
};

/**
 * Starts a legacy client of this kind; it ends with the test.
 *
 * @param {import('node:test').TestContext} t
 * @param {number} port
 * @param {string} kind one of `kinds` and `engineKinds`
 * @param {{poll?: number, label?: string}} [options] `poll`: the timeout of a poll in seconds
 */
export async function startPeer(t, port, kind, { poll, label = kind } = {}) {
  const { packages, script } = command(port, kind, poll);
  const peer = new Peer(await python(packages), script.map(String), kind, label);
  t.after(() => peer.kill());
  await peer.until('it has a session of its own', () => peer.session);
  return peer;
}

class Peer extends PythonPeer {
  /** Received events that the test has not read yet. @type {{event: string, args: any[]}[]} */
  news = [];
  /** All output of the client, for error messages. @type {string[]} */
  log = [];
  /** The client's own session, once known. @type {string | undefined} */
  session;

  constructor(command, script, kind, label) {
    super(command, script, label);
    this.kind = kind;
  }

  hear(line) {
    this.log.push(line);
    const { event, args } = JSON.parse(line);
    if (event === 'initial') this.session = args[0].sessionId;
    if (reported.has(event)) this.news.push({ event, args });
  }

  complain(line) {
    this.log.push(`  ${line}`);
  }

  /** Requests a partner in the way of this kind of client. */
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

  /** Checks that the next event is this one, and returns its argument. */
  async hears(event, options) {
    const [first] = await this.until(`it hears ${event}`, () => {
      if (this.news.length === 0) throw new NotYet('it heard nothing more');
      return this.news;
    }, options);
    this.news.shift();
    assert.equal(first.event, event, `${this.label}:\n${this.explain()}`);
    return first.args[0];
  }

  /** Waits for a partner, and returns the partner's session. */
  async meets(partner) {
    const { sessionId, token } = await this.hears('subscribe');
    assert.equal(sessionId, partner.session, `${this.label} must watch ${partner.label}`);
    assert.ok(token);
  }

  /** Waits until this many matching lines were written in total. */
  wrote(pattern, count = 1) {
    return this.until(`it wrote ${pattern}`, () => {
      const found = this.log.filter((line) => pattern.test(line)).length;
      if (found < count) throw new NotYet(`${found} times`);
      return true;
    });
  }

  explain() {
    // Omit tokens, because they are long.
    return this.log.slice(-25).map((line) => `    ${line.replace(/ey[\w.-]{40,}([\w-]{6})/g, '…$1')}`).join('\n');
  }
}

/** The first requests a partner and waits, so that it is matched with the second. */
export async function pair(one, other) {
  one.next();
  await one.hears('empty');
  other.next();
  await Promise.all([one.meets(other), other.meets(one)]);
}

/** Checks that all events were read by the test, and that no peer crashed. */
export function assertNoNews(...peers) {
  for (const peer of peers) {
    assert.deepEqual([peer.news, peer.ended], [[], undefined], `${peer.label}:\n${peer.explain()}`);
  }
}
