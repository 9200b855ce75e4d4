// Before the room, the way in, and the way out.
import assert from 'node:assert/strict';
import test from 'node:test';
import { usual } from '../../app/room/settings.js';
import { RoomMachine } from './room-machine.mjs';

const joinOf = (machine) => machine.effect('join')?.join;

test('Join opens the camera, and asks the server when the camera is open', () => {
  const machine = new RoomMachine().tell('connected', { resumed: false }).tell('join');
  assert.deepEqual(machine.wanted, ['openMedia']);
  assert.equal(machine.state.place.is, 'joining');
  machine.tell('mediaOn', { camera: true });
  assert.deepEqual(joinOf(machine), { name: 'garden', displayName: 'Robin', password: undefined, routedOnly: true });
});

test('Join before the connection is ready takes effect when it is', () => {
  const machine = new RoomMachine().tell('openMedia').tell('mediaOn', { camera: true }).tell('join');
  assert.deepEqual(machine.wanted, []);
  assert.deepEqual(machine.tell('connected', { resumed: false }).wanted, ['join']);
});

test('the server is asked once, however often Join is pressed', () => {
  const machine = new RoomMachine().joining().tell('join').tell('join').tell('mediaOn', { camera: true });
  assert.equal(machine.done.filter((effect) => effect.do === 'join').length, 1);
});

test('without a camera one press of Join joins too, whatever the reason, and the first answer comes first', () => {
  for (const why of ['refused', 'missing', 'busy', 'insecure', 'unknown']) {
    const machine = new RoomMachine().tell('connected', { resumed: false }).tell('join');
    assert.deepEqual(machine.wanted, ['openMedia'], 'the browser asks the user before anybody sees them come');
    assert.deepEqual(machine.tell('mediaFailed', { why }).wanted, ['join'], why);
    assert.deepEqual(machine.state.media, { is: 'failed', why });
    assert.ok(!machine.tell('joined', { room: roomOf(), chat: [] }).wanted.includes('publish'));
    assert.deepEqual(machine.tell('mediaOn', { camera: true }).wanted, ['publish'], 'the notice in the room leads to another try');
  }
});

test('a camera that fails before the server is connected, or after the user has canceled, joins nothing early', () => {
  const offline = new RoomMachine().tell('join').tell('mediaFailed', { why: 'missing' });
  assert.deepEqual(offline.wanted, []);
  assert.deepEqual(offline.tell('connected', { resumed: false }).wanted, ['join']);
  const canceled = new RoomMachine().tell('connected', { resumed: false }).tell('join').tell('cancel').tell('mediaFailed', { why: 'missing' });
  assert.deepEqual([canceled.wanted, canceled.state.place.is], [[], 'before']);
  assert.deepEqual(new RoomMachine().tell('connected', { resumed: false }).tell('openMedia').tell('mediaFailed', { why: 'missing' }).wanted, []);
});

const roomOf = () => ({
  name: 'Garden', me: 'me', role: 'host', people: [], away: false,
  options: { media: 'routed', capacity: 25, locked: false, lobby: false, password: false, chat: true, share: 'all', persistent: false },
});

test('the camera is published on entering, or as soon as it is opened inside', () => {
  assert.deepEqual(new RoomMachine().inside().wanted, ['publish', 'focus']);
  const late = new RoomMachine().tell('connected', { resumed: false }).tell('openMedia').tell('mediaFailed', { why: 'busy' }).tell('join')
    .tell('joined', { room: roomOf(), chat: [] });
  assert.deepEqual(late.tell('mute').wanted, ['openMedia'], 'the button turns the microphone on');
  assert.deepEqual(late.tell('mediaOn', { camera: false }).wanted, ['publish']);
});

test('a password is asked for only if the room has one, and a wrong one is asked again', () => {
  const machine = new RoomMachine().joining().tell('joinRefused', { code: 'room_password', message: '' });
  assert.equal(machine.state.asksPassword, true);
  assert.equal(machine.state.trouble, null);
  assert.deepEqual(machine.wanted, ['focus']);
  machine.tell('password', { password: 'wrong' }).tell('join');
  assert.equal(joinOf(machine).password, 'wrong');
  machine.tell('joinRefused', { code: 'room_password', message: '' });
  assert.equal(machine.state.trouble.code, 'wrong_password');
  assert.equal(machine.state.password, '');
});

test('a password for a room that has none is dropped only after the user has read that', () => {
  const machine = new RoomMachine().joining().tell('joinRefused', { code: 'room_password', message: '' });
  machine.tell('password', { password: 'tea' }).tell('join');
  machine.tell('joinRefused', { code: 'room_no_password', message: '' });
  assert.deepEqual([machine.state.place.is, machine.state.trouble.code, machine.state.asksPassword], ['before', 'room_no_password', false]);
  machine.tell('join');
  assert.equal(joinOf(machine).password, undefined);
});

test('another room that has the name of the last one is joined only if the user wants it, and is asked about addresses again', () => {
  const machine = new RoomMachine().joining();
  machine.tell('joinRefused', { code: 'room_mesh', message: '' }).tell('join');
  machine.tell('joinRefused', { code: 'room_other', message: '' });
  assert.deepEqual([machine.state.place.is, machine.state.place.why], ['over', 'room_other']);
  machine.tell('again');
  assert.equal(joinOf(machine).routedOnly, true);
});

test('too many attempts say how long to wait, and keep what was typed', () => {
  const machine = new RoomMachine().joining().tell('joinRefused', { code: 'rate_limited', message: '', retryAfterMs: 4200 });
  assert.equal(machine.state.place.is, 'before');
  assert.equal(machine.state.trouble.seconds, 5);
});

test('each final refusal ends the visit with its reason', () => {
  for (const code of ['room_full', 'room_locked', 'room_refused', 'room_banned', 'room_not_found', 'media_unavailable', 'not_permitted', 'new_code']) {
    const machine = new RoomMachine().joining().tell('joinRefused', { code, message: 'Why.' });
    assert.deepEqual(machine.state.place, { is: 'over', why: code, message: 'Why.' });
  }
});

test('a refusal that arrives after Cancel changes nothing', () => {
  const machine = new RoomMachine().joining().tell('cancel');
  assert.ok(machine.wanted.includes('leave'));
  assert.equal(machine.tell('joinRefused', { code: 'room_full', message: '' }).state.place.is, 'before');
});

test('in the lobby the user waits, is let in, or cancels', () => {
  const machine = new RoomMachine().joining().tell('waiting');
  assert.equal(machine.state.place.is, 'waiting');
  assert.equal(machine.tell('joined', { room: roomOf(), chat: [] }).state.place.is, 'in');
  const impatient = new RoomMachine().joining().tell('waiting').tell('cancel');
  assert.deepEqual([impatient.state.place.is, impatient.wanted[0]], ['before', 'leave']);
});

test('Leave ends the screen share, and Join again uses the open camera', () => {
  const machine = new RoomMachine().inside().tell('leave');
  assert.deepEqual(machine.wanted, ['leave', 'closeScreen', 'focus']);
  assert.equal(machine.state.place.why, 'left');
  assert.deepEqual(machine.tell('again').wanted, ['join']);
});

test('an event of the room that arrives after leaving changes nothing', () => {
  const machine = new RoomMachine().inside().tell('leave');
  const before = machine.state;
  machine.tell('said', { line: { connectionId: 'ann', displayName: 'Ann', text: 'late', at: 1 } }).tell('ended', { reason: 'closed' })
    .tell('knock', { connectionId: 'x', displayName: 'X', waiting: true });
  assert.deepEqual(machine.state, before);
});

test('a short outage keeps the room; a longer one takes the room that the SDK has joined again', () => {
  const machine = new RoomMachine().inside().tell('reconnecting').tell('connected', { resumed: true });
  assert.equal(machine.state.passing.is, 'backAgain');
  assert.equal(machine.state.place.is, 'in');
  machine.tell('roomAway').tell('reconnecting').tell('connected', { resumed: false }).tell('restarted');
  assert.equal(machine.state.room.away, true);
  machine.tell('roomIs', { room: { ...roomOf(), me: 'new' }, knocks: [], streams: [] });
  assert.deepEqual([machine.state.room.me, machine.state.room.away], ['new', false]);
});

test('a room that has to admit the user again shows the lobby, and then the room', () => {
  const machine = new RoomMachine().inside().tell('waitingAgain');
  assert.equal(machine.state.place.is, 'waiting');
  assert.equal(machine.tell('roomIs', { room: roomOf(), knocks: [], streams: [] }).state.place.is, 'in');
});

test('a join that lost its connection is sent again', () => {
  const machine = new RoomMachine().joining().tell('joinRefused', { code: 'connection_restarted', message: '' });
  assert.deepEqual(machine.wanted, ['join']);
});

test('a connection that was closed for good ends the visit, but not one that was over already', () => {
  assert.equal(new RoomMachine().inside().tell('closed', { code: 'replaced' }).state.place.why, 'connectionLost');
  assert.equal(new RoomMachine().joining().tell('closed', { code: 'banned' }).state.place.is, 'before');
  const removed = new RoomMachine().inside().tell('ended', { reason: 'removed' }).tell('closed', { code: 'connect_failed' });
  assert.equal(removed.state.place.why, 'removed');
});

test('settings of the network make a new connection at the next join, and those of the camera open it again', () => {
  const machine = new RoomMachine().tell('connected', { resumed: false }).tell('openMedia').tell('mediaOn', { camera: true });
  machine.tell('settings', { change: { size: '1280x720' } });
  assert.deepEqual(machine.wanted, ['remember', 'openMedia'], 'before the room the preview shows it');
  machine.tell('mediaOn', { camera: true }).tell('settings', { change: { protocol: 'tcp' } });
  assert.deepEqual(machine.wanted, ['remember']);
  machine.tell('join');
  assert.deepEqual(machine.effect('connect').settings, { ...usual, size: '1280x720', protocol: 'tcp' });
  assert.deepEqual(machine.tell('connected', { resumed: false }).wanted, ['join']);
});

test('a preferred codec is remembered, and used for the next join by opening the camera again', () => {
  const machine = new RoomMachine().inside().tell('settings', { change: { videoCodec: 'h264' } });
  assert.deepEqual(machine.wanted, ['remember']);
  assert.equal(machine.effect('remember').kept.settings.videoCodec, 'h264');
  assert.deepEqual(machine.tell('leave').tell('again').wanted, ['openMedia']);
  assert.deepEqual(machine.tell('mediaOn', { camera: true }).wanted, ['join']);
  assert.deepEqual(machine.tell('leave').tell('again').wanted, ['join'], 'the camera already sends it');
});

test('in the room, settings wait until the next join', () => {
  const machine = new RoomMachine().inside().tell('settings', { change: { rate: 15 } });
  assert.deepEqual(machine.wanted, ['remember']);
  assert.deepEqual(machine.tell('leave').tell('again').wanted, ['openMedia']);
  assert.deepEqual(machine.tell('mediaOn', { camera: true }).wanted, ['join']);
});

test('a link to a mesh room asks for a mesh room, and says so first', () => {
  const machine = new RoomMachine({ mesh: true }).joining();
  assert.deepEqual(joinOf(machine).options, { media: 'mesh' });
});

test('a person who comes to a mesh room by another link learns before joining that members see each other’s addresses', () => {
  const machine = new RoomMachine().joining();
  assert.deepEqual([joinOf(machine).routedOnly, joinOf(machine).options], [true, undefined]);
  machine.tell('joinRefused', { code: 'room_mesh', message: '' });
  assert.deepEqual([machine.state.place.is, machine.state.mesh, machine.state.trouble.code], ['before', true, 'room_mesh']);
  assert.deepEqual(machine.effects, [{ do: 'focus', on: 'join' }]);
  machine.tell('join');
  assert.deepEqual([joinOf(machine).routedOnly, machine.state.trouble], [undefined, null]);
});

test('Mute and Camera off need no device that is not there', () => {
  const machine = new RoomMachine().inside().tell('mute');
  assert.deepEqual(machine.effects, [{ do: 'mute', on: true }]);
  assert.deepEqual(machine.tell('cameraOff').effects, [{ do: 'cameraOff', on: true }]);
  const voice = new RoomMachine().inside().tell('mediaLost', { kind: 'video' });
  assert.deepEqual(voice.tell('cameraOff').wanted, ['addCamera']);
});

test('a lost microphone is reported until another one is taken', () => {
  const machine = new RoomMachine().inside().tell('mediaLost', { kind: 'audio' });
  assert.equal(machine.state.media.lost, 'audio');
  assert.equal(machine.tell('mediaBack').state.media.lost, undefined);
});

test('a device that was chosen in the room ends the loss of its kind only, and a failed one is reported until another works', () => {
  const machine = new RoomMachine().inside().tell('mediaLost', { kind: 'video' }).tell('cameraFailed', { why: 'busy' });
  assert.deepEqual(machine.tell('mediaBack', { kind: 'audio' }).state.media, { is: 'on', camera: false, lost: 'video' });
  assert.equal(machine.state.trouble.code, 'camera_failed');
  assert.deepEqual(machine.tell('mediaBack', { kind: 'video' }).state.media, { is: 'on', camera: true });
  assert.equal(machine.state.trouble, null);
  assert.equal(machine.tell('microphoneFailed', { why: 'busy' }).state.trouble.code, 'microphone_failed');
  assert.equal(machine.state.media.is, 'on', 'the microphone before continues');
  assert.equal(machine.tell('mediaOn', { camera: false }).state.trouble, null, 'it was opened again');
  machine.tell('cameraFailed', { why: 'busy' }).tell('mediaOn', { camera: false });
  assert.equal(machine.state.trouble.code, 'camera_failed', 'only the microphone works');
  assert.equal(machine.tell('mediaOn', { camera: true }).state.trouble, null);
});

test('a host can mute the user, who can unmute', () => {
  const machine = new RoomMachine().inside().tell('mutedByHost');
  assert.deepEqual([machine.state.muted, machine.state.passing.is], [true, 'mutedByHost']);
  assert.deepEqual(machine.tell('mute').effects, [{ do: 'mute', on: false }]);
  assert.equal(machine.state.passing, null);
});
