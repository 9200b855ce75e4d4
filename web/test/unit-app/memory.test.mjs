// What the pages store in the browser.
import assert from 'node:assert/strict';
import test, { afterEach, beforeEach } from 'node:test';
import { deviceMemory, formMemory, identityMemory, isIdentityLost, shelf } from '../../app/shared/memory.js';
import { nearbyMemory } from '../../app/nearby/memory.js';

let shelves;
const storage = (map) => ({ getItem: (key) => map.get(key) ?? null, setItem: (key, value) => map.set(key, value), removeItem: (key) => map.delete(key) });

beforeEach(() => {
  shelves = { lasting: new Map(), ofThisTab: new Map() };
  globalThis.window = { localStorage: storage(shelves.lasting), sessionStorage: storage(shelves.ofThisTab) };
});
afterEach(() => { delete globalThis.window; });

const form = { name: 'Robin', interests: ['chess'], mode: 'text', agreed: true };

test('a guest leaves nothing in the browser, on either page', () => {
  formMemory(true).remember(form);
  deviceMemory(true).remember({ camera: 'front' });
  identityMemory(true).remember('secret');
  nearbyMemory(true).remember({ name: 'Guest', agreed: true }, { entered: true });
  shelf(true, 'confab.other').set({ a: 1 });
  assert.equal(shelves.lasting.size, 0);
  assert.deepEqual(formMemory(true).recall(), { ...form, name: 'Guest' }, 'a guest has the same form on both pages');
  assert.deepEqual(deviceMemory(true).recall(), { camera: 'front', microphone: undefined, speakers: undefined });
});

test('a guest starts with the stored form and devices, and does not change them', () => {
  formMemory(false).remember(form);
  deviceMemory(false).remember({ camera: 'front', microphone: 'desk', speakers: 'headset' });
  assert.deepEqual(formMemory(true).recall(), form);
  formMemory(true).remember({ ...form, name: 'Guest', interests: [], agreed: false });
  deviceMemory(true).remember({ camera: 'back' });
  assert.deepEqual([formMemory(false).recall(), formMemory(true).recall().agreed], [form, false]);
  assert.deepEqual(deviceMemory(true).recall(), { camera: 'back', microphone: 'desk', speakers: 'headset' });
  assert.deepEqual(deviceMemory(false).recall(), { camera: 'front', microphone: 'desk', speakers: 'headset' });
});

test('an invalid form, or one without storage, is an empty form', () => {
  const empty = { name: '', interests: [], mode: 'video', agreed: false };
  for (const text of ['', 'null', '[]', '3', '{"name":3,"interests":"x","mode":1,"agreed":"yes"}']) {
    shelves.lasting.set('confab.form', text);
    assert.deepEqual(formMemory(false).recall(), empty, text);
  }
  globalThis.window = { get localStorage() { throw new Error('blocked'); }, get sessionStorage() { throw new Error('blocked'); } };
  formMemory(true).remember(form);
  assert.deepEqual(formMemory(true).recall(), empty);
});

test('an identity is forgotten only if it will never be valid again', () => {
  const codes = [
    'token_malformed', 'token_signature', 'token_expired', 'token_not_yet', 'token_lifetime', 'token_project', 'token_session', 'token_scope',
    'token_role', 'token_revoked', 'token_identity', 'token_match_ended', 'closed_4401', 'banned', 'replaced', 'connect_failed',
  ];
  assert.deepEqual(codes.filter(isIdentityLost), ['token_malformed', 'token_signature']);
});
