import assert from 'node:assert/strict';
import test from 'node:test';
import { companion, currentCall, incomingCall } from '../../app/nearby/call-state.js';
import { keepingOf } from '../../app/shared/keep.js';
import { screenOf, soundOf } from '../../app/nearby/words.js';
import { ann, bob, NearbyMachine } from './nearby-machine.mjs';

test('Call opens the camera first, then calls, and shows the callee at once', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: true });
  assert.deepEqual(machine.effect('openMedia'), { do: 'openMedia', camera: true });
  assert.equal(screenOf(machine.state), 'call');
  assert.equal(companion(machine.state), ann);
  machine.tell('mediaOn', { camera: true });
  assert.deepEqual(machine.effect('call'), { do: 'call', person: ann, video: true });
  machine.call({ state: 'placing' });
  assert.equal(machine.state.command, null);
  assert.equal(currentCall(machine.state).person.name, 'Ann');
});

test('a voice call opens no camera', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: false });
  assert.deepEqual(machine.effect('openMedia'), { do: 'openMedia', camera: false });
  machine.tell('mediaOn', { camera: false });
  assert.equal(machine.effect('call').video, false);
  assert.equal(machine.state.cameraOff, true);
});

test('without a camera, a video call becomes a voice call', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: true }).tell('mediaOn', { camera: false });
  assert.equal(machine.effect('call').video, false);
});

test('a second call cannot be placed during a call or while one is being placed', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: true }).tell('call', { person: bob, video: true });
  assert.deepEqual(machine.wanted, []);
  machine.tell('mediaOn', { camera: true }).call({ state: 'ringing' }).tell('call', { person: bob, video: true });
  assert.deepEqual(machine.wanted, []);
});

test('Cancel before the camera is open places no call and turns the camera off', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: true }).tell('cancel');
  assert.deepEqual(machine.wanted, ['closeMedia']);
  assert.equal(screenOf(machine.state), 'home');
  assert.deepEqual(machine.tell('mediaOn', { camera: true }).wanted, ['closeMedia']);
});

test('a blocked camera shows a notice, with a voice call as an alternative', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: true }).tell('mediaFailed', { why: 'refused' });
  assert.deepEqual(machine.state.trouble, { code: 'media', message: '', person: ann, why: 'refused' });
  assert.equal(screenOf(machine.state), 'home');
  assert.deepEqual(machine.tell('call', { person: ann, video: false }).effect('openMedia'), { do: 'openMedia', camera: false });
});

test('a call that the server rejects returns to the list, with the reason and the camera off', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: true }).tell('mediaOn', { camera: true });
  machine.call({ state: 'placing' }).tell('callRefused', { line: 1, code: 'call_not_allowed' });
  assert.deepEqual(machine.state.calls, []);
  assert.deepEqual(machine.wanted, ['closeMedia']);
  assert.equal(machine.state.trouble.code, 'call_not_allowed');
  assert.equal(screenOf(machine.state), 'home');
});

test('the sounds are a ring, a ringback tone for the caller, and a knock during a call', () => {
  const machine = new NearbyMachine().here();
  assert.equal(soundOf(machine.state), 'none');
  assert.equal(soundOf(machine.rung().state), 'ring');
  machine.over('cancelled', { line: 9 });
  assert.equal(soundOf(machine.calling('ringing').state), 'ringback');
  assert.equal(soundOf(machine.call({ devices: 0 }).state), 'none');
  assert.equal(soundOf(machine.call({ state: 'active' }).state), 'none');
  assert.equal(soundOf(machine.rung({ waiting: true }).state), 'knock');
});

test('Accept while an outgoing call waits for the camera accepts instead and places no call', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: true }).rung().tell('accept', { line: 9, video: true });
  assert.deepEqual(machine.wanted, [], 'the browser is already asking');
  assert.deepEqual(machine.tell('mediaOn', { camera: true }).effects, [{ do: 'accept', line: 9, video: true }]);
  machine.call({ line: 9, state: 'joining' });
  assert.equal(companion(machine.state).name, 'Bob');
  assert.ok(!machine.done.some((effect) => effect.do === 'call'));

  const voice = new NearbyMachine().here().tell('call', { person: ann, video: true }).rung().tell('accept', { line: 9, video: false });
  assert.deepEqual(voice.effects, [{ do: 'openMedia', camera: false }], 'the camera is no longer requested');
  assert.equal(voice.tell('accept', { line: 9, video: true }).effects.length, 0, 'a second press has no effect');
});

test('Accept opens what was chosen and accepts; without video no camera is opened', () => {
  for (const video of [true, false]) {
    const machine = new NearbyMachine().here().rung().tell('accept', { line: 9, video });
    assert.equal(machine.effect('openMedia').camera, video);
    machine.tell('mediaOn', { camera: video });
    assert.deepEqual(machine.effect('accept'), { do: 'accept', line: 9, video });
  }
});

test('if the camera fails on Accept, the call keeps ringing and can be accepted without video', () => {
  const machine = new NearbyMachine().here().rung().tell('accept', { line: 9, video: true }).tell('mediaFailed', { why: 'missing' });
  assert.ok(incomingCall(machine.state));
  assert.deepEqual(machine.state.media, { is: 'failed', why: 'missing' });
  machine.tell('accept', { line: 9, video: false }).tell('mediaOn', { camera: false });
  assert.equal(machine.effect('accept').video, false);
});

test('a call that ends while the browser asks for the camera is not accepted', () => {
  const machine = new NearbyMachine().here().rung().tell('accept', { line: 9, video: true }).over('cancelled', { line: 9 });
  assert.ok(machine.wanted.includes('closeMedia'));
  assert.deepEqual(machine.tell('mediaOn', { camera: true }).wanted, ['closeMedia']);
});

test('every ending turns the camera off, shows its text, and requests the call history again', () => {
  for (const outcome of ['hungUp', 'ended', 'declined', 'cancelled', 'unanswered', 'busy', 'unreachable', 'failed', 'connectionLost']) {
    const machine = new NearbyMachine().here().calling('active').over(outcome, { durationMs: 61_000 });
    assert.ok(machine.wanted.includes('closeMedia'), outcome);
    assert.ok(machine.wanted.includes('askLog'), outcome);
    assert.equal(machine.state.over.outcome, outcome);
    assert.equal(screenOf(machine.state), 'home', outcome);
  }
});

test('a merged call shows no text, because the other call continues', () => {
  const machine = new NearbyMachine().here().calling('ringing').rung({ person: ann }).over('merged', { line: 9 });
  assert.equal(machine.state.over, null);
  assert.ok(!machine.wanted.includes('closeMedia'));
  assert.equal(currentCall(machine.state).line, 1);
});

test('accepting a waiting call keeps the camera, and the end of the first is not shown', () => {
  const machine = new NearbyMachine().here().calling('active').rung({ waiting: true }).tell('accept', { line: 9, video: true });
  assert.deepEqual(machine.wanted, ['accept']);
  machine.rung({ state: 'joining' }).over('ended', { line: 1 });
  assert.ok(!machine.wanted.includes('closeMedia'));
  assert.equal(machine.state.over, null);
  assert.equal(currentCall(machine.state).person.name, 'Bob');
});

test('accepting a second call with video during a voice call opens only the camera', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: false }).tell('mediaOn', { camera: false }).call({ state: 'active', video: false });
  machine.rung({ waiting: true }).tell('accept', { line: 9, video: true });
  assert.deepEqual(machine.wanted, ['addCamera']);
  assert.deepEqual(machine.tell('mediaOn', { camera: true }).effect('accept'), { do: 'accept', line: 9, video: true });
});

test('Camera off and on changes the call; in a voice call the camera is opened first', () => {
  const machine = new NearbyMachine().here().calling('active').tell('camera');
  assert.deepEqual(machine.effect('setVideo'), { do: 'setVideo', line: 1, on: false });
  assert.deepEqual(machine.tell('camera').effect('setVideo'), { do: 'setVideo', line: 1, on: true });
  const voice = new NearbyMachine().here().tell('call', { person: ann, video: false }).tell('mediaOn', { camera: false }).call({ state: 'active' });
  assert.deepEqual(voice.tell('camera').wanted, ['addCamera']);
  assert.deepEqual(voice.tell('mediaOn', { camera: true }).effect('setVideo'), { do: 'setVideo', line: 1, on: true });
  assert.equal(voice.state.cameraOff, false);
});

test('a camera unplugged in a call ends the video, not the call', () => {
  const machine = new NearbyMachine().here().calling('active').tell('mediaLost', { kind: 'video' });
  assert.deepEqual(machine.effect('setVideo'), { do: 'setVideo', line: 1, on: false });
  assert.deepEqual(machine.state.media, { is: 'on', camera: false });
  assert.equal(machine.state.trouble.why, 'lost');
  assert.equal(currentCall(machine.state).state, 'active');
});

test('a microphone unplugged in a call shows a notice until there is one again, and the video continues', () => {
  const machine = new NearbyMachine().here().calling('active').tell('mediaLost', { kind: 'audio' });
  assert.equal(machine.state.trouble.why, 'unheard');
  assert.deepEqual([machine.state.media, machine.state.cameraOff, machine.wanted], [{ is: 'on', camera: true }, false, []]);
  assert.equal(currentCall(machine.state).state, 'active');
  assert.equal(machine.tell('mediaBack').state.trouble, null);
  machine.tell('refused', { code: 'rate_limited' }).tell('mediaBack');
  assert.equal(machine.state.trouble.code, 'rate_limited', 'another trouble stays');
});

test('if camera and microphone are unplugged together, the notice is about the microphone', () => {
  for (const kinds of [['audio', 'video'], ['video', 'audio']]) {
    const machine = new NearbyMachine().here().calling('active');
    for (const kind of kinds) machine.tell('mediaLost', { kind });
    assert.deepEqual([machine.state.trouble.why, machine.state.media.camera, machine.state.calls.length], ['unheard', false, 1]);
  }
});

test('the notice about an unplugged device goes with the call', () => {
  for (const kind of ['audio', 'video']) {
    const machine = new NearbyMachine().here().calling('active').tell('mediaLost', { kind }).over('hungUp', { durationMs: 1 });
    assert.equal(machine.state.trouble, null);
  }
});

test('a camera opened for an answer that came too late is not shown in the current call', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: false }).tell('mediaOn', { camera: false }).call({ state: 'active', video: false });
  machine.rung({ waiting: true }).tell('accept', { line: 9, video: true }).over('cancelled', { line: 9 }).tell('mediaOn', { camera: true });
  assert.deepEqual([machine.wanted, machine.state.cameraOff], [[], true]);
  assert.deepEqual(machine.tell('camera').effect('setVideo'), { do: 'setVideo', line: 1, on: true });
});

test('Keep in touch can be pressed again after the server rejected it', () => {
  const machine = new NearbyMachine().here().calling('active').tell('keep').tell('keepRefused', { callId: 'c1' });
  assert.equal(keepingOf(machine.state.keeping, 'c1').mine, false);
  assert.deepEqual(machine.tell('keep').effects, [{ do: 'keep', callId: 'c1' }]);
});

test('the duration of a call starts once, when the other person is there, and continues across a restart', () => {
  const machine = new NearbyMachine().here().calling('active');
  const began = machine.now;
  machine.wait(5_000).call({ away: true }).wait(5_000).call({ state: 'joining' }).call({ state: 'active', away: false });
  assert.equal(currentCall(machine.state).activeAt, began);
});

test('missed calls are counted until the call history is shown', () => {
  const machine = new NearbyMachine().here().rung().over('missed', { line: 9 });
  assert.equal(machine.state.missed, 1);
  machine.over('missed', { line: null, callId: 'while away', person: ann });
  assert.equal(machine.state.missed, 2);
  assert.equal(machine.state.over.callId, 'while away');
  assert.equal(machine.tell('panel', { is: 'log' }).state.missed, 0);
});

test('the text about an ended call disappears after a while, but not the text about a later call', () => {
  const machine = new NearbyMachine().here().calling('ringing').over('busy');
  machine.tell('overPassed', { callId: 'another' });
  assert.ok(machine.state.over);
  assert.equal(machine.tell('overPassed', { callId: 'c1' }).state.over, null);
});

test('Call again calls the same person in the same way', () => {
  const machine = new NearbyMachine().here().tell('call', { person: ann, video: false }).tell('mediaOn', { camera: false }).call({ state: 'ringing', video: false });
  machine.over('unanswered').tell('callAgain');
  assert.equal(machine.effect('openMedia').camera, false);
  assert.equal(companion(machine.state).personId, ann.personId);
});

test('Keep in touch is sent once for a call, during or after it, and shows the other person’s choice', () => {
  const machine = new NearbyMachine().here().calling('active').tell('contactAsked', { callId: 'c1' });
  assert.deepEqual(keepingOf(machine.state.keeping, 'c1'), { meeting: 'c1', mine: false, theirs: true, agreed: false });
  assert.deepEqual(machine.tell('keep').effects, [{ do: 'keep', callId: 'c1' }]);
  assert.deepEqual(machine.tell('keep').effects, []);
  machine.tell('contacts', { people: [] }).tell('contactAdded', { person: ann, callId: 'c1' });
  assert.equal(keepingOf(machine.state.keeping, 'c1').agreed, true);
  assert.deepEqual(machine.state.contacts, [ann]);
  const later = new NearbyMachine().here().calling('active').over('hungUp', { durationMs: 5000 }).tell('keep');
  assert.deepEqual(later.effects, [{ do: 'keep', callId: 'c1' }]);
});

test('a closed connection ends calls and turns the camera off', () => {
  const machine = new NearbyMachine().here().calling('active').tell('closed', { code: 'replaced' });
  assert.deepEqual(machine.state.calls, []);
  assert.ok(machine.wanted.includes('closeMedia'));
});

test('ten thousand random events never leave the camera open without need', () => {
  const seed = Number(process.env.CONFAB_SEED ?? Date.now() % 1e6);
  let random = seed + 1;
  const below = (limit) => (random = (random * 48271) % 2147483647) % limit;
  const news = (members) => (machine) => machine.call(members);
  const events = [
    ...['cancel', 'end', 'mute', 'camera', 'keep', 'callAgain', 'mediaLost', 'mediaBack', 'dismiss', 'switchCamera', 'leave', 'enter', 'agree', 'unask', 'makeCode', 'exportAll']
      .map((type) => (machine) => machine.tell(type, {})),
    ...[true, false].flatMap((video) => [
      (machine) => machine.tell('call', { person: ann, video }), (machine) => machine.tell('accept', { line: 9, video }),
      (machine) => machine.tell('mediaOn', { camera: video }), (machine) => machine.tell('shown', { visible: video }), (machine) => machine.tell('push', { on: video }),
    ]),
    ...['placing', 'ringing', 'joining', 'active'].map((state) => news({ state })),
    // A call that was answered never rings again.
    (machine) => machine.state.calls.some(({ line, state }) => line === 9 && state !== 'incoming') || machine.rung(),
    ...['joining', 'active'].map((state) => news({ line: 9, id: 'c9', person: bob, direction: 'incoming', state })),
    ...['hungUp', 'merged', 'missed', 'failed'].flatMap((outcome) => [1, 9].map((line) => (machine) => machine.over(outcome, { line }))),
    (machine) => machine.tell('mediaFailed', { why: 'busy' }), (machine) => machine.tell('callRefused', { code: 'rate_limited' }),
    (machine) => machine.tell('decline', { line: 9 }), (machine) => machine.tell('closed', { code: 'connect_failed' }), (machine) => machine.tell('retryLink'),
    (machine) => machine.tell('connected', { resumed: false }), (machine) => machine.tell('reconnecting'), (machine) => machine.tell('restarted'),
    (machine) => machine.tell('panel', { is: 'log' }), (machine) => machine.tell('log', { calls: [], next: null }),
  ];
  const machine = new NearbyMachine().here();
  for (let count = 0; count < 10_000; count += 1) {
    events[below(events.length)](machine.wait(below(5000)));
    // The SDK reports the end at once.
    if (machine.effect('accept')) machine.call({ line: 9, state: 'joining' });
    if (machine.effect('call')) machine.call({ state: 'placing' });
    const { media, calls, command } = machine.state;
    const where = `seed ${seed}, event ${count}`;
    if (media.is === 'on' || media.is === 'asking') assert.ok(command || calls.some(({ state }) => state !== 'incoming'), where);
    if (command?.is === 'answer') assert.ok(calls.some(({ line }) => line === command.line), where);
    machine.done.length = 0;
  }
});
