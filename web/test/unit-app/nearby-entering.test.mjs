// Going online on the page `/nearby`: values of the form, and values that the server already has.
import assert from 'node:assert/strict';
import test from 'node:test';
import { nearbyMemory } from '../../app/nearby/memory.js';
import { Notifications } from '../../app/nearby/notify.js';
import { ann, me, NearbyMachine } from './nearby-machine.mjs';

const form = { name: 'Robin', visible: true, doNotDisturb: false, ringable: 'everyone' };
const said = (machine) => machine.effect('appear')?.as;

test('a returning user sends no settings, because another device may have changed them', () => {
  assert.deepEqual(said(new NearbyMachine({ entered: true }).tell('connected', { resumed: false })), {});
});

test('a new person gets the values of the form, even without pressing the button', () => {
  assert.deepEqual(said(new NearbyMachine({ entered: true }).tell('connected', { resumed: false, isNew: true })), form);
  const machine = new NearbyMachine().here().tell('reconnecting').tell('connected', { resumed: false }).tell('restarted', { isNew: true });
  assert.deepEqual(said(machine), form);
});

test('going online sends the form once, and not again on a new connection', () => {
  const machine = new NearbyMachine().tell('enter').tell('connected', { resumed: false });
  assert.deepEqual(said(machine), form);
  machine.tell('self', { me }).tell('closed', { code: 'too_many_connections' }).tell('retryLink').tell('connected', { resumed: false });
  assert.deepEqual(said(machine), {});
});

test('the name from the server is stored, unless the user chose none', () => {
  const machine = new NearbyMachine({ entered: true }).tell('connected', { resumed: false }).tell('self', { me: { ...me, name: 'Ada', doNotDisturb: true } });
  assert.deepEqual([machine.effect('remember').form.name, machine.state.kept.doNotDisturb], ['Ada', true]);
  const nameless = new NearbyMachine({ form: { name: '' } }).tell('connected', { resumed: false }).tell('enter').tell('self', { me });
  assert.equal(nameless.state.form.name, '');
  assert.equal(nameless.tell('self', { me: { ...me, personId: 'f'.repeat(32), name: 'Ada' } }).state.form.name, 'Ada');
});

test('going online while disconnected takes effect on reconnecting, resumed or not', () => {
  const resumed = new NearbyMachine().tell('connected', { resumed: false }).tell('reconnecting').tell('enter').tell('connected', { resumed: true });
  assert.deepEqual(said(resumed), form);
  const fresh = new NearbyMachine().tell('connected', { resumed: false }).tell('reconnecting').tell('enter').tell('connected', { resumed: false });
  assert.equal(said(fresh), undefined);
  assert.deepEqual(said(fresh.tell('restarted')), form);
});

test('an identity that the server rejects is dropped, and the user continues as a new person', () => {
  const machine = new NearbyMachine().here().calling('active').tell('reconnecting').tell('identityLost');
  assert.deepEqual(machine.wanted, ['closeMedia', 'stopPosition', 'connect']);
  assert.deepEqual([machine.state.me, machine.state.link.is, machine.state.entered], [null, 'connecting', true]);
  assert.deepEqual(said(machine.tell('connected', { resumed: false, isNew: true })), form);
});

test('a call’s notification goes online, in a new or an open page, if the user agreed to the rules', () => {
  const call = { find: null, link: null, call: true };
  assert.deepEqual(said(new NearbyMachine({ arrival: call }).tell('connected', { resumed: false })), {});
  assert.equal(new NearbyMachine({ arrival: call, form: { agreed: false } }).tell('connected', { resumed: false }).state.entered, false);
  const open = new NearbyMachine().here().tell('leave').tell('arrived', call);
  assert.deepEqual(said(open), {});
  assert.equal(open.state.kept.entered, true);
  assert.deepEqual(new NearbyMachine().here().tell('arrived', call).wanted, []);
});

test('links are followed in an open page too, at once or after going online', () => {
  assert.deepEqual(new NearbyMachine().here().tell('arrived', { link: 'ABCD-EFGH' }).state.question, { is: 'link', code: 'ABCD-EFGH' });
  assert.equal(new NearbyMachine().here().tell('arrived', { find: ann.personId }).effect('find').personId, ann.personId);
  const outside = new NearbyMachine().tell('connected', { resumed: false }).tell('arrived', { link: 'ABCD-EFGH' }).tell('enter').tell('self', { me });
  assert.equal(outside.state.question.is, 'link');
});

test('a location deleted on another device is not sent again by this one', () => {
  const machine = new NearbyMachine().here().tell('nearby', { people: [] }).tell('positionForgotten');
  assert.deepEqual(machine.wanted, ['remember', 'stopPosition']);
  assert.deepEqual([machine.state.list.is, machine.state.kept.position, machine.state.me.hasPosition], ['off', false, false]);
});

test('a guest’s name stays in its tab', () => {
  const shelves = { localStorage: new Map(), sessionStorage: new Map() };
  const storage = (map) => ({ getItem: (key) => map.get(key) ?? null, setItem: (key, value) => map.set(key, value), removeItem: (key) => map.delete(key) });
  globalThis.window = { localStorage: storage(shelves.localStorage), sessionStorage: storage(shelves.sessionStorage) };
  try {
    const [person, guest] = [nearbyMemory(false), nearbyMemory(true)];
    person.remember({ name: 'Robin', agreed: true }, {});
    assert.deepEqual(guest.recallForm(), { name: 'Robin', agreed: true });
    guest.remember({ name: 'Guest', agreed: true }, {});
    assert.deepEqual([person.recallForm().name, guest.recallForm().name], ['Robin', 'Guest']);
  } finally {
    delete globalThis.window;
  }
});

test('a guest does not turn off the notifications of the browser’s owner', async () => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  let asked = 0;
  const worker = { pushManager: { getSubscription: async () => { asked += 1; return null; } } };
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { serviceWorker: { register: async () => worker } } });
  try {
    for (const guest of [true, false]) {
      const notifications = new Notifications({}, guest);
      notifications.start();
      assert.equal(await notifications.disable({}), 'off');
      assert.equal(asked, guest ? 0 : 1);
    }
  } finally {
    if (before) Object.defineProperty(globalThis, 'navigator', before);
    else delete globalThis.navigator;
  }
});
