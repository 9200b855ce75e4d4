import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { sentCounters } from '../../lib/media/stats.js';
import { settled } from './fake-clock.mjs';
import { FakeTrack } from './fake-page.mjs';
import { begin, clock, connections, joined, publisherOf, room, sending, subscribe } from './routed-room.mjs';

describe('A publisher with audio fallback', () => {
  beforeEach(begin);

  /** @param {object} [options] */
  async function published(options = { audioFallback: { publisher: true } }, mode = 'routed') {
    room.mediaMode = mode;
    const sessionId = mode === 'routed' ? '2_room' : '1_room';
    const [ann, ben] = [await joined('a', undefined, sessionId), await joined('b', undefined, sessionId)];
    const publisher = publisherOf(options);
    /** @type {string[]} */
    const events = [];
    for (const name of ['videoDisabled', 'videoEnabled', 'videoDisableWarning', 'videoDisableWarningLifted']) {
      publisher.on(name, (/** @type {any} */ { type, reason }) => events.push(reason ? `${type} ${reason}` : type));
    }
    ann.session.publish(publisher);
    await settled();
    const { stream } = ben.events.find(({ type }) => type === 'streamCreated');
    const watch = subscribe(ben.session, stream);
    await settled();
    /** @param {string} level @param {string} [reason] */
    const judge = async (level, reason) => {
      ann.client.tell({ type: 'session.streamQuality', sessionId, streamId: stream.streamId, level, reason });
      await settled();
    };
    const seen = () => watch.events.filter((event) => event !== 'connected');
    return { ann, publisher, events, seen, judge };
  }

  /** @param {any} client @returns {boolean[]} what was reported to the server about the video */
  const reported = (client) => client.askedFor('session.update').map((/** @type {any} */ { hasVideo }) => hasVideo);

  test('stops its video on a network that is too slow, keeps its preview, and sends it again', async () => {
    const { ann, publisher, events, seen, judge } = await published();
    assert.deepEqual(sending(ann.client), ['audio', 'video']);
    await judge('poor', 'loss');
    assert.deepEqual(events.splice(0), ['videoDisableWarning']);
    await clock.advance(4999);
    assert.deepEqual([events, sending(ann.client)], [[], ['audio', 'video']]);
    await clock.advance(1);
    assert.deepEqual([events.splice(0), sending(ann.client), reported(ann.client)], [['videoDisabled quality'], ['audio', null], [false]]);
    assert.deepEqual(publisher.networkCondition, { networkCondition: 'poor', networkConditionReason: 'paused', networkDegradationSource: 'local' });
    assert.equal(publisher.getVideoSource().track?.enabled, true);
    assert.equal(publisher.element?.classList.contains('OT_audio-only'), false);
    assert.deepEqual(seen(), ['videoDisabled publishVideo']);
    await clock.advance(5000);
    assert.deepEqual([events.splice(0), sending(ann.client), reported(ann.client)], [['videoEnabled quality'], ['audio', 'video'], [false, true]]);
    assert.deepEqual(seen(), ['videoDisabled publishVideo', 'videoEnabled publishVideo']);
    assert.equal(publisher.networkCondition.networkCondition, 'good');
  });

  test('is not stopped by a long delay, by a fair network, or without the option', async () => {
    const { events, judge } = await published();
    for (const [level, reason] of [['poor', 'delay'], ['fair', 'loss'], ['fair', 'bandwidth']]) {
      await judge(level, reason);
      await clock.advance(60_000);
    }
    assert.deepEqual(events, []);
    begin();
    for (const options of [{}, { audioFallback: { subscriber: true } }]) {
      const other = await published(options);
      await other.judge('poor', 'loss');
      await clock.advance(60_000);
      assert.deepEqual([other.events, sending(other.ann.client)], [[], ['audio', 'video']]);
      begin();
    }
  });

  test('is judged by the browser’s own statistics too', async () => {
    const { ann, events } = await published();
    const [, { sender }] = /** @type {any} */ (ann.client.sides.send).transceivers;
    let available = 90_000;
    let seconds = 0;
    sender.getStats = async () => new Map(Object.entries({
      t: { id: 't', type: 'transport', selectedCandidatePairId: 'p' },
      p: { id: 'p', type: 'candidate-pair', availableOutgoingBitrate: available },
      v: { id: 'v', type: 'outbound-rtp', kind: 'video', packetsSent: 9, framesPerSecond: 5, timestamp: 1000 * (seconds += 2) },
    }));
    await clock.advance(6000);
    assert.deepEqual(events.splice(0), ['videoDisableWarning']);
    available = 900_000;
    await clock.advance(6000);
    assert.deepEqual(events.at(-1), 'videoDisabled quality', 'three better looks come too late');
  });

  test('counts only what it sends while the video is stopped', () => {
    const reports = [new Map(Object.entries({
      a: { id: 'a', type: 'outbound-rtp', kind: 'audio', packetsSent: 50 },
      v: { id: 'v', type: 'outbound-rtp', kind: 'video', packetsSent: 9, framesPerSecond: 20, qualityLimitationDurations: { bandwidth: 7 } },
      ra: { id: 'ra', type: 'remote-inbound-rtp', kind: 'audio', fractionLost: 0.01 },
      rv: { id: 'rv', type: 'remote-inbound-rtp', kind: 'video', fractionLost: 0.3 },
    }))];
    const { lossRatio, sendsVideo, limitedByNetwork } = sentCounters(reports, true) ?? assert.fail();
    assert.deepEqual([lossRatio, sendsVideo, limitedByNetwork], [0.01, false, 0]);
    assert.equal(sentCounters(reports)?.lossRatio, 0.3);
  });

  test('follows the program, which turns the video off and on', async () => {
    const { ann, publisher, events, judge } = await published();
    await judge('poor', 'loss');
    publisher.publishVideo(false);
    await clock.advance(60_000);
    assert.deepEqual([events.splice(0), reported(ann.client)], [['videoDisableWarning', 'videoDisableWarningLifted'], [false]]);
    publisher.publishVideo(true);
    await clock.advance(4000);
    await judge('poor', 'loss');
    await clock.advance(1000);
    assert.deepEqual(events.splice(0), ['videoDisableWarning', 'videoDisabled quality']);
    publisher.publishVideo(false);
    await settled();
    publisher.publishVideo(true);
    await settled();
    assert.deepEqual([events, sending(ann.client)], [[], ['audio', 'video']]);
    assert.equal(reported(ann.client).at(-1), true);
  });

  test('sends another camera only when the video is sent again', async () => {
    const { ann, publisher, judge } = await published();
    await judge('poor', 'loss');
    await clock.advance(5000);
    const other = /** @type {any} */ (new FakeTrack('video'));
    await publisher.setVideoSource(other);
    assert.deepEqual(sending(ann.client), ['audio', null]);
    await clock.advance(5000);
    assert.equal(/** @type {any} */ (ann.client.sides.send).transceivers[1].sender.track, other);
  });

  test('works in relayed sessions, and starts afresh in the next session', async () => {
    const { ann, publisher, events, judge } = await published(undefined, 'relayed');
    const sent = () => connections().flatMap(({ senders }) => senders.map(({ track }) => track?.kind ?? null));
    assert.deepEqual(sent(), ['audio', 'video']);
    const own = /** @type {any} */ (publisher.stream);
    own.uplink = { level: 'poor', reason: 'loss' };
    ann.core.publications.uplinkChanged(own.streamId);
    await clock.advance(5000);
    assert.deepEqual([events.splice(0), reported(ann.client)], [['videoDisableWarning', 'videoDisabled quality'], [false]]);
    assert.deepEqual(sent(), ['audio', null]);
    await publisher.setVideoSource(/** @type {any} */ (new FakeTrack('video')));
    await settled();
    assert.deepEqual(sent(), ['audio', null]);
    publisher.on('streamDestroyed', (event) => event.preventDefault());
    ann.session.unpublish(publisher);
    await judge('poor', 'loss');
    await clock.advance(60_000);
    assert.deepEqual([events, reported(ann.client)], [[], [false]]);
    ann.session.publish(publisher);
    await settled();
    assert.equal(ann.client.askedFor('session.publish').at(-1).hasVideo, true);
  });
});
