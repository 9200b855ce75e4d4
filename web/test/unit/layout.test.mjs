// The rules of docs/layout.md: tables of examples, and properties of random rooms.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { layOut } from '../../lib/rooms/layout.js';
import { seeded } from './random.mjs';

/** @param {number[]} aspects @returns {import('../../lib/rooms/layout.js').Tile[]} */
const tilesOf = (aspects) => aspects.map((aspect, index) => ({ id: `t${index}`, aspect }));
/** @param {number} count */
const cameras = (count) => tilesOf(Array(count).fill(4 / 3));
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
/** @param {LayoutInput} input */
const rectangles = (input) => layOut({ gap: 0, ...input }).tiles.map(({ x, y, width, height }) => [x, y, width, height]);

describe('auto', () => {
  test('one picture fills the viewport', () => {
    assert.deepEqual(rectangles({ width: 390, height: 844, tiles: cameras(1) }), [[0, 0, 390, 844]]);
  });

  for (const [what, width, height, aspects, expected] of /** @type {[string, number, number, number[], number[][]][]} */ ([
    ['two wide ones on a wide screen halve it', 1000, 600, [1.3, 1.7], [[0, 0, 500, 600], [500, 0, 500, 600]]],
    ['two tall ones on a wide screen halve it', 1000, 600, [0.5, 0.7], [[0, 0, 500, 600], [500, 0, 500, 600]]],
    ['two wide ones on a tall screen halve it', 600, 1000, [1.3, 1.3], [[0, 0, 600, 500], [0, 500, 600, 500]]],
    ['the wide one of two is larger on a wide screen', 1000, 600, [0.6, 1.3], [[0, 0, 450, 600], [450, 0, 550, 600]]],
    ['the tall one of two is larger on a tall screen', 600, 1000, [0.6, 1.3], [[0, 0, 600, 550], [0, 550, 600, 450]]],
    ['one of unknown size counts as wide', 600, 1000, [NaN, 1.3], [[0, 0, 600, 500], [0, 500, 600, 500]]],
    ['three are equal strips along the long axis', 900, 600, [1, 1, 1], [[0, 0, 300, 600], [300, 0, 300, 600], [600, 0, 300, 600]]],
    ['three wide ones, of which strips would show little, are a grid', 1200, 600, [1.7, 1.7, 1.7], [[0, 0, 600, 300], [600, 0, 600, 300], [300, 300, 600, 300]]],
    ['four are a grid', 800, 600, [1.3, 1.3, 1.3, 1.3], [[0, 0, 400, 300], [400, 0, 400, 300], [0, 300, 400, 300], [400, 300, 400, 300]]],
  ])) {
    test(what, () => assert.deepEqual(rectangles({ width, height, tiles: tilesOf(aspects) }), expected));
  }

  test('a shared screen is large, with the others beside it', () => {
    const tiles = [...cameras(2), { id: 'screen', aspect: 16 / 9, isScreen: true }];
    const [screen, ...others] = layOut({ width: 1000, height: 600, tiles, gap: 0 }).tiles;
    assert.deepEqual([screen.id, screen.fit, screen.width, screen.height], ['screen', 'contain', 800, 600]);
    assert.deepEqual(others.map(({ id, x, width, height }) => [id, x, width, height]), [['t0', 800, 200, 150], ['t1', 800, 200, 150]]);
  });
});

describe('grid', () => {
  for (const [count, width, height, columns] of [[2, 800, 700, 1], [2, 1600, 500, 2], [5, 1280, 720, 3], [9, 1280, 720, 3], [25, 1280, 720, 5], [6, 390, 844, 2], [9, 320, 240, 3], [9, 648, 312, 5]]) {
    test(`${count} pictures have ${columns} columns on ${width}×${height}`, () => {
      const { tiles } = layOut({ width, height, tiles: cameras(count), layout: 'grid' });
      assert.equal(tiles.filter(({ y }) => y === 0).length, columns);
      assert.equal(tiles.length, count);
    });
  }

  test('tiles are neither flat nor narrow, if another number of columns avoids it', () => {
    const shapes = [[4, 344, 640], [8, 648, 312], [5, 1244, 690], [8, 1884, 960]].map(([count, width, height]) => {
      const { tiles } = layOut({ width, height, tiles: cameras(count), self: { aspect: 4 / 3 } });
      return Math.round(100 * tiles[0].width / tiles[0].height);
    });
    assert.deepEqual(shapes, [81, 81, 120, 98]);
  });

  test('full rows end at the edge', () => {
    const row = layOut({ width: 647, height: 312, tiles: cameras(4), layout: 'grid' }).tiles;
    assert.deepEqual(row.filter(({ y }) => y === 0).map(({ x, width }) => x + width).at(-1), 647);
  });

  test('the last row is centered', () => {
    assert.deepEqual(rectangles({ width: 900, height: 600, tiles: cameras(5), layout: 'grid' }).slice(3), [[150, 300, 300, 300], [450, 300, 300, 300]]);
  });

  test('pages have 25 pictures, or as many as fit', () => {
    const input = { width: 1920, height: 1080, tiles: cameras(60), layout: /** @type {const} */ ('grid') };
    const counts = [0, 1, 2, 9].map((page) => layOut({ ...input, page })).map(({ tiles, page, pages, overflow }) => [tiles.length, page, pages, overflow]);
    assert.deepEqual(counts, [[25, 0, 3, 35], [25, 1, 3, 35], [10, 2, 3, 50], [10, 2, 3, 50]]);
    assert.equal(layOut({ ...input, width: 320, height: 240 }).tiles.length, 9);
  });
});

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

describe('speaker and pinned', () => {
  const input = { width: 1000, height: 600, tiles: cameras(4), gap: 0 };

  test('the speaker is large, and the others are in a strip', () => {
    const { tiles } = layOut({ ...input, layout: 'speaker', focus: 't2' });
    assert.deepEqual(tiles.map(({ id }) => id), ['t2', 't0', 't1', 't3']);
    assert.deepEqual([tiles[0].width, tiles[0].height, tiles[1].y], [800, 600, 75]);
    assert.equal(layOut({ ...input, layout: 'speaker', focus: 'gone' }).tiles[0].id, 't0');
  });

  test('the strip is below in a tall viewport', () => {
    const [large, ...others] = layOut({ ...input, width: 600, height: 1000, layout: 'speaker' }).tiles;
    assert.deepEqual([large.width, large.height, others[0].y, others[0].width, others[0].height], [600, 820, 820, 240, 180]);
  });

  test('the strip of an upright phone has two tiles side by side', () => {
    const [, ...others] = layOut({ ...input, tiles: cameras(3), gap: 8, width: 344, height: 640, layout: 'speaker' }).tiles;
    assert.deepEqual(others.map(({ x, y, width, height }) => [x, y, width, height]), [[0, 514, 168, 126], [176, 514, 168, 126]]);
  });

  test('up to four pinned ones share the large part', () => {
    const { tiles } = layOut({ ...input, tiles: cameras(7), layout: 'pinned', focus: ['t1', 't3', 't5', 't6', 't2'] });
    assert.deepEqual(tiles.slice(0, 4).map(({ id, width, height }) => [id, width, height]), ['t1', 't3', 't5', 't6'].map((id) => [id, 400, 300]));
  });

  test('while everyone is pinned, the own picture hides as little as in a grid', () => {
    const { tiles, self } = layOut({ ...input, width: 360, height: 640, layout: 'pinned', focus: ['t0', 't1', 't2', 't3'], self: { aspect: 3 / 4 } });
    assert.equal(tiles.length, 4);
    assert.ok(self && !tiles.some((one) => overlap(one, self)), JSON.stringify(self));
  });

  test('the strip has pages, and the large picture is on each', () => {
    const { tiles, pages, overflow } = layOut({ ...input, tiles: cameras(12), layout: 'speaker', page: 2 });
    assert.deepEqual([tiles.map(({ id }) => id), pages, overflow], [['t0', 't9', 't10', 't11'], 3, 8]);
  });
});

describe('The own picture', () => {
  for (const [width, height, aspect, expected] of /** @type {[number, number, number, number[]][]} */ ([
    [390, 844, 3 / 4, [290, 714, 90, 120]],
    [430, 932, 3 / 4, [315, 782, 105, 140]],
    [1280, 800, 4 / 3, [1046, 622, 224, 168]],
    [320, 240, 16 / 9, [150, 140, 160, 90]],
  ])) {
    test(`is at the lower right of ${width}×${height}`, () => {
      const { self } = layOut({ width, height, tiles: cameras(1), self: { aspect } });
      assert.deepEqual(self && [self.x, self.y, self.width, self.height], expected);
    });
  }

  test('is a tile of a grid that has so small ones that it would hide people', () => {
    const input = { width: 360, height: 600, tiles: cameras(24), gap: 8, self: { aspect: 3 / 4 } };
    const { tiles, self, pages, overflow } = layOut(input);
    assert.deepEqual([tiles.length, pages, overflow], [20, 2, 4], 'one place less on each page');
    assert.deepEqual(self, { x: 245, y: 521, width: 115, height: 79, fit: 'cover' });
    const at = (/** @type {any} */ corner, page = 0) => layOut({ ...input, page, self: { aspect: 3 / 4, corner } });
    const places = /** @type {const} */ (['topLeft', 'topRight', 'bottomLeft']).map((corner) => at(corner).self);
    assert.deepEqual(places.map((place) => [place?.x, place?.y]), [[0, 0], [245, 0], [0, 521]]);
    assert.deepEqual(at('topRight').tiles.slice(0, 3).map(({ id, x, y }) => [id, x > 200, y > 0]), [['t0', false, false], ['t1', false, false], ['t2', false, true]]);
    assert.deepEqual(at('bottomRight', 1).tiles.map(({ id }) => id), ['t20', 't21', 't22', 't23']);
    for (const [count, width] of [[3, 90], [4, 176], [6, 176], [8, 176]]) assert.equal(layOut({ ...input, tiles: cameras(count) }).self?.width, width, `${count}`);
    for (const [count, width] of [[8, 140], [9, 247], [24, 173]]) {
      const wide = layOut({ ...input, width: 1264, height: 640, tiles: cameras(count), self: { aspect: 4 / 3 } });
      assert.equal(wide.self?.width, width, `${count} on a laptop`);
    }
    assert.equal(layOut({ ...input, self: undefined }).tiles.length, 21);
  });

  test('is at an end of a strip that has place for it', () => {
    const input = { tiles: cameras(3), layout: /** @type {const} */ ('speaker'), gap: 0 };
    const at = (/** @type {number} */ width, /** @type {number} */ height, /** @type {any} */ corner) => (
      layOut({ ...input, width, height, self: { aspect: 3 / 4, corner } }).self);
    assert.deepEqual(at(1000, 600, 'bottomLeft'), { x: 800, y: 375, width: 200, height: 150, fit: 'cover' });
    assert.deepEqual(at(1000, 600, 'topRight'), { x: 800, y: 75, width: 200, height: 150, fit: 'cover' });
    assert.deepEqual(at(900, 1000, 'topLeft'), { x: 90, y: 820, width: 240, height: 180, fit: 'cover' });
  });

  test('is in a corner of the large part beside a strip that is full', () => {
    const input = { tiles: cameras(6), layout: /** @type {const} */ ('speaker'), gap: 0, self: { aspect: 3 / 4 } };
    const at = (/** @type {number} */ width, /** @type {number} */ height) => layOut({ ...input, width, height }).self;
    assert.deepEqual(at(1000, 600), { x: 800 - 10 - 105, y: 600 - 10 - 140, width: 105, height: 140, fit: 'cover' });
    assert.deepEqual(at(360, 640), { x: 360 - 10 - 90, y: 640 - 128 - 10 - 120, width: 90, height: 120, fit: 'cover' });
  });

  test('moves to another corner, and fills the viewport alone', () => {
    const input = { width: 1000, height: 800, tiles: cameras(1) };
    const at = (/** @type {any} */ corner) => layOut({ ...input, self: { aspect: 4 / 3, corner } }).self;
    assert.deepEqual([at('topLeft')?.x, at('topLeft')?.y, at('topRight')?.x, at('bottomLeft')?.y], [10, 10, 766, 622]);
    assert.equal(layOut({ ...input, tiles: [], self: { aspect: 4 / 3 } }).self?.width, 1000);
    assert.equal(layOut(input).self, null);
  });
});

test('A picture is cropped unless too little of it would be left', () => {
  const fit = (/** @type {number} */ aspect, isScreen = false) => layOut({ width: 1600, height: 900, tiles: [{ id: 'a', aspect, isScreen }] }).tiles[0].fit;
  assert.deepEqual([fit(16 / 9), fit(4 / 3), fit(1), fit(9 / 16), fit(16 / 9, true), fit(NaN)], ['cover', 'cover', 'cover', 'contain', 'contain', 'cover']);
  const wide = (/** @type {number} */ width) => layOut({ width, height: 400, tiles: [{ id: 'a', aspect: 16 / 9 }] }).tiles[0].fit;
  assert.deepEqual([wide(300), wide(299)], ['cover', 'contain'], 'a wide picture in an upright tile');
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
