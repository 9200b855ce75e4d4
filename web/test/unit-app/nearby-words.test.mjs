import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import test from 'node:test';
import { distance, moved, noMoves } from '../../app/nearby/position.js';
import { duration, nearbyStringsFor, unitFor } from '../../app/nearby/strings.js';
import { afterwardsOf, noticeOf, statusOf } from '../../app/nearby/words.js';
import { me, NearbyMachine } from './nearby-machine.mjs';
import { pageText } from './page-text.mjs';

const { strings } = nearbyStringsFor(['en']);
const plain = (text) => text.replace(/[\u2068\u2069]/g, '');
const status = (machine) => plain(statusOf(machine.state, strings).text);

test('the status line follows a call from the first word to the last', () => {
  const machine = new NearbyMachine().here();
  assert.equal(status(machine), 'You are online as Robin.');
  machine.tell('call', { person: { personId: 'a', name: 'Ann', online: true }, video: true });
  assert.match(status(machine), /Allow camera/);
  machine.tell('mediaOn', { camera: true });
  assert.equal(status(machine), 'Calling Ann…');
  machine.call({ state: 'placing' });
  assert.equal(status(machine), 'Calling Ann…');
  machine.call({ state: 'ringing', devices: 0 });
  assert.match(status(machine), /^Calling Ann….*Connecting to/);
  machine.call({ devices: 2 });
  assert.match(status(machine), /^Ringing…/);
  machine.call({ state: 'joining' });
  assert.equal(status(machine), 'Connecting with Ann…');
  machine.call({ state: 'active' });
  assert.equal(status(machine), 'You are talking with Ann.');
  machine.call({ away: true });
  assert.match(status(machine), /^Ann lost their connection/);
  machine.over('hungUp', { durationMs: 63_000 });
  assert.equal(status(machine), 'Ann ended the call. It lasted 1:03.');
});

test('every ending has a text for both sides, except a merged call', () => {
  const outcomes = ['hungUp', 'ended', 'declined', 'cancelled', 'missed', 'unanswered', 'busy', 'unreachable', 'failed', 'connectionLost', 'answeredElsewhere', 'declinedElsewhere', 'merged'];
  for (const direction of ['outgoing', 'incoming']) {
    assert.deepEqual(Object.keys(strings.nearby.over[direction]).sort(), [...outcomes].sort());
    assert.deepEqual(Object.keys(strings.nearby.outcomes[direction]).sort(), [...outcomes].sort());
    for (const outcome of outcomes) {
      assert.equal(strings.nearby.over[direction][outcome]('Ann', 5000).length > 10, outcome !== 'merged', `${direction} ${outcome}`);
    }
  }
});

test('a failed call can be repeated; after a good one, the users can keep in touch', () => {
  const failed = new NearbyMachine().here().calling('ringing').over('busy');
  assert.deepEqual(afterwardsOf(failed.state, strings).actions, ['callAgain', 'dismiss']);
  const good = new NearbyMachine().here().tell('contacts', { people: [] }).calling('active').over('ended', { durationMs: 9000 });
  assert.deepEqual(afterwardsOf(good.state, strings).actions, ['keep', 'dismiss']);
  const known = good.tell('contactAdded', { person: good.state.over.person, callId: 'c1' });
  assert.equal(afterwardsOf(known.state, strings), null);
  assert.equal(afterwardsOf(new NearbyMachine().here().state, strings), null);
});

test('a missed caller can be called back; a broken call can be repeated', () => {
  const after = (outcome) => afterwardsOf(new NearbyMachine().here().rung().over(outcome, { line: 9 }).state, strings);
  for (const outcome of ['missed', 'declined', 'cancelled']) {
    assert.deepEqual(after(outcome).actions, ['callBack', 'dismiss']);
    assert.match(after(outcome).text, /^Call .*Bob.* back\?$/);
  }
  for (const outcome of ['failed', 'connectionLost']) assert.deepEqual(after(outcome).actions, ['callAgain', 'dismiss']);
});

test('every rejection has a text; an unknown one shows the server’s message', () => {
  const codes = ['not_found', 'call_self', 'call_not_allowed', 'elsewhere', 'rate_limited', 'invalid_name', 'link_invalid', 'position_invalid', 'position_too_fast', 'push_not_allowed'];
  for (const code of codes) {
    assert.ok(noticeOf(new NearbyMachine().here().tell('refused', { code }).state, strings).text.length > 10, code);
  }
  assert.equal(noticeOf(new NearbyMachine().here().tell('refused', { code: 'new', message: 'The server is sorry.' }).state, strings).text, 'The server is sorry.');
});

test('a blocked person and a wait time are shown with the server’s message', () => {
  for (const code of ['call_not_allowed', 'rate_limited']) {
    assert.equal(noticeOf(new NearbyMachine().here().tell('refused', { code, message: 'Wait 9 minutes.' }).state, strings).text, 'Wait 9 minutes.');
  }
});

test('a camera that fails offers to call without it', () => {
  const machine = new NearbyMachine().here().tell('call', { person: { personId: 'a', name: 'Ann', online: true }, video: true }).tell('mediaFailed', { why: 'refused' });
  assert.deepEqual(noticeOf(machine.state, strings).actions, ['callVoice', 'callVideo', 'dismiss']);
});

test('the status line says what others see', () => {
  const machine = new NearbyMachine().here();
  assert.match(status(machine.tell('self', { me: { ...me, visible: false } })), /not shown/);
  assert.match(status(machine.tell('self', { me: { ...me, doNotDisturb: true } })), /Do not disturb/);
});

test('the names that tests and users rely on do not change', () => {
  const { call, accept, acceptVoice, decline, end, switchCamera, callName } = strings.nearby;
  assert.deepEqual([call, accept, acceptVoice, decline, end, switchCamera], ['Call', 'Accept', 'Accept without video', 'Decline', 'End', 'Switch camera']);
  assert.deepEqual([strings.cancel, strings.keep, strings.mute, strings.cameraOff, strings.name], ['Cancel', 'Keep in touch', 'Mute', 'Camera off', 'Name']);
  assert.equal(callName('Ann'), 'Call Ann');
});

test('distances use the unit of the region', () => {
  assert.equal(strings.nearby.within.mi(5), 'within 5 miles');
  assert.equal(strings.nearby.within.km(8), 'within 8 km');
  assert.deepEqual(['en-US', 'en-GB', 'en', 'de-DE', 'fr-CA', 'nonsense tag'].map((tag) => unitFor([tag])), ['mi', 'mi', 'mi', 'km', 'km', 'km']);
});

test('durations are shown like a clock', () => {
  assert.deepEqual([0, 7_400, 750_000, 3_723_000, -5].map(duration), ['0:00', '0:07', '12:30', '1:02:03', '0:00']);
});

test('every text of the page is in the catalog, and the page contains nothing its security policy forbids', async () => {
  const html = await pageText('nearby');
  const asked = [...html.matchAll(/data-(?:text|label|hint)="([^"]+)"/g)].map(([, path]) => path);
  assert.ok(asked.length > 30);
  for (const path of asked) assert.equal(typeof path.split('.').reduce((part, key) => part?.[key], strings), 'string', path);
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<script(?![^>]*src=)|https?:/);
});

test('every element the scripts look for is in the page', async () => {
  const folder = new URL('../../app/nearby/', import.meta.url);
  const html = await pageText('nearby');
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.js'))) {
    const source = await readFile(new URL(file, folder), 'utf8');
    for (const [, id] of source.matchAll(/(?:box|button|input|byId)\('([\w-]+)'/g)) assert.ok(html.includes(`id="${id}"`), `${file}: #${id}`);
  }
});

test('the first fix is sent, moves under 50 m are not, and the latest of several within 10 s is', () => {
  const at = (north) => ({ latitude: 51.5 + north / 111_195, longitude: 0 });
  let { moves, send, after } = moved(noMoves, at(0), 0);
  assert.deepEqual(send, at(0));
  ({ moves, send } = moved(moves, at(49), 20_000));
  assert.equal(send, null);
  ({ moves, send } = moved(moves, at(60), 20_000));
  assert.deepEqual(send, at(60));
  ({ moves, send, after } = moved(moves, at(200), 24_000));
  assert.deepEqual([send, after], [null, 6_000]);
  ({ moves, send, after } = moved(moves, at(400), 25_000));
  assert.deepEqual([send, after], [null, 5_000]);
  ({ moves, send } = moved(moves, null, 30_000));
  assert.deepEqual(send, at(400));
  assert.equal(moved(moves, null, 99_000).send, null);
});

test('returning to the last sent location sends nothing', () => {
  const at = (north) => ({ latitude: north / 111_195, longitude: 0 });
  const { moves: first } = moved(noMoves, at(0), 0);
  const { moves: waiting } = moved(first, at(500), 2_000);
  const { moves: back, send, after } = moved(waiting, at(10), 4_000);
  assert.deepEqual([send, after, back.waiting], [null, null, null]);
});

test('distances are right across the date line and at the poles', () => {
  assert.ok(Math.abs(distance({ latitude: 0, longitude: 179.999 }, { latitude: 0, longitude: -179.999 }) - 222) < 2);
  assert.ok(distance({ latitude: 90, longitude: 0 }, { latitude: 90, longitude: 180 }) < 1);
});
