// Rooms with their rectangles, as a file that the layout of every client is compared with: `layout-cases.json`. The tests of
// the Swift package read it too. Each rule of `docs/layout.md` has cases with a title, which are written by hand.
// CONFAB_WRITE_CASES=1 writes the others again, after a change of the rules.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { layOut } from '../../lib/rooms/layout.js';
import { seeded } from './random.mjs';

/** @typedef {import('../../lib/rooms/layout.js').LayoutInput} LayoutInput */
/** @typedef {import('../../lib/rooms/layout.js').LayoutOutput} LayoutOutput */
/** @typedef {{title?: string, input: LayoutInput, output: LayoutOutput}} Case */

const file = new URL('layout-cases.json', import.meta.url);
const layouts = /** @type {const} */ (['auto', 'grid', 'speaker', 'pinned']);
const corners = /** @type {const} */ (['topLeft', 'topRight', 'bottomLeft', 'bottomRight']);
/** The viewports of phones, tablets and computers, and the smallest one. */
const viewports = [[320, 240], [390, 844], [844, 390], [430, 932], [834, 1194], [1194, 834], [1280, 720], [1920, 1080], [700, 700]];

/** @returns {LayoutInput[]} each number of pictures that has a rule of its own, on each viewport */
function ordinaryRooms() {
  return viewports.flatMap(([width, height]) => [0, 1, 2, 3, 4, 5, 9].map((count) => ({
    width, height, tiles: Array.from({ length: count }, (_, index) => ({ id: `t${index}`, aspect: index % 2 ? 0.75 : 4 / 3 })),
    self: { aspect: 0.75 },
  })));
}

/** @returns {LayoutInput[]} people without cameras, who are placed alike on every client */
function roomsWithoutCameras() {
  return viewports.flatMap(([width, height]) => [1, 2, 3, 4].map((count) => ({
    width, height, tiles: Array.from({ length: count }, (_, index) => ({ id: `t${index}`, aspect: null })), self: { aspect: null },
  })));
}

/** @returns {LayoutInput[]} upright phones, whose strip is thinner to show two people */
function phonesWithSpeaker() {
  return [[344, 640], [374, 720]].flatMap(([width, height]) => [2, 3].map((count) => /** @type {const} */ ({
    width, height, layout: 'speaker', tiles: Array.from({ length: count }, (_, index) => ({ id: `t${index}`, aspect: 4 / 3 })), self: { aspect: 0.75 },
  })));
}

/** @returns {LayoutInput[]} */
function randomRooms() {
  const random = seeded(20_261_124);
  const from = (/** @type {number} */ low, /** @type {number} */ high) => low + Math.floor(random() * (high - low + 1));
  const aspect = () => (random() < 0.1 ? 0 : Math.round((0.3 + random() * 3) * 1000) / 1000);
  return Array.from({ length: 120 }, (_, round) => {
    const count = from(1, round % 10 === 0 ? 40 : 8);
    const input = {
      width: from(320, 2000) + (round % 7 === 0 ? 0.5 : 0), height: from(240, 1500), layout: layouts[round % 4],
      tiles: Array.from({ length: count }, (__, index) => ({ id: `t${index}`, aspect: aspect(), isScreen: random() < 0.05 })),
      focus: Array.from({ length: from(0, 5) }, () => `t${from(0, count)}`),
    };
    const self = { aspect: aspect(), corner: corners[from(0, 3)] };
    // A person who only watches has no picture.
    return { ...input, ...round % 5 === 4 ? {} : { self }, gap: from(0, 20), page: from(0, 3) };
  });
}

/** @type {Case[]} */
const cases = JSON.parse(readFileSync(file, 'utf8'));
const ruled = cases.filter(({ title }) => title);

for (const title of new Set(ruled.map((one) => one.title))) {
  test(`Layout: ${title}`, () => {
    for (const one of ruled) if (one.title === title) assert.deepEqual(layOut(one.input), one.output, JSON.stringify(one.input));
  });
}

test('Each room of the shared file has the rectangles written there', () => {
  const rooms = [...ordinaryRooms(), ...roomsWithoutCameras(), ...phonesWithSpeaker(), ...randomRooms()];
  const now = rooms.map((input) => ({ input, output: layOut(input) }));
  if (process.env.CONFAB_WRITE_CASES) writeFileSync(file, `[\n${[...now, ...ruled].map((one) => JSON.stringify(one)).join(',\n')}\n]\n`);
  const others = cases.filter(({ title }) => !title);
  assert.equal(others.length, now.length);
  for (const [index, { input, output }] of others.entries()) {
    assert.deepEqual(now[index].input, input, `the room of case ${index} changed: write the file again`);
    assert.deepEqual(now[index].output, output, `case ${index}`);
  }
});
