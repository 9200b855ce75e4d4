// Which codec is preferred: in descriptions, in what a transceiver offers, and for both ways of media.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { preferCodec, withCodecsFirst } from '../../lib/media/codecs.js';
import { OT } from '../../lib/ot.js';
import { settled } from './fake-clock.mjs';
import { FakeElement } from './fake-page.mjs';
import { begin, connections, joined, room, subscribe } from './routed-room.mjs';

const description = [
  'v=0', 'o=- 1 1 IN IP4 0.0.0.0',
  'm=audio 9 UDP/TLS/RTP/SAVPF 63 111 9 0', 'a=mid:0', 'a=rtpmap:63 red/48000/2', 'a=fmtp:63 111/111', 'a=rtpmap:111 opus/48000/2',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97 102 103 104', 'a=mid:1', 'a=rtpmap:96 VP8/90000', 'a=rtpmap:97 rtx/90000', 'a=rtpmap:102 H264/90000',
  'a=rtpmap:103 rtx/90000', 'a=rtpmap:104 H264/90000', '',
].join('\r\n');
const lists = (/** @type {string} */ sdp) => [...sdp.matchAll(/^m=\w+ \S+ \S+ (.*)\r$/gm)].map(([, list]) => list);
const codecs = (/** @type {string} */ kind, /** @type {string[]} */ ...names) => names.map((name) => ({ mimeType: `${kind}/${name}`, clockRate: 90_000 }));

/** What this browser can receive. */
const capabilities = /** @type {Record<string, object[]>} */ ({
  audio: codecs('audio', 'opus', 'red', 'G722', 'PCMU'), video: codecs('video', 'VP8', 'rtx', 'H264', 'AV1'),
});
const names = (/** @type {any[]} */ list) => list.map(({ mimeType }) => mimeType.split('/')[1]);
const element = () => /** @type {any} */ (new FakeElement('div'));

beforeEach(() => {
  begin();
  /** @type {any} */ (globalThis).RTCRtpReceiver = { getCapabilities: (/** @type {string} */ kind) => ({ codecs: capabilities[kind] }) };
});
afterEach(() => { delete /** @type {any} */ (globalThis).RTCRtpReceiver; });

describe('The order of codecs in a description', () => {
  test('begins with all payload types of the preferred codec, and keeps the others', () => {
    assert.deepEqual(lists(withCodecsFirst(description, (kind) => (kind === 'video' ? 'h264' : undefined))), ['63 111 9 0', '102 104 96 97 103']);
    assert.deepEqual(lists(withCodecsFirst(description, (kind, mid) => (mid === '0' ? 'g722' : undefined))), ['9 63 111 0', '96 97 102 103 104']);
  });

  test('begins with a payload type that the server asks for', () => {
    assert.deepEqual(lists(withCodecsFirst(description, (kind) => (kind === 'video' ? 104 : undefined))), ['63 111 9 0', '104 96 97 102 103']);
    assert.equal(withCodecsFirst(description, () => 98), description);
  });

  test('keeps redundant audio before Opus', () => {
    assert.equal(withCodecsFirst(description, (kind) => (kind === 'audio' ? 'opus' : undefined)), description);
  });

  test('stays as it is if the other side does not have the codec', () => {
    assert.equal(withCodecsFirst(description, () => 'av1'), description);
  });
});

describe('The codecs of a transceiver', () => {
  const transceiver = () => {
    /** @type {any[][]} */
    const set = [];
    return /** @type {any} */ ({ set, setCodecPreferences: (/** @type {any[]} */ list) => { set.push(list); } });
  };

  test('begin with the preferred one, and are the usual ones otherwise', () => {
    const video = transceiver();
    preferCodec(video, 'video', { videoCodec: 'h264' });
    preferCodec(video, 'video', {});
    preferCodec(video, 'video', { videoCodec: 'vp9' });
    assert.deepEqual(video.set.map(names), [['H264', 'VP8', 'rtx', 'AV1'], [], []]);
  });

  test('do not matter to browsers that cannot order them', () => {
    preferCodec(/** @type {any} */ ({}), 'video', { videoCodec: 'h264' });
    const fails = { setCodecPreferences: () => { throw new Error('refused'); } };
    preferCodec(/** @type {any} */ (fails), 'video', { videoCodec: 'h264' });
  });
});

describe('A publisher with a preferred codec', () => {
  test('tells it to the server in what it offers, and another publisher on the same transceivers does not', async () => {
    const ann = await joined('a');
    /** @type {[string, string[]][]} */
    const set = [];
    const publish = async (/** @type {object} */ options) => {
      const publisher = OT.initPublisher(element(), { insertMode: 'append', ...options });
      ann.session.publish(publisher);
      await settled();
      return publisher;
    };
    const first = await publish({ videoCodec: 'h264' });
    for (const made of /** @type {any[]} */ (ann.client.sides.send.transceivers)) {
      made.setCodecPreferences = (/** @type {any[]} */ list) => set.push([made.kind, names(list)]);
    }
    const offers = () => ann.client.askedFor('media.offer').length;
    const before = offers();
    first.destroy();
    await publish({});
    assert.deepEqual(set, [['audio', []], ['video', []]]);
    assert.equal(offers(), before + 1, 'the encoders read the order in another answer');
  });

  test('sends another one while the server asks for that, because of its subscribers', async () => {
    room.sections = ['m=video 9 UDP/TLS/RTP/SAVPF 96 98', 'a=mid:1', 'a=rtpmap:96 VP8/90000', 'a=rtpmap:98 AV1/90000', ''].join('\r\n');
    const [ann, ben] = [await joined('a'), await joined('b')];
    ann.session.publish(OT.initPublisher(element(), { insertMode: 'append', videoCodec: 'av1' }));
    await settled();
    const { stream: { streamId } } = ben.events.find(({ type }) => type === 'streamCreated');
    const order = () => lists(ann.client.sides.send.remoteDescription.sdp)[0];
    const orders = [order()];
    const before = ann.client.askedFor('media.offer').length;
    for (const wanted of [{ codec: 96 }, { codec: 96, video: false }, {}]) {
      ann.client.tell({ type: 'session.layersWanted', sessionId: '2_room', streamId, rids: [], video: true, ...wanted });
      await settled();
      orders.push(order());
    }
    assert.deepEqual(orders, ['98 96', '96 98', '96 98', '98 96']);
    assert.equal(ann.client.askedFor('media.offer').length, before + 2, 'one offer for each change');
  });

  test('offers it first to each subscriber of a relayed session', async () => {
    room.mediaMode = 'relayed';
    const [ann, ben] = [await joined('a', undefined, '1_room'), await joined('b', undefined, '1_room')];
    const publisher = OT.initPublisher(element(), { insertMode: 'append', videoCodec: 'h264', audioCodec: 'g722' });
    ann.session.publish(publisher);
    await settled();
    subscribe(ben.session, ben.events.find(({ type }) => type === 'streamCreated').stream);
    await settled();
    const senders = connections().flatMap((connection) => connection.senders);
    assert.deepEqual(senders.map(({ codecs: list }) => names(list ?? [])[0]), ['G722', 'H264']);
  });
});
