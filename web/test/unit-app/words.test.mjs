import assert from 'node:assert/strict';
import test from 'node:test';
import { withInterests } from '../../app/strangers/interests.js';
import { noticeOf, startReason, statusOf } from '../../app/strangers/status.js';
import { stringsFor } from '../../app/shared/strings.js';
import { alice, Machine } from './machine.mjs';
import { pageText } from './page-text.mjs';

const { strings } = stringsFor(['en']);
const plain = (text) => text.replace(/[\u2068\u2069]/g, '');
const status = (machine) => plain(statusOf(machine.state, strings, machine.now).text);
const notice = (machine) => noticeOf(machine.state, strings, machine.now);

test('the status line follows a chat from the first word to the last', () => {
  const machine = new Machine({ agreed: false });
  assert.equal(status(machine), 'Connecting…');
  machine.tell('connected', { resumed: false });
  assert.match(status(machine), /^Connected\. Agree to the rules/);
  machine.tell('form', { change: { agreed: true } }).tell('start');
  assert.match(status(machine), /Allow camera/);
  machine.tell('mediaOn', { camera: true });
  assert.match(status(machine), /^Looking for someone/);
  machine.tell('matched', alice);
  assert.match(status(machine), /connected with Alice.*Waiting for video/);
  machine.tell('stream', { is: 'live' });
  assert.equal(status(machine), 'You are talking with Alice. Have fun!');
  machine.tell('partner', { state: 'reconnecting' });
  assert.match(status(machine), /^Alice lost their connection.*press Next/);
  machine.tell('partner', { state: 'connected' }).tell('reconnecting');
  assert.match(status(machine), /^Connection lost/);
  machine.tell('connected', { resumed: true });
  assert.match(status(machine), /connected again/);
  machine.tell('passed', { passing: 'back' }).tell('ended', { reason: 'partnerLeft' });
  assert.match(status(machine), /^Alice left\. Looking/);
  machine.tell('waiting', { retryAfterMs: 1000 });
  assert.match(status(machine), /in 1 second\./);
  machine.tell('waiting', { retryAfterMs: 2000 });
  assert.match(status(machine), /in 2 seconds\./);
});

test('a penalty in the status line does not change each second, or a screen reader would repeat it', () => {
  const machine = new Machine().searching().tell('waiting', { retryAfterMs: 8000 });
  const said = status(machine);
  assert.equal(status(machine.wait(3000)), said);
  assert.notEqual(status(machine.wait(6000)), said);
});

test('texts work for a partner without a name', () => {
  const machine = new Machine().matched({ ...alice, partner: {} });
  assert.match(status(machine), /connected with your partner/);
  assert.match(status(machine.tell('partner', { state: 'reconnecting' })), /^Your partner lost/);
});

test('a name is isolated, so that it cannot reverse the sentence', () => {
  const { text } = statusOf(new Machine().matched({ ...alice, partner: { name: '\u202eevil' } }).state, strings, 0);
  assert.ok(text.includes('\u2068\u202eevil\u2069'));
});

test('every way the connection can end has a text, and a next step if there is one', () => {
  const actions = {
    version_unsupported: ['reload'], banned: [], forbidden_origin: [], replaced: ['takeOver'], too_many_connections: ['retryLink'],
    connect_failed: ['retryLink', 'check'], something_new: ['retryLink'],
  };
  for (const [code, expected] of Object.entries(actions)) {
    const found = notice(new Machine().tell('closed', { code, message: '' }));
    assert.ok(found.text.length > 10, code);
    assert.deepEqual(found.actions, expected, code);
  }
});

test("a ban shows the server's message, which contains the end of the ban", () => {
  assert.match(notice(new Machine().tell('closed', { code: 'banned', message: 'Banned until May.' })).text, /Banned until May\./);
});

test('every rejection of a search has a text; an unknown one shows the server’s message', () => {
  for (const code of ['elsewhere', 'queue_full', 'invalid_interests', 'rate_limited', 'internal']) {
    const found = notice(new Machine().searching().tell('refused', { verb: 'start', code, message: 'The server is sorry.' }));
    assert.ok(found.text.length > 10, code);
    assert.ok(found.actions.includes('start'), code);
    if (code === 'internal') assert.equal(found.text, 'The server is sorry.');
  }
});

test('a camera failure is shown above a chat; on the first screen the preview shows it', () => {
  assert.deepEqual(notice(new Machine().matched().tell('mediaLost')).actions, ['openMedia', 'useText']);
  assert.equal(notice(new Machine().tell('start').tell('mediaFailed', { why: 'missing' })), null);
  for (const why of ['refused', 'missing', 'busy', 'insecure', 'lost', 'unknown']) assert.ok(strings.media[why].length > 20, why);
});

test('Start shows why it is disabled', () => {
  assert.equal(startReason(new Machine().state, strings), null);
  assert.ok(startReason(new Machine({ agreed: false }).state, strings));
  assert.ok(startReason(new Machine().tell('closed', { code: 'banned' }).state, strings));
});

test('nouns agree with their numbers', () => {
  assert.equal(strings.people(1), 'No one else is online yet');
  assert.equal(strings.people(2), '2 people online');
  assert.equal(strings.session.here(1), 'You are in the session with 1 other person.');
  assert.equal(strings.tryingIn('It is closed.', 1), 'It is closed. Try again in 1 second.');
});

test('a known wait replaces the advice to try again', () => {
  assert.equal(strings.tryingIn(strings.troubles.rate_limited, 12), 'Too many requests. Try again in 12 seconds.');
  assert.equal(strings.tryingIn('Too many wrong passwords. Try again in 60 seconds.', 59), 'Too many wrong passwords. Try again in 59 seconds.');
  assert.equal(strings.tryingIn('Wrong password. Try again.', 5), 'Wrong password. Try again in 5 seconds.');
});

test('the names that tests and users rely on do not change', () => {
  const { start, next, stop, mute, cameraOff, report, block, send, name, interests, message, video, textOnly, you, partner } = strings;
  assert.deepEqual([start, next, stop, mute, cameraOff, report, block, send], ['Start', 'Next', 'Stop', 'Mute', 'Camera off', 'Report', 'Block', 'Send']);
  assert.deepEqual([name, interests, message, video, textOnly, you, partner], ['Name', 'Interests', 'Message', 'Video', 'Text only', 'You', 'Partner']);
});

test('every text of the pages is in the catalog', async () => {
  for (const page of ['strangers', 'try']) {
    const html = await pageText(page);
    const asked = [...html.matchAll(/data-(?:text|label|hint)="([^"]+)"/g)].map(([, path]) => path);
    assert.ok(asked.length > 10, page);
    for (const path of asked) assert.equal(typeof path.split('.').reduce((part, key) => part?.[key], strings), 'string', `${page}: ${path}`);
  }
});

test('the pages contain nothing that their security policy forbids', async () => {
  for (const page of ['strangers', 'try']) {
    const html = await pageText(page);
    assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<script(?![^>]*src=)|https?:/, page);
  }
});

test('interests are trimmed, compared as the server does, shortened and limited', () => {
  assert.deepEqual(withInterests([], ' Chess ,, jazz,chess, ＪＡＺＺ '), ['Chess', 'jazz']);
  assert.deepEqual(withInterests(['a'], 'slow   cooking'), ['a', 'slow cooking']);
  assert.equal([...withInterests([], '🎷'.repeat(80))[0]].length, 50);
  assert.equal(withInterests([], Array.from({ length: 20 }, (_, index) => `i${index}`).join(',')).length, 10);
});
