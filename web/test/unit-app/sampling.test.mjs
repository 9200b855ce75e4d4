import assert from 'node:assert/strict';
import test from 'node:test';
import { noticeOf } from '../../app/strangers/status.js';
import { stringsFor } from '../../app/shared/strings.js';
import { Machine } from './machine.mjs';

const { strings } = stringsFor(['en']);
const notice = (machine) => noticeOf(machine.state, strings, machine.now ?? 0);

/** A machine in a chat, with the match m1. */
const chatting = () => new Machine({ agreedToSamples: true }).tell('connected', { resumed: false, samplesEvery: 10 }).tell('start')
  .tell('mediaOn', { camera: true }).tell('matched', { matchId: 'm1', mode: 'video', partner: { name: 'Ben' } });

test('who agreed to rules without samples must agree again before the search starts', () => {
  const machine = new Machine().tell('connected', { resumed: false, samplesEvery: 10 });
  assert.equal(machine.state.form.agreed, false);
  assert.equal(machine.tell('start').state.chat.is, 'idle');
  machine.tell('form', { change: { agreed: true } });
  assert.equal(machine.state.form.agreedToSamples, true);
  assert.ok(machine.effects.some((effect) => effect.do === 'remember' && effect.form.agreedToSamples));
  machine.tell('mediaOn', { camera: true }).tell('start');
  assert.equal(machine.state.chat.is, 'waiting');
});

test('who agreed to samples need not agree again', () => {
  const machine = new Machine({ agreedToSamples: true }).tell('connected', { resumed: false, samplesEvery: 10 });
  assert.equal(machine.state.form.agreed, true);
});

test('a chat ends if the server begins to check samples, until the user has agreed', () => {
  const machine = new Machine().tell('connected', { resumed: false }).tell('start').tell('mediaOn', { camera: true })
    .tell('matched', { matchId: 'm1', mode: 'video' }).tell('reconnecting').tell('connected', { resumed: true, samplesEvery: 10 });
  assert.equal(machine.state.chat.is, 'idle');
  assert.ok(machine.effects.some((effect) => effect.do === 'stop'));
  assert.equal(notice(machine).text, strings.troubles.rules_changed);
});

test('a blur is shown for the video that it is about, and is gone with the chat', () => {
  const machine = chatting().tell('blur', { matchId: 'm1', whose: 'partner', blurred: true });
  assert.deepEqual(machine.state.chat.blurred, { own: false, partner: true });
  machine.tell('blur', { matchId: 'm1', whose: 'own', blurred: true });
  assert.equal(notice(machine).text, strings.ownBlurred);
  machine.tell('blur', { matchId: 'm1', whose: 'own', blurred: false });
  assert.equal(notice(machine), null);
  machine.tell('ended', { matchId: 'm1', reason: 'partnerLeft' }).tell('matched', { matchId: 'm2', mode: 'video' });
  assert.deepEqual(machine.state.chat.blurred, { own: false, partner: false });
  machine.tell('blur', { matchId: 'm1', whose: 'partner', blurred: true });
  assert.deepEqual(machine.state.chat.blurred, { own: false, partner: false }, 'a late event of the earlier match');
});

test('a warning is shown until the user dismisses it, and says who warns and what to do', () => {
  const machine = chatting().tell('warning', { source: 'check', ends: false, text: 'Too dark.' });
  assert.match(notice(machine).text, /^Your video may break the rules\. Too dark\./);
  assert.deepEqual(notice(machine).actions, ['dismiss']);
  assert.equal(machine.tell('dismiss').state.warning, null);
  machine.tell('warning', { source: 'operator', ends: false, text: 'Be kind.' });
  assert.match(notice(machine).text, /operators of this site.*Be kind\./);
});

test('after a chat that the check ended, the user decides whether to start again', () => {
  const machine = chatting().tell('warning', { source: 'check', ends: true }).tell('ended', { matchId: 'm1', reason: 'stopped' });
  assert.equal(machine.state.chat.is, 'idle');
  assert.deepEqual(notice(machine).actions, ['start', 'dismiss']);
  assert.equal(notice(machine).tone, 'bad');
});

test('a start removes the notice that the last chat was ended, and keeps a warning of an operator', () => {
  const machine = chatting().tell('warning', { source: 'check', ends: true }).tell('ended', { matchId: 'm1', reason: 'stopped' })
    .tell('start');
  assert.equal(machine.state.chat.is, 'waiting');
  assert.equal(machine.state.warning, null);
  machine.tell('warning', { source: 'operator', ends: false, text: 'Be kind.' }).tell('stop').tell('start');
  assert.equal(machine.state.warning?.text, 'Be kind.');
});
