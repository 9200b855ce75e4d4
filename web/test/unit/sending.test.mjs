import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { audioConstraints, videoConstraints } from '../../lib/media/constraints.js';
import { encodingsOf, three } from '../../lib/media/layers.js';
import { encodingOf, opusParameters, tune, withOpusParameters } from '../../lib/media/sending.js';
import { OT } from '../../lib/ot.js';
import { settled } from './fake-clock.mjs';
import { FakeElement } from './fake-page.mjs';
import { begin, clock, connections, joined, room, subscribe } from './routed-room.mjs';

/**
 * A sender with these encodings.
 * @param {object[]} encodings
 */
function sender(encodings) {
  const made = {
    /** @type {any} */
    parameters: { encodings },
    times: 0,
    getParameters: () => structuredClone(made.parameters),
    setParameters: async (/** @type {any} */ parameters) => {
      made.parameters = parameters;
      made.times += 1;
    },
  };
  return /** @type {any} */ (made);
}

describe('Options for sending', () => {
  test('limit the bitrates, of each layer in proportion', () => {
    assert.deepEqual(encodingOf('audio', { audioBitrate: 24_000 }), { maxBitrate: 24_000 });
    assert.deepEqual([1, 1e9].map((audioBitrate) => encodingOf('audio', { audioBitrate }).maxBitrate), [6000, 510_000]);
    const bitrates = (/** @type {object} */ options) => three.map((layer) => encodingOf('video', options, layer).maxBitrate);
    assert.deepEqual(bitrates({}), [1_500_000, 500_000, 150_000]);
    assert.deepEqual(bitrates({ maxVideoBitrate: 300_000 }), [300_000, 100_000, 30_000]);
    assert.deepEqual(encodingOf('video', { maxVideoBitrate: 1, frameRate: 7 }), { maxBitrate: 5000, maxFramerate: 7 });
    assert.equal(encodingOf('video', {}).maxBitrate, undefined, 'a relayed video is limited by the browser');
  });

  test('set priorities only if the program sets them', () => {
    assert.deepEqual(encodingOf('audio', { networkPriority: { audio: 'high' } }), { maxBitrate: undefined, priority: 'high', networkPriority: 'high' });
    assert.equal('priority' in encodingOf('video', { networkPriority: { audio: 'high' } }), false);
  });

  test('are applied to a sender, and only when they change', async () => {
    const video = sender(encodingsOf(three));
    await tune(video, 'video', {}, three);
    assert.equal(video.times, 0);
    const options = /** @type {const} */ ({ maxVideoBitrate: 750_000, degradationPreference: 'maintain-resolution', frameRate: 15 });
    for (let time = 0; time < 2; time += 1) await tune(video, 'video', options, three);
    assert.equal(video.times, 1);
    assert.deepEqual(video.parameters.encodings.map((/** @type {any} */ { maxBitrate, maxFramerate }) => [maxBitrate, maxFramerate]), [
      [750_000, 15], [250_000, 15], [75_000, 15],
    ]);
    assert.equal(video.parameters.degradationPreference, 'maintain-resolution');
    await tune(video, 'video', {}, three);
    assert.deepEqual(video.parameters.encodings[0], { ...three[0] }, 'the next publisher has its own options');
    await tune(sender([]), 'audio', { audioBitrate: 20_000 });
  });

  test('become parameters of Opus', () => {
    assert.deepEqual(opusParameters({}), {});
    assert.deepEqual(opusParameters({ audioBitrate: 64_000, enableStereo: true, enableDtx: false }), { maxaveragebitrate: 64_000, stereo: 1, usedtx: 0 });
  });

  test('become constraints', () => {
    assert.deepEqual(audioConstraints({ enableStereo: true }), { channelCount: { ideal: 2 } });
    assert.deepEqual(videoConstraints({ maxResolution: { width: 800, height: 600 } }), {
      width: { ideal: 640, max: 800 }, height: { ideal: 480, max: 600 },
    });
    assert.deepEqual(videoConstraints({ videoSource: 'screen', frameRate: 5, maxResolution: { width: 1920, height: 1080 } }), {
      width: { max: 1920 }, height: { max: 1080 }, frameRate: { max: 5 },
    });
  });
});

describe('Parameters of Opus in a description', () => {
  const section = (/** @type {string} */ mid, /** @type {string[]} */ ...lines) => [`m=audio 9 UDP/TLS/RTP/SAVPF 111 63`, `a=mid:${mid}`, 'a=rtpmap:111 opus/48000/2', ...lines, ''].join('\r\n');
  const head = 'v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\n';

  test('replace the same ones and keep the others, in the named sections only', () => {
    const sdp = head + section('0', 'a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1') + section('1', 'a=fmtp:111 minptime=10') + 'm=video 9 x 96\r\na=mid:2\r\n';
    const changed = withOpusParameters(sdp, (mid) => /** @type {Record<string, number>} */ (mid === '0' ? { usedtx: 0, stereo: 1 } : {}));
    assert.equal(changed, sdp.replace('useinbandfec=1;usedtx=1', 'useinbandfec=1;usedtx=0;stereo=1'));
  });

  test('are added where there are none', () => {
    const sdp = head + section('0', 'a=rtpmap:63 red/48000/2', 'a=fmtp:63 111/111');
    assert.equal(withOpusParameters(sdp, () => ({ usedtx: 1 })), sdp.replace('opus/48000/2\r\n', 'opus/48000/2\r\na=fmtp:111 usedtx=1\r\n'));
  });

  test('leave a description without Opus as it is', () => {
    const sdp = `${head}m=audio 9 x 0\r\na=mid:0\r\na=rtpmap:0 PCMU/8000\r\n`;
    assert.equal(withOpusParameters(sdp, () => ({ usedtx: 1 })), sdp);
  });
});

describe('A routed publisher', () => {
  beforeEach(begin);
  const element = () => /** @type {any} */ (new FakeElement('div'));

  test('sends with its own options, also over transceivers that another one used', async () => {
    const ann = await joined('a');
    const connection = () => ann.client.sides.send;
    /** @param {object} options */
    const publish = async (options) => {
      const publisher = OT.initPublisher(element(), { insertMode: 'append', ...options });
      ann.session.publish(publisher);
      await settled();
      return publisher;
    };
    const first = await publish({});
    const senders = connection().transceivers.map((/** @type {any} */ transceiver) => {
      const made = sender([{}]);
      Object.assign(transceiver.sender, { getParameters: made.getParameters, setParameters: made.setParameters });
      return made;
    });
    const offers = () => ann.client.askedFor('media.offer').length;
    const before = offers();
    first.destroy();
    await clock.advance(4000);
    const second = await publish({ audioBitrate: 20_000, enableDtx: true, maxVideoBitrate: 400_000 });
    assert.equal(offers(), before + 1, 'its sound needs another answer');
    assert.deepEqual(senders.map((/** @type {any} */ { parameters }) => parameters.encodings[0].maxBitrate), [20_000, 400_000]);
    second.setMaxVideoBitrate(200_000);
    await settled();
    assert.equal(senders[1].parameters.encodings[0].maxBitrate, 200_000);
    assert.equal(offers(), before + 1);
  });
});

describe('A relayed publisher', () => {
  beforeEach(begin);

  test('sends with its own options to each subscriber', async () => {
    room.mediaMode = 'relayed';
    const [ann, ben] = [await joined('a', undefined, '1_room'), await joined('b', undefined, '1_room')];
    const publisher = OT.initPublisher(/** @type {any} */ (new FakeElement('div')), { insertMode: 'append', maxVideoBitrate: 300_000 });
    ann.session.publish(publisher);
    await settled();
    subscribe(ben.session, ben.events.find(({ type }) => type === 'streamCreated').stream);
    await settled();
    const sent = connections().flatMap(({ senders }) => senders).find(({ track }) => track?.kind === 'video') ?? assert.fail();
    const tuned = sender([{}]);
    Object.assign(sent, { getParameters: tuned.getParameters, setParameters: tuned.setParameters });
    publisher.setMaxVideoBitrate(200_000);
    await settled();
    assert.equal(tuned.parameters.encodings[0].maxBitrate, 200_000);
  });
});
