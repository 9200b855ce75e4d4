// From the measurements of a check to its verdicts: a table of situations.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostOf, isPrivateHost } from '../../lib/check/hosts.js';
import { allowed, decodeResult, encodeResult } from '../../lib/check/result.js';
import { announcesWrongAddress, problemsOf, rows, unmeasured, verdictsOf } from '../../lib/check/verdicts.js';
import { fineFlow, fineResult } from './check-results.mjs';

/** @typedef {import('../../lib/check/verdicts.js').Measurements} Measurements */

/** @param {Partial<Measurements>} measured */
const found = (measured) => problemsOf(verdictsOf({ ...fineResult, ...measured })).map(({ row, level, code }) => `${row}: ${level} ${code}`);

/** @type {Partial<Measurements>} what differs if no media reaches the server */
const noMedia = { udp: 'blocked', tcp: 'blocked', turn: 'notOffered', relay: null, quality: 'noPath', path: null, up: null, down: null, roundTripMs: null };
const noQuality = ['up: bad noPath', 'down: bad noPath'];

/** @type {[string, Partial<Measurements>, string[]][]} */
const situations = [
  ['everything works', {}, []],
  ['there is no TURN server, and none is needed', { turn: 'notOffered', relay: null }, []],
  ['UDP is blocked, and TCP works', { udp: 'blocked', path: 'tcp' }, ['udp: fair blocked']],
  ['UDP is blocked, and the server offers no TCP and no TURN', { ...noMedia, tcp: 'notOffered' },
    ['udp: bad blockedAll', ...noQuality, 'turn: fair needed']],
  ['UDP and TCP are blocked, and TURN works', { udp: 'blocked', tcp: 'blocked', path: 'turn' }, ['udp: fair blocked', 'tcp: fair blocked']],
  ['UDP and TCP are blocked, and there is no TURN server', noMedia, ['udp: bad blockedAll', 'tcp: bad blockedToo', ...noQuality, 'turn: fair needed']],
  ['TCP is blocked', { tcp: 'blocked' }, ['tcp: fair blocked']],
  ['the TURN server does not reach the announced address either', { ...noMedia, turn: 'cannotRelay' },
    ['udp: bad wrongAddress', 'tcp: bad blockedToo', 'turn: bad cannotRelay', ...noQuality]],
  ['the server announces a private address to a page with a public name', { ...noMedia, address: '10.0.0.5:40000' },
    ['udp: bad wrongAddress', 'tcp: bad blockedToo', ...noQuality]],
  ['the page is at another address than the announced one', { ...noMedia, host: '203.0.113.9' },
    ['udp: bad wrongAddress', 'tcp: bad blockedToo', ...noQuality]],
  ['the page is at the announced address', { ...noMedia, host: '203.0.113.7' },
    ['udp: bad blockedAll', 'tcp: bad blockedToo', ...noQuality, 'turn: fair needed']],
  ['the TURN server refuses the credentials, and is not needed', { turn: 'credentials', relay: null }, ['turn: fair credentials']],
  ['the TURN server refuses the credentials, and is needed', { ...noMedia, turn: 'credentials' },
    ['udp: bad blockedAll', 'tcp: bad blockedToo', 'turn: bad credentials', ...noQuality]],
  ['the TURN server does not answer', { turn: 'unreachable', relay: null }, ['turn: fair unreachable']],
  ['the browser does not say why there is no relay', { turn: 'noRelay', relay: null }, ['turn: fair noRelay']],
  ['there is no camera', { camera: 'missing' }, ['camera: bad missing']],
  ['the browser blocks both devices', { camera: 'refused', microphone: 'refused' }, ['microphone: bad refused', 'camera: bad refused']],
  ['the microphone is muted', { microphone: 'muted' }, ['microphone: bad muted']],
  ['the microphone is silent, and the camera is covered', { microphone: 'silent', camera: 'dark' }, ['microphone: bad silent', 'camera: fair dark']],
  ['the person heard nothing', { speakers: 'silent' }, ['speakers: bad silent']],
  ['some packets are lost on the way to the server', { up: { ...fineFlow, loss: 0.03 } }, ['up: fair loss']],
  ['many packets are lost on the way to the device', { down: { ...fineFlow, loss: 0.2 } }, ['down: bad loss']],
  ['much jitter', { down: { ...fineFlow, jitterMs: 80 } }, ['down: fair jitter']],
  ['a slow upload', { up: { ...fineFlow, kbit: 300, isLimited: true } }, ['up: fair bandwidth']],
  ['a very slow upload', { up: { ...fineFlow, kbit: 90, isLimited: true }, down: { ...fineFlow, kbit: 90 } }, ['up: bad bandwidth']],
  ['a slow download', { down: { ...fineFlow, kbit: 400, isLimited: true } }, ['down: fair bandwidth']],
  ['a download that is fast enough for a camera', { down: { ...fineFlow, kbit: 1100, isLimited: true } }, []],
  ['a slow device, whose network carries all that it sends', { up: { ...fineFlow, kbit: 200 }, down: { ...fineFlow, kbit: 200 } }, []],
  ['the worst of one direction counts', { up: { loss: 0.03, jitterMs: 60, kbit: 90, isLimited: true } }, ['up: bad bandwidth']],
  ['a long delay', { roundTripMs: 350 }, ['delay: fair delay']],
  ['a very long delay', { roundTripMs: 900 }, ['delay: bad delay']],
  ['the WebSocket is not upgraded', { ...unmeasured, server: 'noUpgrade' }, ['server: bad noUpgrade']],
  ['the server does not answer', { ...unmeasured, server: 'unreachable' }, ['server: bad unreachable']],
  ['the server refuses', { ...unmeasured, server: 'refused' }, ['server: bad refused']],
  ['the connection was lost', { server: 'lost' }, ['server: bad lost']],
  ['the server routes no media', { udp: 'mediaOff', tcp: 'mediaOff', turn: 'mediaOff', relay: null, quality: 'mediaOff', up: null, down: null }, []],
  ['only operators create rooms', { quality: 'roomsClosed', up: null, down: null, roundTripMs: null }, []],
  ['the test stream does not come back', { quality: 'failed', up: null, down: null, roundTripMs: null }, ['up: fair failed', 'down: fair failed']],
  ['the server or the network has reached a limit', { quality: 'busy', up: null, down: null, roundTripMs: null }, []],
  ['nothing was tested', unmeasured, []],
];

for (const [situation, measured, problems] of situations) {
  test(`problems if ${situation}`, () => assert.deepEqual(found(measured), problems));
}

test('there is a verdict for each row, in order, whatever was measured', () => {
  for (const [name, values] of Object.entries(allowed)) {
    for (const value of values) {
      const verdicts = verdictsOf(/** @type {any} */ ({ ...fineResult, [name]: value }));
      assert.deepEqual(verdicts.map(({ row }) => row), [...rows], `${name} ${value}`);
      for (const { code } of verdicts) assert.ok(code, `${name} ${value}`);
    }
  }
});

test('an announced address is wrong only if no media reaches the server', () => {
  const behindNAT = { ...fineResult, ...noMedia, address: '192.168.0.2:40000' };
  assert.equal(announcesWrongAddress(behindNAT), true);
  assert.equal(announcesWrongAddress({ ...behindNAT, turn: 'works' }), false);
  assert.equal(announcesWrongAddress({ ...behindNAT, host: 'confab.localhost' }), false);
  assert.equal(announcesWrongAddress({ ...behindNAT, host: '192.168.0.2' }), false);
  assert.equal(announcesWrongAddress({ ...behindNAT, host: '192.168.0.3' }), true);
  assert.equal(announcesWrongAddress({ ...behindNAT, address: '' }), false);
  assert.equal(announcesWrongAddress({ ...behindNAT, address: '[2001:db8::7]:40000', host: '[2001:db8::7]' }), false);
});

test('private hosts differ from public ones', () => {
  const privates = ['localhost', 'server', 'confab.localhost', 'pi.local', 'nas.home.arpa', 'nas.internal', '10.1.2.3', '127.0.0.1', '172.16.0.1', '172.31.255.1',
    '192.168.1.1', '169.254.1.1', '100.64.0.1', '0.0.0.0', '::1', '[::1]', 'fd00::1', 'fe80::1'];
  const publics = ['chat.example.org', '203.0.113.7', '172.32.0.1', '172.15.0.1', '192.169.0.1', '100.128.0.1', '100.63.0.1', '2001:db8::7', '[2001:db8::7]', 'local.example.org', 'nas.lan', 'home.arpa.example'];
  assert.deepEqual(privates.filter((host) => !isPrivateHost(host)), []);
  assert.deepEqual(publics.filter(isPrivateHost), []);
});

test('an address is read with its port', () => {
  assert.deepEqual(['203.0.113.7:40000', '[2001:db8::7]:40000', '', '203.0.113.7', 'x'].map(hostOf), ['203.0.113.7', '2001:db8::7', '', '', '']);
});

test('a result survives its link', () => {
  for (const measured of [fineResult, { ...unmeasured, host: '[2001:db8::9]' }, { ...fineResult, ...noMedia, address: '[2001:db8::7]:40000' }]) {
    const text = encodeResult(measured);
    assert.match(text, /^[\w-]+$/);
    assert.ok(text.length < 1000, `${text.length} characters`);
    assert.deepEqual(decodeResult(text), measured);
  }
});

test('a link carries only numbers, names from lists and addresses, so nobody else’s words are shown', () => {
  const forged = (/** @type {object} */ members) => decodeResult(encodeResult(/** @type {any} */ ({ ...fineResult, ...members })));
  for (const members of [
    { browser: 'Call 0900 now' }, { browser: '<b>1</b>' }, { host: 'evil example' }, { host: '' }, { address: 'call me:1' }, { camera: 'hello' }, { udp: undefined },
    { relay: 'sctp' }, { at: -1 }, { at: 9e15 }, { at: '1' }, { up: 'fast' }, { up: { ...fineFlow, loss: 2 } }, { down: { ...fineFlow, kbit: Infinity } }, { down: {} },
    { up: { ...fineFlow, isLimited: 'yes' } }, { roundTripMs: '5' }, { speakers: '__proto__' },
  ]) {
    assert.equal(forged(members), null, JSON.stringify(members));
  }
  assert.deepEqual(forged({ more: 'text' }), fineResult);
});

test('a link that is not complete has no result', () => {
  const text = encodeResult(fineResult);
  for (const bad of ['', 'x', '!', text.slice(0, -5), text.slice(3), 'a'.repeat(5000), btoa('null'), btoa('[]'), btoa('{}'), btoa('{"format":2}')]) {
    assert.equal(decodeResult(bad), null, bad.slice(0, 20));
  }
});
