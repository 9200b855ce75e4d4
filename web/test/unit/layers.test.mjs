import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { activate, encodingsOf, layersOf, sendsLayers, single, three, two } from '../../lib/media/layers.js';
import { preferredFrameRate, preferredResolution, priorityOf, together } from '../../lib/media/preference.js';
import { FakeTrack } from './fake-page.mjs';

/** A sender that records its parameters. */
function sender(layers = three) {
  const made = {
    encodings: encodingsOf(layers),
    /** @type {string[]} */
    reported: [],
    getParameters: () => ({ encodings: made.encodings.map((encoding) => ({ ...encoding })) }),
    setParameters: async (/** @type {any} */ { encodings }) => {
      made.encodings = encodings;
      made.reported.push(encodings.filter((/** @type {any} */ { active }) => active).map((/** @type {any} */ { rid }) => rid).join());
    },
  };
  return /** @type {any} */ (made);
}

/** @param {number} width @param {number} height */
function track(width, height) {
  return /** @type {any} */ (Object.assign(new FakeTrack('video'), { getSettings: () => ({ width, height }) }));
}

describe('Layers', () => {
  test('are those that are wanted, or the smallest if none is wanted', async () => {
    const one = sender();
    for (const rids of [['f'], ['f', 'q'], ['f', 'q'], [], ['h'], ['f', 'none']]) await activate(one, { rids });
    assert.deepEqual(one.reported, ['f,q', 'q', 'h', 'f'], 'nothing is announced twice');
  });

  test('of a video without layers are sent while a subscriber wants it', async () => {
    const plain = sender(single);
    const active = [];
    for (const video of [undefined, true, false, false, true]) {
      await activate(plain, { rids: [], video });
      active.push([plain.encodings[0].active ?? true, plain.reported.length]);
    }
    assert.deepEqual(active, [[true, 0], [true, 0], [false, 1], [false, 1], [true, 2]]);
  });

  test('are as many as browsers encode of a camera of that size, and one of a screen unless more are requested', () => {
    assert.equal(layersOf({}, null), two, 'a camera is requested with 640 x 480');
    assert.equal(layersOf({}, track(1280, 720)), three);
    assert.equal(layersOf({}, track(960, 540)), three);
    assert.equal(layersOf({}, track(480, 640)), two, 'held upright');
    assert.equal(layersOf({}, track(640, 360)), single);
    assert.equal(layersOf({ resolution: '320x240' }, null), single);
    assert.equal(layersOf({ videoSource: track(1280, 720) }, null), three);
    assert.equal(layersOf({ videoSource: null }, null), single);
    assert.equal(layersOf({ scalableVideo: false }, track(1280, 720)), single);
    assert.equal(layersOf({ videoSource: 'screen' }, track(1920, 1080)), single);
    assert.equal(layersOf({ videoSource: 'screen', scalableScreenshare: true }, track(1920, 1080)), three);
  });
});

describe('Layers of a preferred codec', () => {
  const firefox = (/** @type {number} */ version) => `Mozilla/5.0 (X11; Linux x86_64; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`;
  const chromium = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

  test('are sent only where the browser encodes several of that codec', () => {
    for (const agent of [firefox(128), chromium, '']) assert.ok(sendsLayers('vp8', agent) && sendsLayers(undefined, agent), agent);
    assert.deepEqual([firefox(128), firefox(135), firefox(136), chromium, ''].map((agent) => sendsLayers('h264', agent)), [false, false, true, true, true]);
    for (const codec of ['vp9', 'av1']) assert.deepEqual([firefox(140), chromium].map((agent) => sendsLayers(codec, agent)), [false, false]);
  });

  test('are one where the server could turn off the only one that is sent', () => {
    assert.equal(layersOf({ videoCodec: 'vp9' }, track(1280, 720)), single);
    assert.equal(layersOf({ videoCodec: 'vp8' }, track(1280, 720)), three);
    assert.equal(layersOf({ videoCodec: 'h264' }, track(1280, 720)), three, 'in any browser but an old Firefox');
  });
});

describe('A preference', () => {
  test('is rounded and limited to what the protocol allows', () => {
    assert.deepEqual(preferredResolution({ width: 320.4, height: 1e9 }), { preferredWidth: 320, preferredHeight: 16384 });
    assert.deepEqual(preferredResolution({ width: -1, height: 0 }), { preferredWidth: 0, preferredHeight: 0 });
    assert.deepEqual([preferredResolution(null), preferredResolution(undefined), preferredFrameRate(null)], [{}, {}, {}]);
    assert.deepEqual(preferredFrameRate(0.2), { preferredFrameRate: 1 });
    assert.throws(() => preferredFrameRate(Number.NaN), /must be a number/);
    assert.throws(() => preferredResolution(/** @type {any} */ ({ width: '320' })), /The width must be a number/);
  });

  test('has a priority only if it is above the usual one', () => {
    assert.deepEqual([priorityOf(null), priorityOf(undefined), priorityOf(0), priorityOf(-3)], [{}, {}, {}, {}]);
    assert.deepEqual([priorityOf(1), priorityOf(1e9)], [{ priority: 1 }, { priority: 100 }]);
    assert.throws(() => priorityOf(/** @type {any} */ ('high')), /The priority must be a number/);
  });

  test('of several subscribers is the highest of all', () => {
    const [small, large] = [preferredResolution({ width: 320, height: 180 }), preferredResolution({ width: 640, height: 360 })];
    assert.deepEqual(together([small, large]), large);
    assert.deepEqual(together([small, {}]), {});
    assert.deepEqual(together([{ ...small, ...preferredFrameRate(15) }, small]), small);
    assert.deepEqual(together([]), {});
    assert.deepEqual(together([priorityOf(1), {}, priorityOf(5)]), { priority: 5 });
  });
});
