// In the room: people, chat, knocks, reactions, tiles.
import assert from 'node:assert/strict';
import test from 'node:test';
import { itemsFor } from '../../app/room/panel-items.js';
import { mayRecord } from '../../app/room/room-state.js';
import { roomStringsFor } from '../../app/room/strings.js';
import { arrangement, coveredEdge, tilesOf } from '../../app/room/tiles.js';
import { noticeOf } from '../../app/room/words.js';
import { ann, bob, me, options, person, RoomMachine, stream } from './room-machine.mjs';

const { strings } = roomStringsFor(['en']);
const line = (connectionId, text) => ({ connectionId, displayName: connectionId, text, at: 1 });

test('people who come and go are announced, and keep the order of joining', () => {
  const machine = new RoomMachine().inside().tell('person', { person: bob, me: 'me' });
  assert.deepEqual(machine.state.passing, { is: 'came', name: 'Bob' });
  assert.deepEqual(machine.state.room.people.map(({ connectionId }) => connectionId), ['ann', 'me', 'bob']);
  machine.tell('person', { person: { ...ann, state: 'left' }, me: 'me' });
  assert.deepEqual(machine.state.passing, { is: 'went', name: 'Ann' });
});

test('two people with one name are two tiles', () => {
  const machine = new RoomMachine().inside().tell('person', { person: person('ann2', 'Ann'), me: 'me' });
  assert.deepEqual(tilesOf(machine.state).map(({ id, name }) => [id, name]), [['ann', 'Ann'], ['ann2', 'Ann']]);
});

test('our own place, which changes on joining again, is not announced and is never a tile', () => {
  const machine = new RoomMachine().inside().tell('person', { person: { ...me, state: 'left' }, me: 'new' })
    .tell('person', { person: { ...me, connectionId: 'new' }, me: 'new' });
  assert.equal(machine.state.passing, null);
  assert.deepEqual(tilesOf(machine.state).map(({ id }) => id), ['ann']);
});

test('a person without a stream has a tile, and one without audio is muted', () => {
  const machine = new RoomMachine().inside();
  assert.deepEqual([tilesOf(machine.state)[0].hasVideo, tilesOf(machine.state)[0].isMuted], [false, true]);
  machine.tell('stream', { stream: stream('ann') });
  assert.deepEqual([tilesOf(machine.state)[0].hasVideo, tilesOf(machine.state)[0].isMuted], [true, false]);
  machine.tell('stream', { stream: stream('ann', { hasAudio: false }) });
  assert.equal(tilesOf(machine.state)[0].isMuted, true);
});

test('a screen is large while it is shared, and a pinned tile comes before it', () => {
  const machine = new RoomMachine().inside({ people: [ann, me, bob] }).tell('stream', { stream: stream('bob', { streamId: 's', isScreen: true }) });
  const tiles = () => tilesOf(machine.state);
  assert.deepEqual(arrangement(machine.state, tiles()), { layout: 'speaker', focus: 's' });
  machine.tell('pin', { id: 'ann' });
  assert.deepEqual(arrangement(machine.state, tiles()), { layout: 'pinned', focus: 'ann' });
  machine.tell('person', { person: { ...ann, state: 'left' }, me: 'me' }).tell('streamGone', { streamId: 's' });
  assert.equal(arrangement(machine.state, tiles()).layout, 'auto');
});

test('the chat has the history, is bounded, and counts what was not read', () => {
  const machine = new RoomMachine().inside({ chat: [line('ann', 'before')] });
  assert.deepEqual(machine.state.lines.map(({ text }) => text), ['before']);
  for (let index = 0; index < 400; index += 1) machine.tell('said', { line: line('ann', `${index}`) });
  assert.equal(machine.state.lines.length, 300);
  assert.equal(machine.state.unread, 400);
  machine.tell('panel', { is: 'chat' });
  assert.equal(machine.state.unread, 0);
  assert.equal(machine.tell('said', { line: line('ann', 'seen') }).state.unread, 0);
});

test('an empty message is not sent, and one that was not accepted comes back', () => {
  const machine = new RoomMachine().inside();
  assert.deepEqual(machine.tell('say', { text: '  ' }).effects, []);
  assert.deepEqual(machine.tell('say', { text: ' hi ' }).effects, [{ do: 'say', text: 'hi' }]);
  assert.deepEqual(machine.tell('unsaid', { text: 'hi', code: 'rate_limited', message: '' }).effects, [{ do: 'restoreDraft', text: 'hi' }]);
  assert.deepEqual(new RoomMachine().inside({ changes: { chat: false } }).tell('say', { text: 'hi' }).effects, []);
});

test('knocks are heard at most every few seconds, however many people knock', () => {
  const machine = new RoomMachine().host();
  for (let index = 0; index < 1000; index += 1) machine.tell('knock', { connectionId: `k${index}`, displayName: 'A person', waiting: true });
  assert.equal(machine.done.filter((effect) => effect.do === 'knockSound').length, 1);
  assert.equal(machine.state.knocks.length, 100);
  assert.deepEqual(machine.wait(5000).tell('knock', { connectionId: 'k0', displayName: 'A person', waiting: true }).wanted, ['knockSound']);
});

test('a knock stays until the server says that it was answered', () => {
  const machine = new RoomMachine().host().tell('knock', { connectionId: 'k', displayName: 'Cat', waiting: true }).tell('admit', { connectionId: 'k' });
  assert.deepEqual(machine.effects, [{ do: 'admit', connectionId: 'k' }]);
  assert.equal(machine.state.knocks.length, 1);
  machine.tell('knock', { connectionId: 'k', displayName: 'Cat', waiting: false });
  assert.deepEqual([machine.state.knocks.length, machine.tell('admit', { connectionId: 'k' }).effects.length], [0, 0]);
});

test('reactions are bounded, end by themselves, and are read out at most every few seconds', () => {
  const machine = new RoomMachine().inside({ people: [ann, me, bob] });
  for (let index = 0; index < 500; index += 1) machine.tell('reacted', { connectionId: 'ann', reaction: '👍' });
  assert.equal(machine.state.reactions.length, 3);
  const { reported } = machine.state;
  machine.tell('reacted', { connectionId: 'bob', reaction: '🎉' });
  assert.equal(machine.state.reported, reported);
  assert.equal(machine.wait(3000).tell('reacted', { connectionId: 'bob', reaction: '🎉' }).state.reported.name, 'Bob');
  const { event } = machine.effect('later');
  machine.tell(event.type, event);
  assert.equal(machine.state.reactions.length, 4);
});

test('each text about what happened stays for its whole time, also if another one stood there shortly before', () => {
  const machine = new RoomMachine().inside({ people: [ann, me] });
  const first = machine.tell('person', { person: bob, me: 'me' }).effect('later');
  const second = machine.wait(4000).tell('person', { person: { ...ann, handAt: 1 }, me: 'me' }).effect('later');
  machine.wait(1000).tell(first.event.type, first.event);
  assert.deepEqual(machine.state.passing, { is: 'hand', name: 'Ann' });
  assert.equal(machine.tell(second.event.type, second.event).state.passing, null);
});

test('a screen is shared only by those who may, and ends without a message if the user ended it', () => {
  const machine = new RoomMachine().inside({ changes: { share: 'hosts' } }).tell('share');
  assert.deepEqual([machine.effects, machine.state.trouble.code], [[], 'share_hosts']);
  const sharing = new RoomMachine().inside().tell('share').tell('screenOn').tell('screenOff');
  assert.deepEqual([sharing.state.sharing, sharing.state.trouble], ['off', null]);
  const stopped = new RoomMachine().inside().tell('share').tell('screenOn').tell('screenOff', { why: 'stoppedByHost' });
  assert.equal(stopped.state.passing.is, 'shareStopped');
});

test('a guest does not set options, and a host who becomes a guest loses the knocks', () => {
  assert.deepEqual(new RoomMachine().inside().tell('options', { change: { locked: true } }).effects, []);
  const machine = new RoomMachine().host().tell('knock', { connectionId: 'k', displayName: 'Cat', waiting: true }).tell('role', { role: 'guest' });
  assert.deepEqual([machine.state.knocks, machine.state.passing.is], [[], 'guestNow']);
});

test('the question whether to remove a person closes when they leave', () => {
  const machine = new RoomMachine().host().tell('ask', { question: { is: 'remove', connectionId: 'bob', name: 'Bob' } });
  assert.deepEqual(new RoomMachine().host().tell('answer', {}).effects, []);
  machine.tell('person', { person: { ...bob, state: 'left' }, me: 'me' });
  assert.deepEqual([machine.state.question, machine.tell('answer', { ban: true }).effects], [null, []]);
});

test('removing tells the server whether to ban', () => {
  const machine = new RoomMachine().host().tell('ask', { question: { is: 'remove', connectionId: 'bob', name: 'Bob' } }).tell('answer', { ban: true });
  assert.deepEqual(machine.effects, [{ do: 'remove', connectionId: 'bob', ban: true }]);
});

test('hosts may do everything, cohosts may not touch roles and hosts, guests nothing', () => {
  const texts = (members) => itemsFor({ ...bob, isMe: false, myRole: 'host', isMuted: false, shares: true, ...members }).map(([text]) => text);
  assert.deepEqual(texts({}), ['muteOther', 'stopShare', 'makeHost', 'makeCohost', 'remove']);
  assert.deepEqual(texts({ myRole: 'cohost', shares: false }), ['muteOther', 'remove']);
  assert.deepEqual(texts({ myRole: 'cohost', role: 'host', isMuted: true, shares: false }), []);
  assert.deepEqual(texts({ myRole: 'guest' }), []);
  assert.deepEqual(texts({ isMe: true }), []);
});

test('a change of the room is reported in one sentence', () => {
  const machine = new RoomMachine().inside().tell('changed', { options: { ...options, locked: true, lobby: true } });
  assert.equal(machine.state.passing.is, 'lockedOn');
  assert.equal(machine.tell('changed', { options: { ...options, lobby: true } }).state.passing.is, 'lockedOff');
});

test('the next layout follows, and the layout and the corner are remembered', () => {
  const machine = new RoomMachine().inside().tell('nextLayout').tell('nextLayout').tell('nextLayout');
  assert.equal(machine.state.kept.layout, 'auto');
  assert.equal(machine.tell('corner', { corner: 'topLeft' }).effect('remember').kept.corner, 'topLeft');
});

test('the card of knocks keeps its person while others come, go, or are reported again', () => {
  const machine = new RoomMachine().host();
  const card = () => machine.state.card?.connectionId;
  machine.tell('knock', { connectionId: 'cat', displayName: 'Cat', waiting: true }).tell('knock', { connectionId: 'dan', displayName: 'Dan', waiting: true });
  machine.tell('knock', { connectionId: 'cat', displayName: 'Cat', waiting: true });
  assert.deepEqual([card(), machine.state.knocks.map(({ connectionId }) => connectionId)], ['cat', ['cat', 'dan']]);
  machine.tell('knock', { connectionId: 'dan', displayName: 'Dan', waiting: false });
  assert.equal(card(), 'cat');
  machine.tell('role', { role: 'guest' });
  assert.equal(machine.state.card, null);
});

test('a press on the card that was meant for a person who has just gone admits nobody else', () => {
  const machine = new RoomMachine().host().tell('knock', { connectionId: 'cat', displayName: 'Cat', waiting: true });
  const ready = (step) => step.effect('later').event;
  const { card: cat } = machine.state;
  assert.deepEqual(machine.tell('answerCard', { how: 'admit', connectionId: 'cat' }).effects, [], 'it has just appeared');
  machine.tell('knock', { connectionId: 'cat', displayName: 'Cat', waiting: false }).tell('knock', { connectionId: 'dan', displayName: 'Dan', waiting: true });
  const { type, ...of } = ready(machine);
  machine.tell('cardReady', { card: cat });
  assert.deepEqual(machine.tell('answerCard', { how: 'admit', connectionId: 'dan' }).effects, [], 'Dan has just taken the place of Cat');
  machine.tell(type, of);
  assert.deepEqual(machine.tell('answerCard', { how: 'admit', connectionId: 'cat' }).effects, [], 'the press began on Cat');
  assert.deepEqual(machine.tell('answerCard', { how: 'admit', connectionId: 'dan' }).wanted, ['admit', 'later']);
  assert.deepEqual(machine.tell('answerCard', { how: 'admit', connectionId: 'dan' }).effects, [], 'a double click');
});

test('the card takes no press in the moment in which the panel of people uncovers it', () => {
  const machine = new RoomMachine().host().tell('knock', { connectionId: 'cat', displayName: 'Cat', waiting: true });
  const admits = () => machine.tell('answerCard', { how: 'admit', connectionId: 'cat' }).wanted.includes('admit');
  const { type, ...first } = machine.effect('later').event;
  machine.tell('panel', { is: 'people' }).tell('panel', { is: 'people' });
  const { event: second } = machine.effect('later');
  machine.tell(type, first);
  assert.equal(admits(), false, 'the time before the panel does not count');
  machine.tell(type, second).tell('panel', { is: 'people' }).tell('panel', { is: 'chat' });
  const { event: third } = machine.effect('later');
  assert.equal(admits(), false, 'another panel uncovers it too');
  machine.tell(type, third).tell('panel', { is: 'chat' });
  assert.equal(admits(), true, 'the panel of the chat does not cover it');
});

test('a stream that cannot be received is reported, and its person is neither muted nor flickers with each attempt', () => {
  const machine = new RoomMachine().inside({ people: [ann, me, bob] }).tell('fault', { of: 'stream-ann', connectionId: 'ann', code: 'bandwidth_exceeded', isFinal: false });
  const shown = () => tilesOf(machine.state).map(({ id, streamId, isMuted, isUnseen }) => [id, streamId, isMuted, isUnseen]);
  assert.deepEqual(shown(), [['ann', null, false, true], ['bob', null, true, false]]);
  machine.tell('stream', { stream: stream('ann', { isLive: false }) });
  assert.deepEqual(shown()[0], ['ann', null, false, true]);
  machine.tell('faultOver', { of: 'stream-ann' });
  assert.deepEqual(shown()[0], ['ann', 'stream-ann', false, false]);
  machine.tell('fault', { of: 'screen-ann', connectionId: 'ann', isScreen: true, code: 'internal', isFinal: false });
  assert.deepEqual(shown()[0], ['ann', 'stream-ann', false, false], 'only her screen is missing');
  machine.tell('fault', { of: 'screen', code: 'internal', isFinal: false }).tell('roomAway');
  assert.deepEqual(machine.state.faults, [], 'everything is sent and received again');
});

test('a name keeps clear of the own picture only where it covers the lower edge of the tile', () => {
  const tile = { x: 100, y: 0, width: 200, height: 300 };
  const own = { x: 220, y: 230, width: 90, height: 60 };
  assert.deepEqual(coveredEdge(tile, own), { left: 0, right: 80 });
  assert.deepEqual(coveredEdge(tile, { ...own, x: 90 }), { left: 80, right: 0 });
  const free = { left: 0, right: 0 };
  for (const [what, where] of Object.entries({ above: { y: 10 }, below: { y: 310 }, beside: { x: 300 }, before: { x: 10 } })) {
    assert.deepEqual(coveredEdge(tile, { ...own, ...where }), free, what);
  }
  assert.deepEqual(coveredEdge(tile, null), free);
});

test('a host starts and stops a recording with one press each, and a second press while the server is asked does nothing', () => {
  const machine = new RoomMachine().host({ hostsMayRecord: true }).tell('popup', { is: 'more' }).tell('record');
  assert.deepEqual([machine.effects, machine.state.popup, machine.state.recordingAsked], [[{ do: 'record', on: true }], null, true]);
  assert.deepEqual(machine.tell('record').effects, []);
  machine.tell('recording', { isRecorded: true, asks: false });
  assert.deepEqual(machine.tell('record').effects, [{ do: 'record', on: false }]);
  machine.tell('recording', { isRecorded: false, asks: false });
  assert.deepEqual(machine.tell('record').effects, [{ do: 'record', on: true }]);
});

test('only hosts of a server that permits it may record, and a person who becomes a host may too', () => {
  for (const machine of [new RoomMachine().host(), new RoomMachine().inside({ role: 'cohost', hostsMayRecord: true })]) {
    assert.deepEqual([mayRecord(machine.state), machine.tell('record').effects], [false, []]);
  }
  const machine = new RoomMachine().inside({ hostsMayRecord: true });
  assert.equal(mayRecord(machine.state), false);
  assert.equal(mayRecord(machine.tell('role', { role: 'host' }).state), true);
});

test('a recording that could not be started has a text with the next step, and can be tried again', () => {
  for (const code of ['archive_conflict', 'media_unavailable', 'recording_unavailable', 'storage_full', 'not_permitted']) {
    const machine = new RoomMachine().host({ hostsMayRecord: true }).tell('record').tell('recordRefused', { code, message: 'The text of the server.' });
    assert.equal(noticeOf(machine.state, strings).text, strings.room.troubles[`record_${code}`]);
    assert.deepEqual(machine.tell('record').effects, [{ do: 'record', on: true }]);
  }
  const other = new RoomMachine().host({ hostsMayRecord: true }).tell('record').tell('recordRefused', { code: 'rate_limited', message: '' });
  assert.equal(noticeOf(other.state, strings).text, strings.room.troubles.rate_limited);
});

test('joining again after an outage does not keep the button waiting for an answer', () => {
  const machine = new RoomMachine().host({ hostsMayRecord: true }).tell('record').tell('roomAway');
  assert.equal(machine.state.recordingAsked, false);
});
