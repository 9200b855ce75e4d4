// Tests the small pure functions for constraints, descriptions, statistics, errors and loudness.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConfabError, otError } from '../../lib/errors.js';
import { levelOf } from '../../lib/media/audio-level.js';
import { audioConstraints, videoConstraints } from '../../lib/media/constraints.js';
import { deviceError, getUserMedia } from '../../lib/media/devices.js';
import { iceConfiguration, IceServers, isChosen, mediaConfiguration, withChosen, withProtocol } from '../../lib/media/ice.js';
import { nameStreams, originOf } from '../../lib/media/sdp.js';
import { publisherStats, receivedCounters, sentCounters, subscriberStats } from '../../lib/media/stats.js';
import { sortArguments } from '../../lib/session/arguments.js';
import { FakeClock } from './fake-clock.mjs';
import { installPage } from './fake-page.mjs';

describe('Constraints', () => {
  test('ask for 640×480 and nothing special by default', () => {
    assert.deepEqual(audioConstraints({}), {});
    assert.deepEqual(videoConstraints({}), { width: { ideal: 640 }, height: { ideal: 480 } });
  });

  test('contain the device, size, frame rate, facing mode and audio processing', () => {
    assert.deepEqual(audioConstraints({ audioSource: 'mic', disableAudioProcessing: true, echoCancellation: true }), {
      deviceId: { exact: 'mic' }, echoCancellation: true, noiseSuppression: false, autoGainControl: false,
    });
    assert.deepEqual(videoConstraints({ resolution: '1280x720', frameRate: 15, facingMode: 'environment' }), {
      width: { ideal: 1280 }, height: { ideal: 720 }, frameRate: { ideal: 15 }, facingMode: 'environment',
    });
    assert.deepEqual(videoConstraints({ videoSource: 'cam', facingMode: 'user' }), {
      width: { ideal: 640 }, height: { ideal: 480 }, deviceId: { exact: 'cam' },
    });
  });

  test('request nothing for a disabled source', () => {
    assert.equal(audioConstraints({ audioSource: null }), false);
    assert.equal(videoConstraints({ videoSource: false }), false);
  });
});

describe('Devices', () => {
  test('convert browser errors to OpenTok’s', () => {
    for (const [name, expected] of [
      ['NotAllowedError', 'OT_USER_MEDIA_ACCESS_DENIED'], ['NotFoundError', 'OT_NO_DEVICES_FOUND'],
      ['NotReadableError', 'OT_HARDWARE_UNAVAILABLE'], ['OverconstrainedError', 'OT_CONSTRAINTS_NOT_SATISFIED'],
    ]) assert.equal(deviceError(Object.assign(new Error('x'), { name })).name, expected);
  });

  test('explain that a page needs HTTPS', async () => {
    installPage();
    Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
    Object.defineProperty(globalThis, 'isSecureContext', { value: false, configurable: true });
    const error = await getUserMedia().catch((reason) => reason);
    assert.equal(error.name, 'OT_NOT_SUPPORTED');
    assert.match(error.message, /Open this page over HTTPS/);
  });

  test('require at least one source', async () => {
    installPage();
    const error = await getUserMedia({ audioSource: null, videoSource: null }).catch((reason) => reason);
    assert.equal(error.name, 'OT_NO_VALID_CONSTRAINTS');
  });
});

describe('A description', () => {
  const sdp = ['v=0', 'o=- 4611731400430051336 2 IN IP4 127.0.0.1', 's=-', 'a=msid-semantic: WMS abc def', 'a=msid:abc track-1',
    'a=ssrc:12 cname:abc', 'a=ssrc:12 msid:abc track-1', 'a=msid:- track-2', 'a=msid:{def} {track-3}', ''].join('\r\n');

  test('gets the stream ids, and nothing else changes', () => {
    const named = nameStreams(sdp, new Map([['abc', 'stream-1'], ['def', 'stream-2']]));
    assert.deepEqual(named.split('\r\n').slice(3), ['a=msid-semantic: WMS stream-1 stream-2', 'a=msid:stream-1 track-1', 'a=ssrc:12 cname:abc',
      'a=ssrc:12 msid:stream-1 track-1', 'a=msid:- track-2', 'a=msid:{stream-2} {track-3}', '']);
  });

  test('identifies its author', () => {
    assert.equal(originOf(sdp), '4611731400430051336');
    assert.equal(originOf('o=mozilla...THIS_IS_SDPARTA-99.0 77 0 IN IP4 0.0.0.0'), '77');
    assert.equal(originOf(''), undefined);
  });
});

describe('Statistics', () => {
  /** @type {import('../../lib/media/condition.js').Condition} */
  const fine = { networkCondition: 'good', networkConditionReason: null, networkDegradationSource: null };
  /**
   * Leaves out what the browser does not know.
   * @param {any} stats
   */
  const known = (stats) => JSON.parse(JSON.stringify(stats));
  /** @param {object[]} entries */
  const report = (...entries) => new Map(entries.map((entry, index) => [index, entry]));

  test('of a publisher sum up its layers and take losses from the remote reports', () => {
    const stats = publisherStats([report(
      { type: 'outbound-rtp', kind: 'video', packetsSent: 10, bytesSent: 1000, framesPerSecond: 30, timestamp: 5 },
      { type: 'outbound-rtp', kind: 'video', packetsSent: 5, bytesSent: 300, framesPerSecond: 15, timestamp: 6 },
      { type: 'remote-inbound-rtp', kind: 'video', packetsLost: 2 },
    ), report({ type: 'outbound-rtp', kind: 'audio', packetsSent: 7, bytesSent: 70 })], fine);
    assert.deepEqual(known(stats), {
      audio: { packetsSent: 7, packetsLost: 0, bytesSent: 70 },
      video: { packetsSent: 15, packetsLost: 2, bytesSent: 1300, frameRate: 30, layers: [{ encodedFrameRate: 30 }, { encodedFrameRate: 15 }] },
      transport: fine, timestamp: 6,
    });
  });

  test('of a subscriber count received media', () => {
    const stats = subscriberStats([
      report({ type: 'inbound-rtp', kind: 'audio', packetsReceived: 7, packetsLost: 1, bytesReceived: 70, jitter: 0.012, timestamp: 9 }),
    ], fine, { qualityLimitationReason: 'size', rid: 'q' });
    assert.deepEqual(known(stats), {
      audio: { packetsReceived: 7, packetsLost: 1, bytesReceived: 70, jitter: 12 },
      video: {
        packetsReceived: 0, packetsLost: 0, bytesReceived: 0, frameRate: 0, freezeCount: 0, totalFreezesDuration: 0,
        qualityLimitationReason: 'size', rid: 'q',
      },
      transport: fine, timestamp: 9,
    });
  });

  test('name the round trip, the available bitrate, and what limits each layer that is sent', () => {
    const entries = [
      { id: 't', type: 'transport', selectedCandidatePairId: 'p' },
      { id: 'p', type: 'candidate-pair', currentRoundTripTime: 0.04, availableOutgoingBitrate: 900_000 },
      { id: 'old', type: 'candidate-pair', currentRoundTripTime: 3, availableOutgoingBitrate: 1 },
    ];
    const layer = { type: 'outbound-rtp', kind: 'video', framesPerSecond: 15, qualityLimitationReason: 'bandwidth', targetBitrate: 400_000, frameWidth: 640, frameHeight: 480 };
    const { transport, video } = publisherStats([
      report(...entries, { id: 'f', rid: 'f', active: true, ...layer }, { id: 'h', rid: 'h', active: false, ...layer }), report(...entries),
    ], fine);
    assert.deepEqual([transport.roundTripTime, transport.connectionEstimatedBandwidth], [40, 900_000]);
    assert.deepEqual(video.layers, [
      { rid: 'f', width: 640, height: 480, encodedFrameRate: 15, bitrate: 400_000, qualityLimitationReason: 'bandwidth' },
    ]);
  });

  test('of a subscriber name what the server can send it, and not what its own end could', () => {
    const entries = [
      { id: 't', type: 'transport', selectedCandidatePairId: 'p' },
      { id: 'p', type: 'candidate-pair', availableOutgoingBitrate: 300_000, availableIncomingBitrate: 800_000 },
    ];
    const limitation = { qualityLimitationReason: 'bandwidth' };
    const bandwidth = (/** @type {number | undefined} */ estimate, /** @type {any[]} */ all = entries) => (
      subscriberStats([report(...all)], fine, limitation, estimate).transport.connectionEstimatedBandwidth);
    assert.deepEqual([bandwidth(640_000), bandwidth(undefined)], [640_000, 800_000]);
    assert.equal(bandwidth(undefined, [entries[0], { ...entries[1], availableIncomingBitrate: undefined }]), undefined);
  });

  test('become counters, of which the silent ones do not count', () => {
    assert.equal(receivedCounters([report({ type: 'inbound-rtp', kind: 'audio', packetsReceived: 0 })]), null);
    assert.equal(sentCounters([report()]), null);
    const { concealed, samples, jitter, frozen } = receivedCounters([
      report({ type: 'inbound-rtp', kind: 'audio', packetsReceived: 1, concealedSamples: 50, silentConcealedSamples: 40, totalSamplesReceived: 100, jitter: 0.02 }),
      report({ id: 'v', type: 'inbound-rtp', kind: 'video', packetsReceived: 1, totalFreezesDuration: 2, jitter: 9 }),
    ]) ?? assert.fail();
    assert.deepEqual([concealed, samples, jitter, frozen], [10, 100, 0.02, 2]);
    const sent = sentCounters([report(
      { id: 'a', type: 'outbound-rtp', kind: 'video', packetsSent: 1, framesPerSecond: 20, qualityLimitationDurations: { bandwidth: 4, cpu: 1 } },
      { id: 'b', type: 'remote-inbound-rtp', kind: 'video', fractionLost: 0.1 },
    )]);
    assert.deepEqual(known(sent), { at: 0, limitedByNetwork: 4, limitedByDevice: 1, sendsVideo: true, lossRatio: 0.1 });
  });
});

describe('Errors', () => {
  test('are named by the request', () => {
    const refused = new ConfabError({ code: 'not_permitted', message: 'No.' });
    assert.deepEqual([otError(refused, 'publish').code, otError(refused, 'forceMute').code], [1500, 1540]);
    assert.deepEqual([otError(refused, 'signal').name, otError(refused, 'signal').reason], ['OT_PERMISSION_DENIED', 'not_permitted']);
    assert.equal(otError(new ConfabError({ code: 'token_project', message: '' }), 'connect').name, 'OT_AUTHENTICATION_ERROR');
    assert.equal(otError(new ConfabError({ code: 'session_full', message: '' }), 'connect').name, 'OT_CONNECTION_LIMIT_EXCEEDED');
    assert.equal(otError(new ConfabError({ code: 'never_heard', message: '' }), 'connect').name, 'OT_CONNECT_FAILED');
    assert.equal(otError(new Error('oops'), 'subscribe').message, 'oops');
  });

  test('keep the name they have', () => {
    const named = new ConfabError({ name: 'OT_STREAM_NOT_FOUND', code: 1604, message: '' });
    assert.equal(otError(named, 'publish'), named);
  });
});

describe('STUN and TURN servers', () => {
  const info = (/** @type {number | null} */ expiresAt) => ({ servers: [{ urls: 'turn:x', username: 'u', credential: 'c' }], relayOnly: true, expiresAt });

  test('are requested again when their credentials get old, once for all waiting callers', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const servers = new IceServers(async () => { asked += 1; return info(2); }, clock);
    servers.update(info(1));
    assert.equal((await servers.current()).expiresAt, 1);
    await clock.advance(120_000);
    const both = await Promise.all([servers.current(), servers.current()]);
    assert.deepEqual([asked, both[0].expiresAt, both[1].expiresAt], [1, 2, 2]);
  });

  test('without credentials do not age', async () => {
    const clock = new FakeClock();
    const servers = new IceServers(async () => assert.fail('asked'), clock);
    servers.update(info(null));
    await clock.advance(3_600_000);
    assert.equal((await servers.current()).servers.length, 1);
  });

  test('are used when old if no new ones are available', async () => {
    const clock = new FakeClock();
    const servers = new IceServers(async () => { throw new Error('away'); }, clock);
    servers.update(info(1));
    await clock.advance(200_000);
    assert.equal((await servers.current()).expiresAt, 1);
  });

  test('are the only route if the server requires it, unless the program decides otherwise', () => {
    assert.equal(iceConfiguration(info(1)).iceTransportPolicy, 'relay');
    assert.equal(iceConfiguration(info(1), { transportPolicy: 'all' }).iceTransportPolicy, 'all');
    const custom = [{ urls: 'stun:mine' }];
    assert.deepEqual(iceConfiguration(info(1), { includeServers: 'custom', customServers: custom }).iceServers, custom);
    assert.equal(iceConfiguration(info(1), { customServers: custom }).iceServers?.length, 2);
  });

  test('a user may choose which ways of ICE to use', () => {
    const servers = [{ urls: ['stun:a', 'turn:a?transport=udp', 'turn:a?transport=tcp', 'turns:a'], username: 'u' }, { urls: 'stun:b' }];
    /** @param {import('../../lib/media/ice.js').IceConfig} config */
    const chosen = (config) => {
      const { iceServers = [], iceTransportPolicy } = iceConfiguration({ servers, relayOnly: false }, config);
      return [iceTransportPolicy, ...iceServers.flatMap(({ urls }) => urls)];
    };
    assert.deepEqual(chosen({ candidates: 'local' }), ['all']);
    assert.deepEqual(chosen({ candidates: 'stun' }), ['all', 'stun:a', 'stun:b']);
    assert.equal(chosen({ candidates: 'turn' })[0], 'relay');
    assert.deepEqual(chosen({ protocol: 'udp' }), ['all', 'stun:a', 'turn:a?transport=udp', 'stun:b']);
    assert.deepEqual(chosen({ protocol: 'tcp' }), ['relay', 'stun:a', 'turn:a?transport=tcp', 'turns:a', 'stun:b']);
  });

  test('an answer keeps only the candidates of the chosen protocol', () => {
    const sdp = 'm=audio 9\r\na=candidate:1 1 udp 1 192.0.2.1 40000 typ host\r\na=candidate:2 1 TCP 1 192.0.2.1 40000 typ host tcptype passive\r\na=end-of-candidates\r\n';
    assert.equal(withProtocol(sdp), sdp);
    assert.match(withProtocol(sdp, 'tcp'), /^m=audio 9\r\na=candidate:2 .*passive\r\na=end-of-candidates\r\n$/);
    assert.doesNotMatch(withProtocol(sdp, 'udp'), /TCP/);
  });

  test('candidates of another browser are used only if the settings allow them', () => {
    const of = (/** @type {string} */ type, transport = 'UDP') => `candidate:1 1 ${transport} 2122 192.0.2.7 4000 typ ${type} generation 0`;
    const all = [of('host'), of('host', 'TCP'), of('srflx'), of('relay')];
    const chosen = (/** @type {any} */ config) => all.map((candidate) => isChosen(candidate, config));
    assert.deepEqual(chosen(undefined), [true, true, true, true]);
    assert.deepEqual(chosen({ candidates: 'local' }), [true, true, false, false]);
    assert.deepEqual(chosen({ candidates: 'stun' }), [true, true, true, false]);
    assert.deepEqual(chosen({ candidates: 'turn' }), [true, true, true, true], 'our own end uses a relay');
    assert.deepEqual(chosen({ protocol: 'udp' }), [true, false, true, true]);
    assert.deepEqual(chosen({ protocol: 'tcp' }), [true, true, true, true]);
    assert.equal(isChosen('', { candidates: 'local' }), true, 'the end of the candidates');
    const sdp = `m=audio 9\r\n${all.map((candidate) => `a=${candidate}\r\n`).join('')}a=end-of-candidates\r\n`;
    assert.equal(withChosen(sdp, { candidates: 'local', protocol: 'udp' }), `m=audio 9\r\na=${all[0]}\r\na=end-of-candidates\r\n`);
  });

  test('are given to connections with the server only if needed, or if the program says so', async () => {
    const relay = { urls: ['turn:relay', 'turns:relay:443?transport=tcp'] };
    const servers = { current: async () => ({ servers: [{ urls: 'stun:one' }, relay], relayOnly: true }) };
    const own = [{ urls: 'stun:mine' }];
    const lists = async (/** @type {any} */ config, needsRelay = false) => (await mediaConfiguration(servers, config, needsRelay)).iceServers;
    assert.deepEqual(await lists({}), []);
    assert.deepEqual(await lists({}, true), [relay]);
    assert.deepEqual(await lists({ customServers: own }, true), [...own, relay]);
    assert.deepEqual(await lists({ includeServers: 'custom', customServers: own }, true), own);
    assert.equal((await mediaConfiguration(servers, { transportPolicy: 'relay' })).iceTransportPolicy, 'relay');
    assert.equal((await mediaConfiguration(servers, {}, true)).iceTransportPolicy, undefined);
  });
});

test('Arguments are recognized by their types', () => {
  const callback = () => {};
  assert.deepEqual(sortArguments(['id', { name: 'x' }, callback]), { target: 'id', properties: { name: 'x' }, callback });
  assert.deepEqual(sortArguments([{ name: 'x' }]), { target: undefined, properties: { name: 'x' }, callback: undefined });
  assert.deepEqual(sortArguments([null, callback]), { target: undefined, properties: {}, callback });
});

test('Loudness is the root mean square', () => {
  assert.equal(levelOf([]), 0);
  assert.equal(levelOf([0.5, -0.5]), 0.5);
  assert.equal(levelOf([2, 2]), 1);
});
