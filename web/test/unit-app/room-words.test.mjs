// The texts of a room's page, and its small rules: the address, the settings, the microphone, the active speaker.
import assert from 'node:assert/strict';
import test from 'node:test';
import { arrivalIn, namesItsHolder } from '../../app/room/address.js';
import { Hearing } from '../../app/room/hearing.js';
import { codecChoices, codecsToSend, iceConfigOf, knownSettings, publisherOptions, usual } from '../../app/room/settings.js';
import { ActiveSpeaker } from '../../app/room/speaker.js';
import { roomStringsFor } from '../../app/room/strings.js';
import { deviceHint, endingOf, noticeOf, showsName, statusOf } from '../../app/room/words.js';
import { ann, bob, me, RoomMachine, stream } from './room-machine.mjs';
import { pageText } from './page-text.mjs';

const { strings } = roomStringsFor(['en']);
const plain = (text) => text.replace(/[\u2068\u2069]/g, '');
const status = (machine) => plain(statusOf(machine.state, strings).text);

test('the status line follows a visit', () => {
  const machine = new RoomMachine();
  assert.equal(status(machine), 'Connecting…');
  assert.equal(status(machine.tell('connected', { resumed: false })), 'Ready to join.');
  assert.match(status(machine.tell('join')), /Allow camera/);
  assert.equal(status(new RoomMachine().joining()), 'Joining…');
  assert.match(status(new RoomMachine().joining().tell('waiting')), /Waiting for a host/);
  const inside = new RoomMachine().inside();
  assert.equal(status(inside), 'You and 1 other person are here.');
  assert.equal(status(inside.tell('person', { person: bob, me: 'me' })), 'Bob joined.');
  assert.equal(status(inside.tell('passed', { passing: inside.state.passing })), 'You and 2 other people are here.');
  assert.match(status(inside.tell('reconnecting')), /^Connection lost/);
});

test('the status line says while the room is being recorded, and a notice asks for consent', () => {
  const machine = new RoomMachine().inside().tell('recording', { isRecorded: true, asks: false });
  assert.deepEqual(statusOf(machine.state, strings), { text: 'This session is being recorded.', tone: 'bad' });
  assert.equal(noticeOf(machine.state, strings), null);
  machine.tell('recording', { isRecorded: true, asks: true });
  assert.deepEqual(noticeOf(machine.state, strings)?.actions, ['beRecorded', 'notRecorded']);
  machine.tell('consent', { accept: false });
  assert.equal(noticeOf(machine.state, strings), null);
  assert.equal(status(machine), 'This session is being recorded.', 'others are still recorded');
  machine.tell('recording', { isRecorded: false, asks: false });
  assert.equal(status(machine), 'The recording has stopped.');
  machine.tell('passed', { passing: machine.state.passing });
  assert.equal(status(machine), 'You and 1 other person are here.');
});

test('the status line says while the room is being broadcast, also while it is recorded, and a notice asks for consent', () => {
  const machine = new RoomMachine().inside().tell('broadcast', { isBroadcast: true, asks: true });
  assert.deepEqual(statusOf(machine.state, strings), { text: 'This session is being broadcast live.', tone: 'bad' });
  assert.deepEqual(noticeOf(machine.state, strings)?.actions, ['beBroadcast', 'notBroadcast']);
  assert.deepEqual(machine.tell('broadcastConsent', { accept: true }).effects, [{ do: 'broadcastConsent', accept: true }]);
  assert.equal(noticeOf(machine.state, strings), null);
  machine.tell('recording', { isRecorded: true, asks: false });
  assert.equal(status(machine), 'This session is being recorded and broadcast live.');
  machine.tell('recording', { isRecorded: false, asks: false });
  machine.tell('passed', { passing: machine.state.passing });
  machine.tell('broadcast', { isBroadcast: false, asks: false });
  assert.equal(status(machine), 'The live broadcast has ended.');
  machine.tell('passed', { passing: machine.state.passing });
  assert.equal(status(machine), 'You and 1 other person are here.');
});

test('every end of a visit has a title, a sentence and a next step', () => {
  const reasons = [
    'left', 'removed', 'banned', 'closed', 'replaced', 'room_full', 'room_locked', 'room_refused', 'room_banned', 'room_mesh', 'room_other', 'room_not_found',
    'media_unavailable', 'not_permitted', 'connectionLost', 'something_new',
  ];
  for (const reason of reasons) {
    const { title, text, actions } = endingOf(new RoomMachine().inside().tell('ended', { reason }).state, strings);
    assert.ok(title.length > 5 && text.length > 10 && actions.length > 0, reason);
    assert.equal(actions.includes('again'), !['banned', 'room_banned', 'closed', 'not_permitted', 'room_not_found'].includes(reason), reason);
  }
});

test('every problem has a text, and an unknown one shows the message of the server', () => {
  for (const code of ['rate_limited', 'not_permitted', 'not_found', 'room_full', 'offline_queue_full']) {
    assert.ok(noticeOf(new RoomMachine().inside().tell('refused', { code, message: '' }).state, strings).text.length > 10, code);
  }
  assert.equal(noticeOf(new RoomMachine().inside().tell('refused', { code: 'new', message: 'So it is.' }).state, strings).text, 'So it is.');
});

test('blocked sound, a failed camera and a lost microphone are reported in the room, each with a next step', () => {
  const blocked = new RoomMachine().inside().tell('stream', { stream: stream('ann', { isSilent: true }) });
  assert.deepEqual(noticeOf(blocked.state, strings).actions, ['unblock']);
  assert.deepEqual(noticeOf(new RoomMachine().inside().tell('mediaFailed', { why: 'busy' }).state, strings).actions, ['openMedia', 'openVoice']);
  const { text, actions } = noticeOf(new RoomMachine().inside().tell('mediaLost', { kind: 'audio' }).state, strings);
  assert.match(text, /microphone was disconnected.*choose another one/);
  assert.deepEqual(actions, ['devices'], 'leads to where another one is chosen');
});

test('the sentence under the level meter says what is wrong with the microphone', () => {
  const machine = new RoomMachine().tell('openMedia').tell('mediaOn', { camera: true });
  assert.equal(deviceHint(machine.state, strings), '');
  assert.match(deviceHint(machine.tell('sound', { is: 'silent' }).state, strings), /No sound/);
  assert.match(deviceHint(machine.tell('mute').state, strings), /muted/);
  assert.match(deviceHint(machine.tell('mediaFailed', { why: 'refused' }).state, strings), /You can still join/);
});

test('an invitation that no longer works is explained, and is not tried again', () => {
  for (const code of ['token_expired', 'token_match_ended', 'token_malformed', 'token_signature']) {
    const { text, actions } = noticeOf(new RoomMachine({ hasToken: true }).tell('closed', { code, message: '' }).state, strings);
    assert.ok(/invitation/.test(text) && actions.length === 0, code);
  }
});

test('a join that is refused because of the invitation ends the visit, says why once, and leads to no other room', () => {
  const arrival = { hasToken: true, isNamed: true };
  for (const code of ['token_expired', 'token_revoked', 'token_room', 'token_of_tomorrow']) {
    const { state } = new RoomMachine(arrival).joining().tell('joinRefused', { code, message: 'Ask for another.' }).tell('closed', { code, message: '' });
    const { title, text, actions } = endingOf(state, strings);
    assert.ok(/invitation/.test(title) && /[Aa]sk for/.test(text), code);
    assert.deepEqual([actions, noticeOf(state, strings)], [[], null], code);
  }
  const ended = (reason) => endingOf(new RoomMachine(arrival).inside().tell('ended', { reason }).state, strings);
  assert.deepEqual([ended('removed').actions, ended('left').actions, ended('room_not_found').actions], [[], ['again'], []]);
  assert.match(ended('removed').text, /no longer works/);
  assert.match(ended('room_not_found').title, /has ended/);
});

test('an address that cannot be read leads to no room of an accidental name', () => {
  const machine = new RoomMachine({ address: '' });
  const { title, text, actions } = endingOf(machine.state, strings);
  assert.deepEqual([title, actions], ['This link does not work', ['otherRooms']]);
  assert.match(text, /Ask for the link again/);
  assert.equal(machine.tell('join').effects.length, 0);
});

test('a page in a frame does not lead to the list of rooms, which cannot be shown there', () => {
  assert.deepEqual(endingOf(new RoomMachine({ isFramed: true }).inside().tell('leave').state, strings).actions, ['again']);
});

test('a camera that is no longer sent is reported, with what to do', () => {
  const { state } = new RoomMachine().inside().tell('refused', { code: 'not_sent', message: '' });
  assert.match(noticeOf(state, strings).text, /Others can no longer see or hear you.*join again/);
});

test('what cannot be sent or received is reported in one sentence with what happens and what to do, until it is over or closed', () => {
  const fault = (machine, of, code, more) => machine.tell('fault', { of, code, isFinal: false, ...more });
  const text = (machine) => plain(noticeOf(machine.state, strings)?.text ?? '');
  const machine = new RoomMachine().inside({ people: [ann, me, bob] });
  fault(machine, 'stream-bob', 'bandwidth_exceeded', { connectionId: 'bob' });
  assert.match(text(machine), /^You cannot see or hear Bob yet, because the server .* Still trying… Ask people to turn their cameras off\.$/);
  fault(machine, 'stream-ann', 'internal', { connectionId: 'ann' });
  assert.match(text(machine), /^You cannot see or hear some people yet/);
  fault(machine, 'screen', 'internal');
  assert.match(text(machine), /your screen yet\. Still trying….* share again/);
  fault(machine, 'camera', 'bandwidth_exceeded');
  assert.match(text(machine), /^Others cannot see or hear you yet, because .* bandwidth limit\. Still trying… Turn your camera off so that others can at least hear you\.$/);
  assert.equal(text(machine.tell('dismiss')), '');
  machine.tell('faultOver', { of: 'camera' }).tell('faultOver', { of: 'screen' });
  fault(machine, 'video', 'bandwidth_exceeded');
  assert.match(text(machine), /^Others cannot see you yet, because the server has reached its bandwidth limit\. Still trying…$/);
  machine.tell('faultOver', { of: 'video' });
  fault(machine, 'screen', 'internal');
  fault(machine, 'camera', 'internal');
  assert.match(text(machine), /^Others cannot see or hear you yet\. Still trying/);
  for (const of of ['camera', 'screen', 'stream-bob']) machine.tell('faultOver', { of });
  assert.match(text(machine), /hear Ann yet/);
  fault(machine, 'stream-ann', 'not_permitted', { connectionId: 'ann', isFinal: true });
  assert.match(text(machine), /hear Ann\. Leave the room and join again/);
  fault(machine, 'stream-bob', 'internal', { connectionId: 'bob' });
  assert.match(text(machine), /hear some people yet\. Still trying/, 'Bob may still come');
  machine.tell('faultOver', { of: 'stream-bob' });
  assert.equal(text(machine.tell('faultOver', { of: 'stream-ann' })), '');
});

test('a screen of another person that cannot be received is reported as a screen', () => {
  const fault = (code, isFinal = false, of = 'screen-bob', connectionId = 'bob') => machine.tell('fault', { of, connectionId, isScreen: true, code, isFinal });
  const text = () => plain(noticeOf(machine.state, strings)?.text ?? '');
  const machine = new RoomMachine().inside({ people: [ann, me, bob] });
  fault('internal');
  assert.match(text(), /^You cannot see Bob’s screen yet\. Still trying/);
  fault('bandwidth_exceeded');
  assert.match(text(), /^You cannot see Bob’s screen yet, because the server .* bandwidth limit/);
  fault('not_permitted', true);
  assert.match(text(), /^You cannot see Bob’s screen\. Leave the room and join again/);
  fault('internal', false, 'screen-ann', 'ann');
  assert.match(text(), /^You cannot see some of the shared screens yet/);
  machine.tell('fault', { of: 'stream-ann', connectionId: 'ann', isScreen: false, code: 'internal', isFinal: false });
  assert.match(text(), /^You cannot see or hear some people yet/);
});

test('the names that tests and users rely on do not change', () => {
  const { join, leave, shareScreen, raiseHand, chat, people, layout, invite, admit, deny, remove, yourName, password } = strings.room;
  assert.deepEqual(
    [join, leave, strings.mute, strings.cameraOff, shareScreen, raiseHand, chat, people, layout, invite, admit, deny, remove, yourName, password, strings.message, strings.you],
    ['Join', 'Leave', 'Mute', 'Camera off', 'Share screen', 'Raise hand', 'Chat', 'People', 'Layout', 'Invite', 'Admit', 'Deny', 'Remove', 'Your name', 'Password', 'Message', 'You'],
  );
});

test('every text of the page is in the catalog, and nothing on it is forbidden by its security policy', async () => {
  const html = await pageText('room');
  const asked = [...html.matchAll(/data-(?:text|label|hint)="([^"]+)"/g)].map(([, path]) => path);
  assert.ok(asked.length > 40);
  for (const path of asked) assert.equal(typeof path.split('.').reduce((part, key) => part?.[key], strings), 'string', path);
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<script(?![^>]*src=)|https?:/);
});

test('the address names the room, and a token in it is not sent to servers', () => {
  const at = (href) => arrivalIn(new URL(href, 'https://confab.example'));
  assert.equal(at('/room/Caf%C3%A9%20am%20See').name, 'Café am See');
  assert.equal(at('/room/Cafe\u0301').name, 'Café', 'in the form that the server compares');
  assert.equal(at('/room/%20Clinic').name, ' Clinic', 'a space is part of the name, as for the server');
  assert.equal(at('/room/%E0%A4%A').name, '', 'it cannot be decoded');
  assert.deepEqual(at('/room/a?guest=1&media=mesh#token=t0k.en'), { name: 'a', guest: true, mesh: true, token: 't0k.en' });
});

test('below a path, the room is what follows the path', () => {
  const at = (path) => arrivalIn(new URL(path, 'https://confab.example'), undefined, '/some/video').name;
  assert.deepEqual(['/some/video/room/tea', '/some/video/room/tea/', '/room/tea', '/some/videos/room/tea'].map(at), ['tea', 'tea', '', '']);
});

test('a token outlives a reload, and a newer one in the address replaces it', () => {
  const at = (href, kept) => arrivalIn(new URL(href, 'https://confab.example'), kept).token;
  assert.deepEqual([at('/room/a', { token: 'old' }), at('/room/a#token=new', { token: 'old' })], ['old', 'new']);
  assert.deepEqual([at('/room/a', null), at('/room/a', { token: 7 }), at('/room/a', 'token')], [null, null, null]);
});

test('the name is asked unless the token sets it', () => {
  const token = (claims) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
  assert.equal(namesItsHolder(token({ name: 'Dr. Ádá ✓?>' })), true);
  for (const other of [token({ role: 'host' }), token({ name: '' }), 'no token', null]) assert.equal(namesItsHolder(other), false);
});

test('stored settings that are unknown are the usual ones', () => {
  assert.deepEqual(knownSettings(undefined), usual);
  assert.deepEqual(knownSettings({ size: '9x9', rate: 'fast', candidates: 'turn', protocol: 7 }), { ...usual, candidates: 'turn' });
  assert.deepEqual(iceConfigOf(usual), {});
  assert.deepEqual(iceConfigOf({ ...usual, candidates: 'stun', protocol: 'udp' }), { candidates: 'stun', protocol: 'udp' });
  assert.deepEqual(publisherOptions({ ...usual, size: '352x288', rate: 15 }), { resolution: '352x288', frameRate: 15 });
  assert.deepEqual(knownSettings({ videoCodec: 'h264', audioCodec: 'isac' }), { ...usual, videoCodec: 'h264' });
  const { videoCodec, audioCodec } = publisherOptions({ ...usual, videoCodec: 'h264', audioCodec: 'g722' });
  assert.deepEqual([videoCodec, audioCodec], ['h264', 'g722']);
});

test('a line of the chat shows its sender unless the line above is by the same one, also when that line is removed', () => {
  const line = (connectionId, more = {}) => ({ connectionId, displayName: connectionId, text: 'x', at: 0, ...more });
  const machine = new RoomMachine().inside();
  for (const said of [line('ann'), line('bob', { file: { fileId: 'plan', size: 1 } }), line('bob')]) machine.tell('said', { line: said });
  const shown = () => machine.state.lines.map((one, index, lines) => [one.connectionId, showsName(one, lines[index - 1])]);
  assert.deepEqual(shown(), [['ann', true], ['bob', true], ['bob', false]]);
  machine.tell('fileRemoved', { fileId: 'plan' });
  assert.deepEqual(shown(), [['ann', true], ['bob', true]], 'otherwise it would seem to be by Ann');
  machine.tell('said', { line: line(machine.state.room.me) });
  assert.deepEqual(shown().at(-1), [machine.state.room.me, false]);
});

test('the codecs that this browser cannot send say so, and only they cannot be chosen', () => {
  const names = { any: 'Any', vp8: 'VP8', h264: 'H.264' };
  const missing = (name) => `${name}, not here`;
  const browser = (...types) => ({ getCapabilities: (kind) => ({ codecs: types.map((type) => ({ mimeType: `${kind}/${type}` })) }) });
  const choices = (sender) => codecChoices(names, codecsToSend('video', sender), missing);
  assert.deepEqual(choices(browser('VP8', 'rtx', 'H264', 'H264')), [
    { value: 'any', text: 'Any', isMissing: false }, { value: 'vp8', text: 'VP8', isMissing: false }, { value: 'h264', text: 'H.264', isMissing: false },
  ]);
  assert.deepEqual(choices(browser('VP8', 'VP9')).at(-1), { value: 'h264', text: 'H.264, not here', isMissing: true }, 'Firefox without OpenH264');
  for (const silent of [undefined, {}, { getCapabilities: () => null }, browser()]) {
    assert.ok(choices(silent).every(({ isMissing }) => !isMissing), 'a browser that does not say what it sends');
  }
});

test('a microphone that was heard is silent only if it gives nothing at all', () => {
  const hearing = new Hearing();
  assert.equal(hearing.heard(0.001, 0), false);
  assert.ok(hearing.heard(0.001, 8000));
  assert.equal(hearing.verdict, 'silent');
  assert.ok(hearing.heard(0.2, 8100));
  hearing.heard(0.002, 60_000);
  assert.equal(hearing.verdict, 'heard');
  hearing.heard(0, 60_100);
  assert.ok(hearing.heard(0, 68_100));
});

test('the active speaker changes to a person who is clearly louder, and not for every cough', () => {
  const speaker = new ActiveSpeaker();
  let now = 0;
  const talk = (who, level, times) => {
    for (let turn = 0; turn < times; turn += 1) speaker.heard(who, level, now += 100);
    return speaker.current;
  };
  assert.equal(talk('ann', 0.005, 20), null, 'noise is no speech');
  assert.equal(talk('ann', 0.3, 5), 'ann');
  assert.equal(talk('bob', 0.9, 1), 'ann', 'one loud moment');
  assert.equal(talk('bob', 0.3, 30), 'bob');
  assert.ok(speaker.left('bob'));
  assert.equal(speaker.current, null);
});
