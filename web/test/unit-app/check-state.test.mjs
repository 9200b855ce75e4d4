// The states of the page `/check`.
import assert from 'node:assert/strict';
import test from 'node:test';
import { initial, isRunning, isWaiting, step } from '../../app/check/state.js';
import { brightnessOf } from '../../app/check/devices.js';
import { fineResult } from '../unit/check-results.mjs';

const page = { host: 'chat.example.org', browser: 'Chrome 156' };
const fresh = () => initial({ ...page, shared: null, isBadLink: false });

/** Applies events; returns the state and all effects. */
function after(events, state = fresh()) {
  const effects = [];
  for (const event of events) {
    const [next, added] = step(state, event, page);
    state = next;
    effects.push(...added.map((effect) => effect.do));
  }
  return { state, effects };
}

test('a check runs once, and can be repeated when it is done', () => {
  const { state, effects } = after([{ type: 'start', at: 5 }, { type: 'start', at: 6 }]);
  assert.deepEqual([state.phase, state.measured.at, effects], ['running', 5, ['check']]);
  const again = after([{ type: 'known', known: { camera: 'works' } }, { type: 'done' }, { type: 'start', at: 7 }], state);
  assert.deepEqual([again.state.phase, again.state.measured.camera, again.state.measured.at, again.effects], ['running', 'untested', 7, ['check']]);
});

test('rows run, wait for their turn, or have a result', () => {
  const { state } = after([{ type: 'start', at: 0 }, { type: 'testing', rows: ['udp', 'tcp'] }, { type: 'known', known: { server: 'works', microphone: 'works' } }]);
  assert.deepEqual(['camera', 'microphone', 'udp', 'tcp', 'server'].map((row) => isRunning(state, row)), [true, false, true, true, false]);
  assert.deepEqual(['camera', 'speakers', 'udp', 'turn', 'up', 'server'].map((row) => isWaiting(state, row)), [false, false, false, true, true, false]);
  const { state: done } = after([{ type: 'done' }], state);
  for (const row of ['camera', 'udp', 'turn', 'up']) assert.equal(isRunning(done, row) || isWaiting(done, row), false, row);
});

test('what the person heard changes the result at any time, and stays for the next check', () => {
  const { state } = after([{ type: 'start', at: 0 }, { type: 'play' }, { type: 'done' }, { type: 'answer', heard: false }]);
  assert.equal(state.measured.speakers, 'silent');
  assert.equal(after([{ type: 'answer', heard: true }, { type: 'start', at: 1 }], state).state.measured.speakers, 'heard');
});

test('results that arrive after the end of a check change nothing', () => {
  const { state } = after([{ type: 'start', at: 0 }, { type: 'done' }, { type: 'known', known: { camera: 'works' } }]);
  assert.equal(state.measured.camera, 'untested');
});

test('the result of a link is shown as it is, until the person checks this device', () => {
  const shared = initial({ ...page, shared: { ...fineResult, host: 'other.example.org' }, isBadLink: false });
  assert.equal(shared.phase, 'shared');
  assert.equal(after([{ type: 'answer', heard: false }], shared).state.measured.speakers, 'heard');
  const { state } = after([{ type: 'start', at: 9 }], shared);
  assert.deepEqual([state.phase, state.measured.host, state.measured.speakers], ['running', 'chat.example.org', 'untested']);
});

test('a bad link is reported until a check begins', () => {
  const state = initial({ ...page, shared: null, isBadLink: true });
  assert.deepEqual([state.phase, state.isBadLink, after([{ type: 'start', at: 0 }], state).state.isBadLink], ['before', true, false]);
});

test('copying reports its outcome, which a new result replaces', () => {
  const { state, effects } = after([{ type: 'copy', what: 'report' }, { type: 'copied' }]);
  assert.deepEqual([state.copying, effects], ['copied', ['copy']]);
  assert.equal(after([{ type: 'answer', heard: true }], state).state.copying, null);
});

test('a black picture is darker than one of a dim room', () => {
  const picture = (red, green, blue) => Uint8ClampedArray.from({ length: 40 }, (_, index) => [red, green, blue, 255][index % 4]);
  assert.equal(brightnessOf(picture(0, 0, 0)), 0);
  assert.equal(brightnessOf(picture(20, 5, 9)), 20);
  assert.equal(brightnessOf(picture(255, 0, 0)), 255);
  assert.equal(brightnessOf(new Uint8ClampedArray()), 0);
});
