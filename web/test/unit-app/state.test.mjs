import assert from 'node:assert/strict';
import test from 'node:test';
import { alice, Machine } from './machine.mjs';

const names = (effects) => effects.map((effect) => effect.do);

test('Start does nothing until the user has agreed to the rules', () => {
  const machine = new Machine({ agreed: false }).tell('connected', { resumed: false }).tell('start');
  assert.equal(machine.state.chat.is, 'idle');
  assert.deepEqual(machine.effects, []);
});

test('a video search starts when both the camera and the connection are ready, in any order', () => {
  const cameraFirst = new Machine().tell('start');
  assert.deepEqual(names(cameraFirst.effects), ['openMedia']);
  cameraFirst.tell('mediaOn', { camera: true });
  assert.equal(cameraFirst.state.chat.is, 'preparing');
  cameraFirst.tell('connected', { resumed: false });
  assert.equal(cameraFirst.state.chat.is, 'waiting');
  assert.equal(cameraFirst.wants('start').length, 1);

  const connectionFirst = new Machine().tell('connected', { resumed: false }).tell('start');
  assert.equal(connectionFirst.state.chat.is, 'preparing');
  connectionFirst.tell('mediaOn', { camera: true });
  assert.deepEqual(names(connectionFirst.effects), ['useMedia', 'start', 'focus']);
});

test('a search for text opens no camera', () => {
  const machine = new Machine({ mode: 'text' }).tell('connected', { resumed: false }).tell('start');
  assert.equal(machine.state.chat.is, 'waiting');
  assert.deepEqual(machine.wants('start')[0].form.mode, 'text');
  assert.ok(!names(machine.done).includes('openMedia'));
});

test('choosing Text only turns the camera off, even while the browser is asking for it', () => {
  const machine = new Machine().tell('openMedia').tell('mediaOn', { camera: true }).tell('form', { change: { mode: 'text' } });
  assert.equal(machine.state.media.is, 'off');
  assert.ok(names(machine.effects).includes('closeMedia'));

  const asking = new Machine().tell('openMedia').tell('form', { change: { mode: 'text' } }).tell('mediaOn', { camera: true });
  assert.equal(asking.state.media.is, 'off');
  assert.deepEqual(names(asking.effects), ['closeMedia']);
});

test('a blocked camera cancels the start with the reason and offers text chat', () => {
  const machine = new Machine().tell('connected', { resumed: false }).tell('start').tell('mediaFailed', { why: 'refused' });
  assert.equal(machine.state.chat.is, 'idle');
  assert.deepEqual(machine.state.media, { is: 'failed', why: 'refused' });
  machine.tell('useText').tell('start');
  assert.equal(machine.state.chat.is, 'waiting');
});

test('late events of an earlier match change nothing', () => {
  const machine = new Machine().matched().tell('next').tell('waiting').tell('matched', { ...alice, matchId: 'm2', partner: { name: 'Bo' } });
  for (const [type, members] of [
    ['ended', { matchId: 'm1', reason: 'partnerLeft' }], ['partner', { matchId: 'm1', state: 'reconnecting' }],
    ['stream', { matchId: 'm1', is: 'missing' }], ['sound', { matchId: 'm1', silent: true }],
  ]) {
    const before = machine.state;
    machine.tell(type, members);
    assert.deepEqual(machine.state, before, type);
  }
  assert.equal(machine.state.chat.name, 'Bo');
});

test('Next continues the search at once and sends one request, however often it is pressed', () => {
  const machine = new Machine().matched().tell('next').tell('next');
  assert.equal(machine.state.chat.is, 'waiting');
  assert.equal(machine.done.filter((effect) => effect.do === 'next').length, 1);
  machine.tell('ended', { matchId: 'm1', reason: 'next' });
  assert.equal(machine.state.chat.after, 'next');
});

test('a match that was announced after Stop is not shown', () => {
  const machine = new Machine().searching().tell('stop').tell('matched', alice);
  assert.equal(machine.state.chat.is, 'idle');
});

test('a penalty counts from the arrival of its message', () => {
  const machine = new Machine().searching().tell('waiting', { retryAfterMs: 8000 });
  assert.deepEqual(machine.state.chat.pause, { until: machine.now + 8000, seconds: 8 });
  machine.tell('waiting', {});
  assert.equal(machine.state.chat.pause, null);
});

test('a chat line is shown at once, is confirmed when it comes back, and is marked if it was not sent', () => {
  const machine = new Machine().matched().tell('say', { text: 'hi' }).tell('say', { text: 'hi' });
  machine.tell('heard', { text: 'hi', mine: true });
  assert.deepEqual(machine.state.lines.map((line) => line.sent), ['yes', 'pending']);
  machine.tell('unsent', { text: 'hi' });
  assert.deepEqual(machine.state.lines.map((line) => line.sent), ['yes', 'failed']);
});

test('a message ends the typing indicator', () => {
  const machine = new Machine().matched().tell('typing', { typing: true });
  assert.equal(machine.state.chat.typing, true);
  machine.tell('heard', { text: 'hello', mine: false });
  assert.equal(machine.state.chat.typing, false);
});

test('nothing is sent to a partner without text chat, and no empty messages', () => {
  const machine = new Machine().matched({ ...alice, textChat: false }).tell('say', { text: 'hi' });
  assert.deepEqual(machine.effects, []);
  assert.deepEqual(new Machine().matched().tell('say', { text: '  ' }).effects, []);
});

test('the log is kept when a partner leaves, and cleared for the next one', () => {
  const machine = new Machine().matched().tell('heard', { text: 'bye', mine: false });
  machine.tell('ended', { matchId: 'm1', reason: 'partnerLeft' });
  assert.deepEqual(machine.state.lines.map((line) => line.text), ['bye', 'partnerLeft']);
  machine.tell('matched', { ...alice, matchId: 'm2' });
  assert.deepEqual(machine.state.lines, []);
});

test('the log is bounded', () => {
  const machine = new Machine().matched();
  for (let count = 0; count < 1000; count += 1) machine.tell('heard', { text: `${count}`, mine: false });
  assert.equal(machine.state.lines.length, 300);
  assert.equal(machine.state.lines.at(-1).text, '999');
});

test('a report is about the partner at the time when it was opened, even if another partner came since', () => {
  const machine = new Machine().matched().tell('ask', { about: 'report' });
  machine.tell('ended', { matchId: 'm1', reason: 'partnerNext' }).tell('matched', { ...alice, matchId: 'm2', partner: { name: 'Bo' } });
  machine.tell('report', { reason: 'spam', alsoBlock: true });
  assert.deepEqual(machine.effects, [{ do: 'report', matchId: 'm1', reason: 'spam', alsoBlock: true }]);
  machine.tell('reported', { matchId: 'm1', alsoBlock: true });
  assert.equal(machine.wants('block')[0].matchId, 'm1');
  assert.equal(machine.state.chat.name, 'Bo', 'the current chat continues');
  assert.equal(machine.state.question, null);
});

test('a report that also blocks ends the match after the report was sent', () => {
  const machine = new Machine().matched().tell('ask', { about: 'report' }).tell('report', { reason: 'spam', alsoBlock: true });
  assert.equal(machine.state.chat.is, 'matched');
  machine.tell('reported', { matchId: 'm1', alsoBlock: true });
  assert.equal(machine.state.chat.is, 'waiting');
  assert.equal(machine.state.chat.after, 'blocked');
});

test('a failed report can be sent again', () => {
  const machine = new Machine().matched().tell('ask', { about: 'report' }).tell('report', { reason: 'spam', alsoBlock: false });
  machine.tell('refused', { verb: 'report', code: 'rate_limited' });
  assert.equal(machine.state.reporting, 'failed');
  assert.equal(machine.tell('report', { reason: 'spam', alsoBlock: false }).wants('report').length, 1);
});

test('a partner who left can be reported as long as the server accepts it', () => {
  const machine = new Machine().matched().tell('stop');
  const [{ after, event }] = machine.wants('later');
  assert.equal(after, 60_000);
  assert.equal(machine.tell('ask', { about: 'report' }).state.question.matchId, 'm1');
  machine.tell('unask').tell(event.type, event);
  assert.equal(machine.state.last, null);
  assert.equal(machine.tell('ask', { about: 'report' }).state.question, null);
});

test('blocking asks for confirmation first, and then continues like Next', () => {
  const machine = new Machine().matched().tell('block');
  assert.deepEqual(machine.effects, []);
  machine.tell('ask', { about: 'block' }).tell('block');
  assert.equal(machine.wants('block')[0].matchId, 'm1');
  assert.equal(machine.state.chat.after, 'blocked');
});

test('a short disconnection is shown, and the chat continues afterwards', () => {
  const machine = new Machine().matched().tell('reconnecting').wait(3000).tell('connected', { resumed: true });
  assert.equal(machine.state.chat.is, 'matched');
  assert.equal(machine.state.passing, 'back');
  machine.tell('passed', { passing: 'reported' });
  assert.equal(machine.state.passing, 'back', 'the timer of an earlier message removes only that message');
  machine.tell('passed', { passing: 'back' });
  assert.equal(machine.state.passing, null);
});

test('after a server restart the SDK continues the search without a second Start', () => {
  const machine = new Machine().matched().tell('reconnecting').tell('ended', { matchId: 'm1', reason: 'connectionLost' });
  machine.wait(5000).tell('connected', { resumed: false }).tell('restarted');
  assert.equal(machine.state.link.is, 'online');
  assert.equal(machine.state.chat.is, 'waiting');
  assert.equal(machine.state.chat.after, 'connectionLost');
  assert.equal(machine.done.filter((effect) => effect.do === 'start').length, 1);
});

test('a person who was only waiting when the server sent them to another node is not notified that a chat ended', () => {
  const machine = new Machine().searching().tell('reconnecting').tell('connected', { resumed: false }).tell('restarted');
  assert.deepEqual([machine.state.link.is, machine.state.chat.is, machine.state.chat.after], ['online', 'waiting', null]);
});

test('a long absence stops the search, so that no user returns to a stranger looking at them', () => {
  const machine = new Machine().matched().tell('reconnecting').wait(600_000).tell('connected', { resumed: false }).tell('restarted');
  assert.equal(machine.state.chat.is, 'idle');
  assert.ok(names(machine.effects).includes('stop'));
});

test('a rejected start returns to the first screen with the reason', () => {
  const machine = new Machine().searching().tell('refused', { verb: 'start', code: 'elsewhere', message: 'x' });
  assert.equal(machine.state.chat.is, 'idle');
  assert.equal(machine.state.trouble.code, 'elsewhere');
  assert.equal(machine.tell('start').state.trouble, null);
});

test('an error that crossed the end of a match is not shown', () => {
  const machine = new Machine().searching().tell('refused', { verb: 'next', code: 'not_matched' });
  assert.equal(machine.state.trouble, null);
  assert.equal(machine.state.chat.is, 'waiting');
});

test('a closed connection ends everything and turns the camera off; retrying reconnects', () => {
  const machine = new Machine().matched().tell('closed', { code: 'replaced' });
  assert.equal(machine.state.chat.is, 'idle');
  assert.ok(names(machine.effects).includes('closeMedia'));
  assert.deepEqual(machine.tell('start').effects, []);
  assert.deepEqual(names(machine.tell('retryLink').effects), ['connect']);
});

test('an unplugged camera shows a notice in the chat, and returns to the same match', () => {
  const machine = new Machine().matched().tell('mediaLost');
  assert.deepEqual(machine.state.media, { is: 'failed', why: 'lost' });
  assert.equal(machine.state.chat.is, 'matched');
  machine.tell('openMedia').tell('mediaOn', { camera: true });
  assert.deepEqual(names(machine.effects), ['useMedia']);
  assert.equal(machine.state.chat.is, 'matched');
});

test('an unknown event throws', () => {
  assert.throws(() => new Machine().tell('nonsense'), /Unknown event/);
});

test('ten thousand random events never break the machine', () => {
  const seed = Number(process.env.CONFAB_SEED ?? Date.now() % 1e6);
  let state = seed + 1;
  const random = (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
  const events = [
    ['start'], ['next'], ['stop'], ['mute'], ['cameraOff'], ['say', { text: 'hi' }], ['ask', { about: 'report' }], ['ask', { about: 'block' }],
    ['unask'], ['block'], ['report', { reason: 'spam', alsoBlock: true }], ['dismiss'], ['openMedia'], ['useText'], ['mediaOn', { camera: true }],
    ['mediaFailed', { why: 'busy' }], ['mediaLost'], ['connected', { resumed: true }], ['connected', { resumed: false }], ['reconnecting'], ['restarted'],
    ['closed', { code: 'banned' }], ['retryLink'], ['waiting', {}], ['waiting', { retryAfterMs: 4000 }], ['matched', alice],
    ['partner', { state: 'reconnecting' }], ['stream', { is: 'live' }], ['typing', { typing: true }], ['ended', { reason: 'partnerLeft' }],
    ['ended', { reason: 'banned' }], ['heard', { text: 'x', mine: false }], ['heard', { text: 'hi', mine: true }], ['unsent', { text: 'hi' }],
    ['reported', { matchId: 'm1', alsoBlock: true }], ['refused', { verb: 'start', code: 'internal' }], ['passed', { passing: 'back' }], ['forget', { matchId: 'm1' }],
    ['form', { change: { mode: 'text' } }], ['form', { change: { mode: 'video' } }], ['people', { online: 2, waiting: 1 }],
  ];
  const machine = new Machine();
  for (let count = 0; count < 10_000; count += 1) {
    const [type, members] = events[random(events.length)];
    machine.wait(random(5000)).tell(type, members);
    const { chat, media, form, link } = machine.state;
    const where = `seed ${seed}, event ${count} ${type}`;
    if (link.is === 'closed') assert.equal(chat.is, 'idle', where);
    if (chat.is === 'idle' && form.mode === 'text') assert.notEqual(media.is, 'on', where);
    machine.done.length = 0;
  }
});

test('Keep in touch can be pressed again after the server rejected it', () => {
  const machine = new Machine().matched().tell('keep');
  const [{ matchId }] = machine.wants('keep');
  assert.deepEqual(machine.tell('keep').effects, []);
  machine.tell('refused', { verb: 'keep', matchId, code: 'not_permitted', message: 'You have 500 contacts.' });
  assert.equal(machine.state.trouble.code, 'not_permitted');
  assert.deepEqual(machine.tell('keep').wants('keep'), [{ do: 'keep', matchId }]);
});
