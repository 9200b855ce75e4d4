// The ways in, and what a room can be called.
import assert from 'node:assert/strict';
import test, { afterEach, beforeEach } from 'node:test';
import { roomNameIn } from '../../app/rooms/room-name.js';
import { recentRooms } from '../../app/shared/recent-rooms.js';
import { randomRoomName, roomPath, enabledFeatures } from '../../app/shared/features.js';
import { pageText } from './page-text.mjs';

const storage = (map) => ({ getItem: (key) => map.get(key) ?? null, setItem: (key, value) => map.set(key, value), removeItem: (key) => map.delete(key) });

beforeEach(() => {
  globalThis.window = { localStorage: storage(new Map()), sessionStorage: storage(new Map()) };
});
afterEach(() => {
  delete globalThis.window;
  delete globalThis.document;
});

test('every page lists the features in, and links to each of them', async () => {
  for (const page of ['front', 'strangers', 'nearby', 'rooms']) {
    const html = await pageText(page);
    assert.equal(html.split('<html lang="en" data-features="strangers nearby rooms">').length, 2, page);
    for (const way of ['strangers', 'nearby', 'rooms']) assert.match(html, new RegExp(`data-feature="${way}" href="${way}"`), page);
    assert.doesNotMatch(html, /href="(\.?\/|\.)?(\?[^"]*)?"/, `${page}: / need not be a way in`);
  }
});

test('a page knows the features that are on, in their order', () => {
  globalThis.document = { documentElement: { dataset: { features: 'rooms strangers' } } };
  assert.deepEqual(enabledFeatures(), ['rooms', 'strangers']);
});

test('a new room has a random name, and the address of a room is encoded', () => {
  assert.match(randomRoomName(), /^[a-z]{3}-[a-z]{4}-[a-z]{3}$/);
  assert.notEqual(randomRoomName(), randomRoomName());
  assert.equal(roomPath('Tea at 5?', false), '/room/Tea%20at%205%3F');
  assert.equal(roomPath('Cafe\u0301', true), '/room/Caf%C3%A9?guest=1');
  assert.deepEqual([roomPath('a', false, true), roomPath('a', true, true)], ['/room/a?media=mesh', '/room/a?guest=1&media=mesh']);
});

test('a typed room name is checked before the room is opened', () => {
  assert.deepEqual(roomNameIn('  Book club '), { name: 'Book club' });
  assert.deepEqual(roomNameIn('Cafe\u0301'), { name: 'Café' });
  assert.deepEqual(roomNameIn('x'.repeat(64)), { name: 'x'.repeat(64) });
  for (const name of ['👩‍💻', '🏴\u{e0067}\u{e0062}\u{e007f}', 'می\u200cخواهم']) assert.deepEqual(roomNameIn(name), { name });
  for (const text of ['', '  ']) assert.deepEqual(roomNameIn(text), { error: 'nameMissing' });
  const invalid = ['a/b', '.', '..', 'x'.repeat(65), '👩‍👩‍👧‍👧'.repeat(12), 'a\u202eb', 'a\u0007b', 'a\u200bb', 'a\ufeffb', 'a\ue000', '\u2800', '\u200d'];
  for (const text of invalid) {
    assert.deepEqual(roomNameIn(text), { error: 'nameInvalid' }, text);
  }
});

test('the last rooms are remembered, each once, the newest first', () => {
  const recent = recentRooms(false);
  const names = (of) => of.recall().map(({ name }) => name);
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'B']) recent.remember(name, false);
  assert.deepEqual(names(recent), ['B', 'g', 'f', 'e', 'd', 'c']);
  for (const name of ['b\u200d', ' B ', 'b\u{e0020}', 'b\u3164']) recent.remember(name, false);
  assert.deepEqual(names(recent), ['b\u3164', 'g', 'f', 'e', 'd', 'c'], 'names that look alike are one room');
  recent.remember('B', false);
  recent.forget('e');
  assert.deepEqual(names(recent), ['B', 'g', 'f', 'd', 'c']);
  recentRooms(true).remember('secret', false);
  assert.deepEqual([names(recentRooms(true)), names(recent).includes('secret')], [['secret'], false]);
  window.localStorage.setItem('confab.rooms', '{"names":[1,"",null,"ok"]}');
  assert.deepEqual(names(recent), ['ok']);
});

test('a mesh room is remembered as one, until it is another', () => {
  const recent = recentRooms(false);
  recent.remember('direct', true);
  recent.remember('garden', false);
  assert.deepEqual(recent.recall(), [{ name: 'garden', mesh: false }, { name: 'direct', mesh: true }]);
  recent.remember('Direct', false);
  assert.deepEqual(recent.recall()[0], { name: 'Direct', mesh: false });
  window.localStorage.setItem('confab.rooms', '{"names":["a"],"mesh":7}');
  assert.deepEqual(recent.recall(), [{ name: 'a', mesh: false }]);
});
