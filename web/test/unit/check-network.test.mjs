// A check of the network with simulated connections: what is tried, in which order, and what is reported if it fails.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkNetwork } from '../../lib/check/network.js';
import { measuredSeconds } from '../../lib/check/quality.js';
import { addressesIn } from '../../lib/check/transports.js';
import { unmeasured } from '../../lib/check/verdicts.js';
import { ConfabError } from '../../lib/errors.js';
import { Emitter } from '../../lib/events.js';
import { FakeClock } from './fake-clock.mjs';

const candidates = ['udp', 'tcp'].map((protocol) => `a=candidate:1 1 ${protocol} 1 203.0.113.7 40000 typ host\r\n`);
const relays = [{ urls: 'turn:turn.example.org', username: 'u', credential: 'c' }];

/**
 * What the network and the server do.
 * @typedef {object} World
 * @property {string[]} [passes] the ways on which media gets through: `udp`, `tcp`, `relay`
 * @property {string} [answer] the candidates in the server's answers
 * @property {any[]} [servers] ICE servers
 * @property {number | 'silent' | 'relayed'} [turn] a TURN server's error code; `silent`: the browser has no candidate and reports
 *   nothing; `relayed`: there is a relay. Default: `relayed`
 * @property {Record<string, string>} [refuses] maps types of requests to the codes of errors
 * @property {string[]} [ignores] types of requests that are never answered; `ice`: the credentials of TURN servers do not come
 * @property {string | 'hangs'} [connecting] the code of the error with which connecting fails
 * @property {boolean} [hasHTTP] whether the server answers HTTP requests
 * @property {boolean} [returns] whether the test stream comes back; default: true
 * @property {number} [drops] the second in which the connection for messages drops
 * @property {boolean} [hidden] whether the page is in the background
 * @property {string} [host] the host name in the page's address
 */

/** @param {World} world */
async function check(world) {
  const { passes = ['udp', 'tcp', 'relay'], answer = candidates.join(''), servers = relays, turn = 'relayed', refuses = {}, ignores = [], hasHTTP = true, returns = true } = world;
  const clock = new FakeClock();
  /** @type {string[]} */
  const steps = [];
  /** @type {FakeConnection[]} */
  const connections = [];

  class FakeConnection {
    connectionState = 'new';
    /** @type {any} */
    localDescription = null;
    /** @type {any} */
    onconnectionstatechange = null;
    /** @type {any} */
    onicecandidate = null;
    /** @type {any} */
    onicecandidateerror = null;
    mids = 0;

    /** @param {RTCConfiguration} configuration */
    constructor(configuration) {
      this.isRelay = configuration.iceTransportPolicy === 'relay';
      connections.push(this);
    }

    addTransceiver() {
      this.mids += 1;
      return { mid: `${this.mids}` };
    }

    async setLocalDescription() {
      this.localDescription = { sdp: 'v=0' };
      if (!this.isRelay) return;
      clock.setTimeout(() => {
        if (turn === 'relayed') return this.onicecandidate?.({ candidate: { candidate: 'candidate:1 typ relay' } });
        if (turn !== 'silent') this.onicecandidateerror?.({ errorCode: turn });
        this.onicecandidate?.({ candidate: null });
      }, 100);
    }

    /** @param {{sdp: string}} description */
    async setRemoteDescription({ sdp }) {
      const ways = this.isRelay ? (turn === 'relayed' ? ['relay'] : []) : ['udp', 'tcp'].filter((way) => sdp.includes(` ${way} `));
      if (!ways.some((way) => passes.includes(way))) return;
      clock.setTimeout(() => {
        if (this.connectionState === 'closed') return;
        this.connectionState = 'connected';
        this.onconnectionstatechange?.();
      }, 200);
    }

    async getStats() {
      const seconds = clock.now() / 1000;
      const timestamp = clock.now();
      const count = this.connectionState === 'connected' ? 50 * seconds : 0;
      return new Map(/** @type {[string, any][]} */ ([
        ['o', { id: 'o', timestamp, type: 'outbound-rtp', kind: 'audio', packetsSent: count, bytesSent: 200_000 * seconds }],
        ['i', { id: 'i', timestamp, type: 'inbound-rtp', kind: 'audio', packetsReceived: returns ? count : 0, packetsLost: 0, bytesReceived: 200_000 * seconds }],
        ['p', { id: 'p', type: 'candidate-pair', state: 'succeeded', nominated: true, localCandidateId: 'l' }],
        ['l', { id: 'l', type: 'local-candidate', relayProtocol: 'tls' }],
      ]));
    }

    close() {
      this.connectionState = 'closed';
    }
  }

  class FakeClient extends Emitter {
    ice = { current: () => (ignores.includes('ice') ? new Promise(() => {}) : Promise.resolve({ servers, relayOnly: false })) };
    connect() {
      steps.push('connect');
      if (world.connecting === 'hangs') return new Promise(() => {});
      return world.connecting ? Promise.reject(new ConfabError({ code: world.connecting, message: '' })) : Promise.resolve();
    }
    /** @param {string} type @param {any} [members] */
    request(type, members = {}) {
      if (type !== 'media.estimate') steps.push([type, members.side].filter(Boolean).join(' '));
      if (ignores.includes(type)) return new Promise(() => {});
      if (refuses[type]) return Promise.reject(new ConfabError({ code: refuses[type], message: '' }));
      const answers = /** @type {Record<string, object>} */ ({
        'media.offer': { sdp: answer }, 'room.join': { sessionId: '2_x', token: 't' }, 'session.publish': { stream: { streamId: 's' } },
      });
      return Promise.resolve(answers[type] ?? {});
    }
    leave() {
      steps.push('leave');
    }
  }

  const client = new FakeClient();
  let stopped = 0;
  let measured = { ...unmeasured };
  /** @type {string[]} */
  const tested = [];
  let isOver = false;
  if (world.drops !== undefined) clock.setTimeout(() => client.emit('reconnecting'), 1000 * world.drops);
  const running = checkNetwork(/** @type {any} */ ({
    client, host: world.host ?? 'chat.example.org', rtc: { RTCPeerConnection: FakeConnection }, clock,
    fetchHealth: () => (hasHTTP ? Promise.resolve() : Promise.reject(new Error('no network'))),
    makeTracks: () => ({ audio: {}, video: { getSettings: () => ({}) }, stop: () => { stopped += 1; } }),
    isHidden: () => world.hidden ?? false,
    report: (/** @type {object} */ known) => { measured = { ...measured, ...known }; },
    testing: (/** @type {string[]} */ rows) => { if (tested.at(-1) !== rows.join(' ')) tested.push(rows.join(' ')); },
  })).then(() => { isOver = true; });
  await clock.advance(60_000);
  assert.ok(isOver, 'the check ends within a minute');
  await running;
  assert.equal(clock.pending, 0, 'no timer is left');
  assert.deepEqual(connections.filter(({ connectionState }) => connectionState !== 'closed'), [], 'no connection is left');
  assert.equal(steps.at(-1), 'leave');
  return { measured, steps, tested, stopped };
}

test('everything is tried, and the quality is measured over UDP', async () => {
  const { measured, steps, tested, stopped } = await check({});
  const { server, udp, tcp, turn, relay, address, quality, path, up, down } = measured;
  assert.deepEqual({ server, udp, tcp, turn, relay, address, quality, path }, {
    server: 'works', udp: 'works', tcp: 'works', turn: 'works', relay: 'tls', address: '203.0.113.7:40000', quality: 'measured', path: 'udp',
  });
  assert.deepEqual([up, down].map((flow) => [flow?.kbit, flow?.loss, flow?.isLimited]), [[1600, 0, false], [1600, 0, false]]);
  assert.deepEqual(tested, ['server', 'udp tcp', 'turn', 'up down delay', '']);
  assert.deepEqual(steps, [
    'connect', 'media.offer send', 'media.offer receive', 'media.offer send', 'room.join', 'session.join', 'media.offer send', 'session.publish',
    'media.offer receive', 'session.subscribe', 'media.close send', 'media.close receive', 'room.leave', 'leave',
  ]);
  assert.equal(stopped, 1);
  assert.equal(measuredSeconds, 10);
});

/** @type {[string, World, Partial<import('../../lib/check/verdicts.js').Measurements>][]} */
const situations = [
  ['UDP is blocked', { passes: ['tcp', 'relay'] }, { udp: 'blocked', tcp: 'works', turn: 'works', path: 'tcp', quality: 'measured' }],
  ['only TURN works', { passes: ['relay'] }, { udp: 'blocked', tcp: 'blocked', turn: 'works', path: 'turn', quality: 'measured' }],
  ['nothing works', { passes: [], servers: [] }, { udp: 'blocked', tcp: 'blocked', turn: 'notOffered', path: null, quality: 'noPath' }],
  ['TCP is not offered', { answer: candidates[0] }, { udp: 'works', tcp: 'notOffered', quality: 'measured' }],
  ['only TCP is offered', { answer: candidates[1] }, { udp: 'notOffered', tcp: 'works', address: '203.0.113.7:40000', path: 'tcp' }],
  ['the address of the page is among those announced', { answer: candidates[0] + candidates[0].replace('203.0.113.7', '203.0.113.8'), host: '203.0.113.8' }, { address: '203.0.113.8:40000' }],
  ['TURN refuses the credentials', { turn: 401 }, { udp: 'works', turn: 'credentials', relay: null, quality: 'measured' }],
  ['TURN refuses another relay', { turn: 486 }, { turn: 'refused' }],
  ['TURN does not answer', { turn: 701 }, { turn: 'unreachable' }],
  ['the browser does not say why there is no relay', { turn: 'silent' }, { turn: 'noRelay' }],
  ['TURN relays, but does not reach the server', { passes: [] }, { udp: 'blocked', tcp: 'blocked', turn: 'cannotRelay', quality: 'noPath' }],
  ['the server routes no media', { refuses: { 'media.offer': 'media_unavailable' } }, { udp: 'mediaOff', tcp: 'mediaOff', turn: 'mediaOff', quality: 'mediaOff' }],
  ['only operators create rooms', { refuses: { 'room.join': 'room_not_found' } }, { udp: 'works', quality: 'roomsClosed', up: null }],
  ['a limit of rooms is reached', { refuses: { 'room.join': 'rate_limited' } }, { udp: 'works', quality: 'busy' }],
  ['the bandwidth of the server is used up', { refuses: { 'session.subscribe': 'bandwidth_exceeded' } }, { quality: 'busy' }],
  ['the server allows no more connections', { refuses: { 'media.offer': 'bandwidth_exceeded' } }, { server: 'works', udp: 'untested', quality: 'busy' }],
  ['the credentials of the TURN servers do not come', { ignores: ['ice'] }, { udp: 'works', turn: 'untested', relay: null, quality: 'measured' }],
  ['a request is not answered', { ignores: ['session.publish'] }, { udp: 'works', quality: 'failed' }],
  ['offers are not answered', { ignores: ['media.offer'] }, { server: 'works', udp: 'untested', tcp: 'untested', turn: 'untested', quality: 'failed' }],
  ['the test stream does not come back', { returns: false }, { udp: 'works', quality: 'failed', up: null }],
  ['the page is in the background', { hidden: true }, { quality: 'hidden', up: null }],
  ['the connection for messages drops', { drops: 5 }, { server: 'lost' }],
  ['a proxy drops the upgrade', { connecting: 'hangs' }, { server: 'noUpgrade', udp: 'untested', quality: 'untested' }],
  ['a proxy refuses the upgrade', { connecting: 'connect_failed' }, { server: 'noUpgrade' }],
  ['the server is unreachable', { connecting: 'hangs', hasHTTP: false }, { server: 'unreachable' }],
  ['the server refuses', { connecting: 'banned' }, { server: 'refused' }],
];

for (const [situation, world, expected] of situations) {
  test(`the check reports it if ${situation}`, async () => {
    const measured = /** @type {Record<string, unknown>} */ ((await check(world)).measured);
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, measured[name]])), expected);
  });
}

test('addresses are read from candidates, with brackets around those of IPv6', () => {
  const sdp = 'v=0\r\na=candidate:1 1 udp 2130706431 203.0.113.7 40000 typ host\r\na=candidate:2 1 udp 2130706430 2001:db8::7 40000 typ host\r\n';
  assert.deepEqual(addressesIn(sdp), ['203.0.113.7:40000', '[2001:db8::7]:40000']);
  assert.deepEqual(addressesIn('v=0\r\n'), []);
});
