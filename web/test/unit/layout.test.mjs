// What the layout of every room has; `layout-cases.json` has an example of each rule of docs/layout.md.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layOut } from '../../lib/rooms/layout.js';
import { seeded } from './random.mjs';

/** @param {number} count */
const cameras = (count) => Array.from({ length: count }, (_, index) => ({ id: `t${index}`, aspect: 4 / 3 }));
/** @typedef {import('../../lib/rooms/layout.js').Rectangle} Rectangle */
/** @param {Rectangle} one @param {Rectangle} other */
const overlap = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
/** @param {Rectangle} one @param {Rectangle} other */
const commonArea = (one, other) => (
  Math.max(0, Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x))
    * Math.max(0, Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y)));
/** @typedef {import('../../lib/rooms/layout.js').LayoutInput} LayoutInput */
/**
 * Returns how many pictures are large; 0 if all are equal.
 * @param {LayoutInput} input
 */
function largeCount({ layout, tiles, focus = [] }) {
  const chosen = new Set([focus].flat().filter((id) => tiles.some((tile) => tile.id === id))).size;
  if (tiles.length < 2 || layout === 'grid' || (layout === 'auto' && !tiles.some(({ isScreen }) => isScreen))) return 0;
  return layout === 'pinned' ? Math.min(4, Math.max(1, chosen)) : 1;
}
/** @param {LayoutInput} input */
function isGrid(input) {
  const large = largeCount(input);
  return large > 0 ? large === input.tiles.length : input.tiles.length >= (input.layout === 'grid' ? 2 : 4);
}
/**
 * Whether one picture more would still be on the only page of the strip.
 * @param {LayoutInput} input
 */
function hasPlaceInStrip(input) {
  const large = largeCount(input);
  if (large === 0 || large === input.tiles.length) return false;
  return layOut({ ...input, self: undefined, tiles: [...input.tiles, { id: 'more', aspect: 1 }] }).pages === 1;
}

test('No viewport is too strange, such as one that is lower than what stands below it', () => {
  const sizes = [0, -1, -56, 0.5, 1, 95, 300, NaN, Infinity];
  for (const layout of /** @type {const} */ (['auto', 'grid', 'speaker', 'pinned'])) {
    for (const count of [0, 1, 2, 3, 4, 9]) {
      for (const [width, height] of sizes.flatMap((one) => sizes.map((other) => [one, other]))) {
        const what = `${width}×${height} ${layout}, ${count} tiles`;
        const { tiles, overflow } = layOut({ width, height, layout, tiles: cameras(count), gap: height, self: { aspect: width } });
        assert.equal(tiles.length + overflow, count, what);
        assert.ok(tiles.every((one) => [one.x, one.y, one.width, one.height].every(Number.isInteger) && one.width >= 0 && one.height >= 0), what);
      }
    }
  }
});

test('A picture of unknown size counts as 16:9, in every layout', () => {
  for (const layout of /** @type {const} */ (['auto', 'grid', 'speaker', 'pinned'])) {
    for (const unknown of [undefined, null, 0, -1, NaN, Infinity]) {
      const room = (/** @type {number | null | undefined} */ aspect) => layOut({
        width: 1264, height: 700, layout, tiles: ['a', 'b', 'c'].map((id) => ({ id, aspect })), self: { aspect },
      });
      assert.deepEqual(room(unknown), room(16 / 9), `${layout}, ${unknown}`);
    }
  }
});

test('Random rooms: nothing overlaps, is outside, or is too small, and every picture is on one page', () => {
  const random = seeded(20_261_123);
  const from = (/** @type {number} */ low, /** @type {number} */ high) => low + Math.floor(random() * (high - low + 1));
  const layouts = /** @type {const} */ (['auto', 'grid', 'speaker', 'pinned']);
  for (let round = 0; round < 1000; round += 1) {
    const [width, height, count, gap] = [from(320, random() < 0.5 ? 500 : 3000), from(240, random() < 0.5 ? 500 : 2000), from(1, 100), from(0, 20)];
    const tiles = Array.from({ length: count }, (_, index) => ({ id: `t${index}`, aspect: 0.3 + random() * 3, isScreen: random() < 0.03 }));
    const layout = layouts[from(0, 3)];
    const focus = random() < 0.5 ? `t${from(0, count)}` : Array.from({ length: from(0, 5) }, () => `t${from(0, count)}`);
    const corner = /** @type {const} */ (['topLeft', 'topRight', 'bottomLeft', 'bottomRight'])[from(0, 3)];
    const input = { width, height, tiles, layout, focus, gap, self: { aspect: 0.3 + random() * 3, corner } };
    const what = `${width}×${height} ${layout}, ${count} tiles, gap ${gap}, round ${round}`;
    const { pages } = layOut(input);
    const shown = new Set();
    for (let page = 0; page < pages; page += 1) {
      const placed = layOut({ ...input, page });
      assert.equal(placed.tiles.length + placed.overflow, count, what);
      for (const { id } of placed.tiles) shown.add(id);
      for (const one of placed.self ? [...placed.tiles, placed.self] : placed.tiles) {
        assert.ok([one.x, one.y, one.width, one.height].every(Number.isInteger), what);
        assert.ok(one.x >= 0 && one.y >= 0 && one.x + one.width <= width && one.y + one.height <= height, `outside: ${what}`);
      }
      const { self } = placed;
      if (!self) throw new Error(`no own picture: ${what}`);
      const covered = Math.max(...placed.tiles.map((one) => commonArea(one, self) / (one.width * one.height)));
      if (isGrid(input)) {
        assert.ok(placed.tiles.filter((one) => overlap(one, self)).length <= 1, `the own picture hides several: ${what}`);
        assert.ok(covered <= 0.2, `the own picture covers ${covered} of a tile: ${what}`);
      }
      if (hasPlaceInStrip(input)) assert.equal(covered, 0, `the own picture covers a tile: ${what}`);
      for (const [index, one] of placed.tiles.entries()) {
        assert.ok(one.width >= 96 && one.height >= 72, `small: ${what}`);
        for (const other of placed.tiles.slice(index + 1)) assert.ok(!overlap(one, other), `overlap: ${what}`);
      }
    }
    assert.equal(shown.size, count, what);
  }
});
