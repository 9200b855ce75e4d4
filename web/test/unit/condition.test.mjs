import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { receivedCondition, sentCondition, steadied, streamCondition, unjudged } from '../../lib/media/condition.js';
import { ConditionMeter } from '../../lib/media/condition-meter.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { begin, clock, publisherOf, room, seeing, watching } from './routed-room.mjs';

/** @typedef {import('../../lib/media/condition.js').Judgment} Judgment */
/** @param {Judgment} judgment */
const spoken = ({ level, reason }) => (reason ? `${level} ${reason}` : level);

describe('Received media', () => {
  const before = { at: 100, received: 1000, lost: 10, frozen: 3, concealed: 500, samples: 480_000, jitter: 0.01, roundTrip: 0.05 };
  /** What arrives in two seconds on a good line. */
  const after = { ...before, at: 102, received: 1200, samples: 576_000 };

  for (const [change, expected] of /** @type {[Partial<typeof after>, string][]} */ ([
    [{}, 'good'],
    [{ lost: 13 }, 'good'],
    [{ lost: 15 }, 'fair loss'],
    [{ lost: 30 }, 'poor loss'],
    [{ lost: 5 }, 'good'],
    [{ received: 1005, lost: 15 }, 'good'],
    [{ received: 1000, lost: 40 }, 'poor loss'],
    [{ concealed: 500 + 0.03 * 96_000 }, 'fair loss'],
    [{ concealed: 500 + 0.2 * 96_000 }, 'poor loss'],
    [{ jitter: 0.06 }, 'fair delay'],
    [{ jitter: 0.2 }, 'poor delay'],
    [{ jitter: undefined, roundTrip: undefined }, 'good'],
    [{ roundTrip: 0.35 }, 'fair delay'],
    [{ roundTrip: 0.9 }, 'poor delay'],
    [{ frozen: 3.2 }, 'fair freezes'],
    [{ frozen: 4 }, 'poor freezes'],
    [{ frozen: 3.2, lost: 30 }, 'poor loss'],
    [{ frozen: 4, lost: 15 }, 'poor freezes'],
    [{ frozen: 3.2, lost: 15 }, 'fair loss'],
    [{ at: 100 }, 'good'],
    [{ at: 90, lost: 5000 }, 'good'],
  ])) {
    test(`is ${expected} with ${JSON.stringify(change)}`, () => {
      assert.equal(spoken(receivedCondition(before, { ...after, ...change })), expected);
    });
  }
});

describe('Sent media', () => {
  const before = { at: 10, limitedByNetwork: 5, limitedByDevice: 1, sendsVideo: true };
  const after = { ...before, at: 12, lossRatio: 0, roundTrip: 0.04, available: 1_000_000 };

  for (const [change, expected] of /** @type {[Partial<typeof after>, string][]} */ ([
    [{}, 'good'],
    [{ lossRatio: 0.03 }, 'fair loss'],
    [{ lossRatio: 0.2 }, 'poor loss'],
    [{ limitedByNetwork: 5.9 }, 'good'],
    [{ limitedByNetwork: 7 }, 'fair bandwidth'],
    [{ limitedByDevice: 3 }, 'fair device'],
    [{ available: 90_000 }, 'poor bandwidth'],
    [{ available: 90_000, sendsVideo: false }, 'good'],
    [{ roundTrip: 0.5 }, 'fair delay'],
    [{ limitedByNetwork: 7, lossRatio: 0.1 }, 'poor loss'],
    [{ lossRatio: undefined, roundTrip: undefined, available: undefined }, 'good'],
  ])) {
    test(`is ${expected} with ${JSON.stringify(change)}`, () => {
      assert.equal(spoken(sentCondition(before, { ...after, ...change })), expected);
    });
  }
});

describe('A stream', () => {
  const fine = /** @type {Judgment} */ ({ level: 'good', reason: null });
  const usual = { received: fine, uplink: fine, isPaused: false, isWarned: false, isLost: false };
  /** @param {string} text @returns {Judgment} */
  const judged = (text) => /** @type {any} */ ({ level: text.split(' ')[0], reason: text.split(' ')[1] ?? null });

  for (const [known, expected] of /** @type {[object, string][]} */ ([
    [{}, 'good'],
    [{ received: judged('fair loss') }, 'fair loss local'],
    [{ uplink: judged('fair loss') }, 'fair loss remote'],
    [{ received: judged('fair delay'), uplink: judged('poor loss') }, 'poor loss remote'],
    [{ received: judged('poor loss'), uplink: judged('fair loss') }, 'poor loss local'],
    [{ received: judged('poor freezes'), uplink: judged('fair bandwidth') }, 'poor bandwidth remote'],
    [{ received: judged('poor freezes') }, 'poor freezes local'],
    [{ isWarned: true }, 'fair bandwidth local'],
    [{ isWarned: true, received: judged('poor loss') }, 'poor loss local'],
    [{ isPaused: true, uplink: judged('poor loss') }, 'poor paused local'],
    [{ isLost: true, isPaused: true }, 'poor reconnecting null'],
  ])) {
    test(`is ${expected} with ${JSON.stringify(known)}`, () => {
      const { networkCondition, networkConditionReason, networkDegradationSource } = streamCondition({ ...usual, ...known });
      const words = networkCondition === 'good' ? [networkCondition] : [networkCondition, networkConditionReason, `${networkDegradationSource}`];
      assert.equal(words.join(' '), expected);
    });
  }

  test('shows a worse level after two judgments in a row, and a better one after three', () => {
    const shown = [];
    let steady = unjudged;
    for (const text of ['poor loss', 'good', 'poor loss', 'fair loss', 'fair delay', 'good', 'good', 'poor loss', 'good', 'good', 'good', 'good']) {
      steady = steadied(steady, judged(text));
      shown.push(spoken(steady.shown));
    }
    assert.deepEqual(shown, [
      'good', 'good', 'good', 'fair loss', 'fair delay', 'fair delay', 'fair delay', 'fair delay', 'fair delay', 'fair delay', 'good', 'good',
    ]);
  });
});

describe('A meter', () => {
  test('looks every two seconds while it runs, and skips the time of a change made on purpose', async () => {
    const time = new FakeClock();
    /** @type {[number, number][]} */
    const judged = [];
    let count = 0;
    const meter = new ConditionMeter({
      clock: time,
      count: async () => ({ at: count += 1 }),
      judge: (before, after) => {
        judged.push([before.at, after.at]);
        return { level: 'poor', reason: 'loss' };
      },
      changed: () => {},
    });
    await time.advance(5000);
    assert.equal(count, 0);
    meter.start();
    meter.start();
    await time.advance(6000);
    meter.skip();
    await time.advance(4000);
    assert.deepEqual(judged, [[1, 2], [2, 3], [4, 5]]);
    assert.equal(meter.judgment.level, 'poor');
    meter.stop();
    assert.equal(meter.judgment.level, 'good');
    await time.advance(5000);
    assert.deepEqual([count, time.pending], [5, 0]);
  });
});

describe('A subscriber that the server tells of the network', () => {
  beforeEach(begin);

  async function reported() {
    const made = await seeing();
    const { watch: { subscriber }, ben, stream } = made;
    /** @type {string[]} */
    const events = [];
    for (const name of ['videoDisabled', 'videoEnabled', 'videoDisableWarning', 'videoDisableWarningLifted']) {
      subscriber.on(name, (/** @type {any} */ { type, reason }) => events.push(reason ? `${type} ${reason}` : type));
    }
    subscriber.on('networkConditionChanged', (/** @type {any} */ event) => {
      events.push([event.networkCondition, event.networkConditionReason, event.networkDegradationSource].filter(Boolean).join(' '));
    });
    /** @param {object} members */
    const tell = async (members) => {
      ben.client.tell({ type: 'session.subscriptionChanged', sessionId: '2_room', streamId: stream.streamId, videoPaused: false, reason: 'slow', ...members });
      await settled();
      return events.splice(0);
    };
    const limitation = () => new Promise((resolve) => {
      subscriber.getStats((/** @type {unknown} */ _, /** @type {any} */ stats) => resolve([stats?.video.qualityLimitationReason, stats?.video.rid, stats?.video.temporalLayer]));
    });
    return { ...made, subscriber, events, tell, limitation };
  }

  test('warns before the video is paused, and lifts the warning', async () => {
    const { tell } = await reported();
    assert.deepEqual(await tell({ warning: true }), ['videoDisableWarning', 'fair bandwidth local']);
    assert.deepEqual(await tell({ warning: true }), []);
    assert.deepEqual(await tell({ warning: false }), ['videoDisableWarningLifted', 'good']);
    assert.deepEqual(await tell({ warning: true }), ['videoDisableWarning', 'fair bandwidth local']);
    assert.deepEqual(await tell({ videoPaused: true }), ['videoDisabled quality', 'poor paused local']);
    assert.deepEqual(await tell({ videoPaused: true, warning: true }), []);
    assert.deepEqual(await tell({ videoPaused: false }), ['videoEnabled quality', 'good']);
  });

  test('says nothing when another layer was chosen, and has the reason in its statistics', async () => {
    const { tell, limitation } = await reported();
    assert.deepEqual(await limitation(), ['none', undefined, undefined]);
    for (const reason of ['size', 'publisher']) {
      assert.deepEqual(await tell({ reason, rid: 'h', temporalLayer: 1 }), []);
      assert.deepEqual(await limitation(), [reason, 'h', 1]);
    }
  });

  test('has no limitation in its statistics any more when the network carries everything again', async () => {
    const { tell, limitation } = await reported();
    await tell({ reason: 'bandwidth', rid: 'q', limited: true });
    assert.deepEqual(await limitation(), ['bandwidth', 'q', undefined]);
    await tell({ reason: 'size', rid: 'h' });
    assert.deepEqual(await limitation(), ['bandwidth', 'h', undefined]);
    await tell({ reason: 'bandwidth', rid: 'f', limited: false });
    assert.deepEqual(await limitation(), ['none', 'f', undefined]);
    await tell({ videoPaused: true, limited: true });
    assert.deepEqual((await limitation())[0], 'slow');
    await tell({ rid: 'q' });
    assert.deepEqual((await limitation())[0], 'bandwidth');
    await tell({ reason: 'bandwidth', rid: 'f', limited: false });
    await tell({ videoPaused: true, reason: 'codec' });
    assert.deepEqual((await limitation())[0], 'codec');
    await tell({ reason: 'codec', rid: 'f' });
    assert.deepEqual((await limitation())[0], 'none');
  });

  test('names the reason of the pause when another reason ends it', async () => {
    const { tell } = await reported();
    assert.deepEqual(await tell({ videoPaused: true, reason: 'codec' }), ['videoDisabled codecNotSupported']);
    assert.deepEqual(await tell({ reason: 'bandwidth', rid: 'q' }), ['videoEnabled codecNotSupported']);
  });

  test('reports the uplink of the publisher, who gets the same', async () => {
    const { ann, ben, stream, subscriber, events, publisher } = await reported();
    /** @type {any[]} */
    const own = [];
    publisher.on('networkConditionChanged', (/** @type {any} */ event) => own.push(event.networkCondition));
    const quality = { type: 'session.streamQuality', sessionId: '2_room', streamId: stream.streamId };
    for (const { client } of [ann, ben]) client.tell({ ...quality, level: 'poor', reason: 'loss' });
    await settled();
    assert.deepEqual(events.splice(0), ['poor loss remote']);
    assert.deepEqual([subscriber.networkCondition.networkDegradationSource, publisher.networkCondition.networkDegradationSource], ['remote', 'local']);
    for (const { client } of [ann, ben]) client.tell({ ...quality, level: 'good' });
    ben.client.tell({ ...quality, streamId: 'unknown', level: 'poor' });
    await settled();
    assert.deepEqual([events, own], [['good'], ['poor', 'good']]);
  });

  test('judges what arrives while the program listens', async () => {
    const { subscriber, events, watch } = await reported();
    const [receiver] = room.clients[1].sides.receive?.transceivers.map((/** @type {any} */ transceiver) => transceiver.receiver) ?? [];
    let seconds = 0;
    receiver.getStats = async () => new Map([['in', {
      type: 'inbound-rtp', kind: 'audio', timestamp: 1000 * (seconds += 2), packetsReceived: 100 * seconds, packetsLost: 50 * seconds,
    }]]);
    await clock.advance(6000);
    assert.deepEqual(events.splice(0), ['poor loss local']);
    subscriber.off('networkConditionChanged');
    const before = seconds;
    await clock.advance(60_000);
    assert.equal(seconds, before);
    assert.deepEqual(watch.events, ['connected']);
  });

  test('is good again when its session is set up again', async () => {
    const { watch: { subscriber }, ben, stream } = await watching();
    ben.client.tell({ type: 'session.subscriptionChanged', sessionId: '2_room', streamId: stream.streamId, videoPaused: true, reason: 'slow' });
    await settled();
    assert.equal(subscriber.networkCondition.networkCondition, 'poor');
    ben.core.subscriptions.tellAgain(stream.streamId);
    assert.equal(subscriber.networkCondition.networkCondition, 'good');
  });

  test('a publisher that is not published is good', () => {
    assert.deepEqual(publisherOf().networkCondition, { networkCondition: 'good', networkConditionReason: null, networkDegradationSource: null });
  });
});
