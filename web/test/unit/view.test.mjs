import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { SteadyView } from '../../lib/media/auto-resolution.js';
import { drawnSize } from '../../lib/media/view.js';
import { Pace } from '../../lib/session/pace.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeWindow } from './fake-view.mjs';
import { begin, clock, joined, publisherOf, room, subscribe } from './routed-room.mjs';

describe('The size at which a picture is drawn', () => {
  const box = { width: 320, height: 320 };
  for (const [picture, fitMode, expected, why] of /** @type {const} */ ([
    [{ width: 640, height: 480 }, 'contain', { width: 320, height: 240 }, 'it fits into the box'],
    [{ width: 640, height: 480 }, 'cover', { width: 432, height: 320 }, 'its sides are cropped'],
    [{ width: 360, height: 640 }, 'cover', { width: 320, height: 576 }, 'a portrait is cropped above and below'],
    [{ width: 0, height: 0 }, 'cover', box, 'an unknown picture is as large as the box'],
    [{ width: 320, height: 319 }, 'cover', { width: 336, height: 320 }, 'pixels are rounded up to steps'],
  ])) test(`is right: ${why}`, () => assert.deepEqual(drawnSize(box, picture, fitMode), expected));
});

describe('A steady view', () => {
  const hidden = { isHidden: true, size: null };
  /** @param {number} width */
  const shown = (width) => ({ isHidden: false, size: { width, height: width } });
  /** @type {FakeClock} */
  let time;
  /** @type {any[]} */
  let seen;
  /** @type {SteadyView} */
  let steady;

  beforeEach(() => {
    time = new FakeClock();
    seen = [];
    steady = new SteadyView(shown(320), time, () => seen.push([time.now(), steady.view.size?.width ?? 'hidden']));
  });

  test('follows at once when the video becomes visible, and later when it grows, shrinks or is hidden', async () => {
    steady.see(shown(640));
    await time.advance(1000);
    steady.see(shown(160));
    await time.advance(1000);
    steady.see(hidden);
    await time.advance(1000);
    steady.see(shown(160));
    assert.deepEqual(seen, [[250, 640], [2000, 160], [3000, 'hidden'], [3000, 160]]);
    assert.equal(time.pending, 0);
  });

  test('ignores what does not last', async () => {
    steady.see(hidden);
    await time.advance(999);
    steady.see(shown(320));
    await time.advance(5000);
    assert.deepEqual(seen, []);
  });

  test('follows a view that never rests, at most four times a second', async () => {
    for (let width = 320; width < 1320; width += 10) {
      steady.see(shown(width));
      await time.advance(20);
    }
    assert.equal(seen.length, 7);
    assert.deepEqual(seen[0], [270, 450]);
  });

  test('that grows need not wait as long as one that shrinks', async () => {
    steady.see(shown(160));
    await time.advance(500);
    steady.see(shown(640));
    await time.advance(250);
    assert.deepEqual(seen, [[750, 640]]);
  });
});

describe('A pace', () => {
  test('sends at most 20 messages at once and 10 a second, the urgent ones first, and each stream once', async () => {
    const time = new FakeClock();
    /** @type {string[]} */
    const sent = [];
    const pace = new Pace(time, (streamId) => sent.push(streamId), (streamId) => streamId === 'shown');
    for (let number = 0; number < 30; number += 1) pace.add(`stream ${number}`);
    assert.equal(sent.length, 20);
    for (let times = 0; times < 5; times += 1) pace.add('shown');
    await time.advance(100);
    assert.equal(sent[20], 'shown');
    await time.advance(900);
    assert.equal(sent.length, 30);
    await time.advance(2000);
    assert.equal(sent.length, 31);
    assert.equal(new Set(sent).size, 31);
    assert.equal(time.pending, 0);
  });
});

describe('A subscriber whose program sets no size', () => {
  /** @type {FakeWindow} */
  let view;

  beforeEach(() => {
    begin();
    view = new FakeWindow();
  });
  afterEach(() => view.remove());

  /** @param {object} [options] */
  async function watching(options) {
    const [ann, ben] = [await joined('a'), await joined('b')];
    ann.session.publish(publisherOf());
    await settled();
    const { stream } = ben.events.find(({ type }) => type === 'streamCreated');
    const watch = subscribe(ben.session, stream, options);
    await settled();
    /** The video that the latest request wants: its width, `best` or `none`. */
    const requested = () => {
      const { video: isWanted, preferredWidth } = ben.client.askedFor('session.subscribe').at(-1);
      return isWanted ? preferredWidth ?? 'best' : 'none';
    };
    return { ben, stream, requested, ...watch, asked: () => ben.client.askedFor('session.subscribe').length };
  }

  /**
   * A subscriber without video counts as connected even if the publisher is silent.
   *
   * @param {string[]} events
   */
  const withoutConnected = (events) => events.filter((event) => event !== 'connected');

  test('requests the size at which it is shown, from the first request on', async () => {
    const { requested, asked, video } = await watching();
    assert.deepEqual([requested(), asked()], [640, 1]);
    view.resize(video, 320, 240);
    await clock.advance(1000);
    assert.deepEqual([requested(), asked()], [320, 2]);
    view.resize(video, 310, 235);
    await clock.advance(5000);
    assert.equal(asked(), 2, 'a few pixels are no change');
  });

  test('counts the pixels of the screen, at most four per CSS pixel', async () => {
    globalThis.devicePixelRatio = 3;
    const { requested } = await watching();
    assert.equal(requested(), 1280);
  });

  test('requests no video while it is scrolled away, and at once when it is back', async () => {
    const { requested, video, events, subscriber } = await watching();
    view.scroll(video, false);
    await clock.advance(999);
    assert.equal(requested(), 640);
    await clock.advance(1);
    assert.equal(requested(), 'none');
    view.scroll(video, true);
    await settled();
    assert.equal(requested(), 640);
    assert.deepEqual(withoutConnected(events), [], 'nothing of it is reported to the program');
    assert.equal(subscriber.element.classList.contains('OT_audio-only'), false);
  });

  test('requests no video while its page is in the background, except in Picture in Picture', async () => {
    const { requested, video } = await watching();
    view.turn('hidden');
    await clock.advance(1000);
    assert.equal(requested(), 'none');
    const floating = Object.assign(new EventTarget(), { width: 320, height: 240 });
    video.happen('enterpictureinpicture', { pictureInPictureWindow: floating });
    await clock.advance(1000);
    assert.equal(requested(), 320);
    video.happen('leavepictureinpicture');
    await clock.advance(1000);
    assert.equal(requested(), 'none');
    view.turn('visible');
    await settled();
    assert.equal(requested(), 640);
  });

  test('keeps its video in the background where a browser hides its Picture in Picture from pages', async () => {
    Reflect.deleteProperty(globalThis.document, 'pictureInPictureEnabled');
    const { requested } = await watching();
    view.turn('hidden');
    await clock.advance(5000);
    assert.equal(requested(), 640);
  });

  test('keeps its video if it was never in a document, because it may be drawn to a canvas', async () => {
    const { requested, asked } = await watching({ insertDefaultUI: false });
    view.turn('hidden');
    await clock.advance(1000);
    assert.deepEqual([requested(), asked()], ['best', 1]);
  });

  test('requests no video after it was taken out of the document', async () => {
    const { requested, video } = await watching();
    video.inDocument = false;
    view.scroll(video, false);
    await clock.advance(1000);
    assert.equal(requested(), 'none');
  });

  test('keeps the size that the program requested while it is hidden', async () => {
    const { requested, video, subscriber, events } = await watching();
    subscriber.subscribeToVideo(false);
    await settled();
    view.scroll(video, false);
    await clock.advance(1000);
    view.scroll(video, true);
    await settled();
    assert.equal(requested(), 'none');
    assert.deepEqual(withoutConnected(events), ['videoDisabled subscribeToVideo']);
    subscriber.subscribeToVideo(true);
    await settled();
    assert.equal(requested(), 640);
  });

  test('counts as connected when its audio arrives while it is hidden, and shows its video when that arrives', async () => {
    const { requested, video, events, stream, media } = await watching();
    view.scroll(video, false);
    await clock.advance(1000);
    room.flow(stream.streamId, ['audio']);
    await clock.advance(20);
    assert.deepEqual(events, ['connected']);
    view.scroll(video, true);
    await settled();
    assert.equal(requested(), 640);
    room.flow(stream.streamId);
    await clock.advance(20);
    assert.deepEqual(media().getTracks().map((/** @type {any} */ { kind }) => kind), ['audio', 'video']);
  });

  test('keeps its last frame while it is hidden', async () => {
    const { video, stream, media } = await watching();
    room.flow(stream.streamId);
    await clock.advance(20);
    view.scroll(video, false);
    await clock.advance(1000);
    assert.equal(media().getTracks().length, 2);
  });

  test('stops observing at its end', async () => {
    const { ben, subscriber, requested, asked } = await watching();
    const before = asked();
    ben.session.unsubscribe(subscriber);
    assert.deepEqual(view.observers.map(({ targets }) => targets.size), [0, 0]);
    view.turn('hidden');
    await clock.advance(5000);
    assert.deepEqual([asked(), requested()], [before, 640]);
  });

  for (const [preferredResolution, expected] of /** @type {const} */ ([[{ width: 100, height: 100 }, 100], [null, 'best'], ['auto', 'none']])) {
    test(`with preferredResolution ${JSON.stringify(preferredResolution)}, requests ${expected} when hidden`, async () => {
      const { requested, video } = await watching({ preferredResolution });
      view.scroll(video, false);
      await clock.advance(1000);
      assert.equal(requested(), expected);
    });
  }

  test('may switch between a size of the program and its own', async () => {
    const { requested, video, subscriber } = await watching();
    view.scroll(video, false);
    await clock.advance(1000);
    subscriber.setPreferredResolution({ width: 200, height: 200 });
    await settled();
    assert.equal(requested(), 200);
    subscriber.setPreferredResolution('auto');
    await settled();
    assert.equal(requested(), 640, 'until the browser reports that it is scrolled away');
    view.scroll(video, false);
    await clock.advance(1000);
    assert.equal(requested(), 'none');
  });

  test('requests what the largest visible one of several shows', async () => {
    const { ben, stream, video, requested } = await watching();
    const other = subscribe(ben.session, stream);
    await settled();
    view.resize(other.video, 160, 120);
    await clock.advance(1000);
    assert.equal(requested(), 640);
    view.scroll(video, false);
    await clock.advance(1000);
    assert.equal(requested(), 160);
    view.scroll(other.video, false);
    await clock.advance(1000);
    assert.equal(requested(), 'none');
  });

  test('requests only whether it is visible in a relayed session', async () => {
    room.mediaMode = 'relayed';
    const [ann, ben] = [await joined('a', undefined, '1_room'), await joined('b', undefined, '1_room')];
    ann.session.publish(publisherOf());
    await settled();
    const { video } = subscribe(ben.session, ben.events.find(({ type }) => type === 'streamCreated').stream);
    await settled();
    view.resize(video, 100, 100);
    await clock.advance(1000);
    view.scroll(video, false);
    await clock.advance(1000);
    assert.deepEqual(ben.client.askedFor('session.subscribe').map((/** @type {any} */ asked) => [asked.video, asked.preferredWidth]), [
      [true, undefined], [false, undefined],
    ]);
  });
});
