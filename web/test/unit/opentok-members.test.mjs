import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { settled } from './fake-clock.mjs';
import { FakeTrack } from './fake-page.mjs';
import { FakePeerConnection } from './fake-rtc.mjs';
import { begin, called, OT, page, part, room, session, watching } from './opentok-room.mjs';

beforeEach(begin);

/**
 * Sets a global variable until the test ends.
 * @param {{after: (run: () => void) => void}} t @param {string} name @param {unknown} value
 */
function stub(t, name, value) {
  const globals = /** @type {any} */ (globalThis);
  const before = globals[name];
  globals[name] = value;
  t.after(() => { globals[name] = before; });
}

describe('OT', () => {
  test('names the codecs of the browser once, without those that only repair', async (t) => {
    const codecs = ['VP8', 'rtx', 'VP8', 'H264', 'ulpfec'].map((name) => ({ mimeType: `video/${name}` }));
    stub(t, 'RTCRtpSender', { getCapabilities: () => ({ codecs }) });
    stub(t, 'RTCRtpReceiver', { getCapabilities: () => null });
    assert.deepEqual(await OT.getSupportedCodecs(), { videoEncoders: ['VP8', 'H264'], videoDecoders: [] });
  });

  test('supports media processors in browsers that give programs the frames of a track', (t) => {
    assert.equal(OT.hasMediaProcessorSupport(), false);
    stub(t, 'MediaStreamTrackProcessor', class {});
    stub(t, 'MediaStreamTrackGenerator', class {});
    assert.equal(OT.hasMediaProcessorSupport(), true);
  });

  test('logs up to the chosen level', (t) => {
    const log = t.mock.method(console, 'log', () => {});
    OT.log('not yet');
    OT.setLogLevel(OT.LOG);
    t.after(() => OT.setLogLevel(OT.ERROR));
    OT.log('now');
    assert.deepEqual(log.mock.calls.map((/** @type {any} */ call) => call.arguments), [['Confab:', 'now']]);
  });

  test('says on the page that a browser is too old, and needs no extension for screens', () => {
    OT.upgradeSystemRequirements();
    assert.match(/** @type {any} */ (page.body.children.at(-1)).textContent, /does not support/);
    assert.equal(/** @type {any} */ (OT).registerScreenSharingExtension('chrome', 'id', 2), undefined);
    /** @type {any} */
    let capability;
    OT.checkScreenSharingCapability((response) => { capability = response; });
    assert.deepEqual([capability.supported, capability.extensionRegistered], [true, undefined]);
  });

  test('plays the sound of all subscribers on the chosen device, where browsers can', async (t) => {
    await assert.rejects(OT.getAudioOutputDevices(), { name: 'OT_NOT_SUPPORTED' });
    await assert.rejects(OT.setAudioOutputDevice('speaker'), { name: 'OT_NOT_SUPPORTED' });
    stub(t, 'HTMLMediaElement', Object.assign(() => {}, { prototype: { setSinkId: () => {} } }));
    const { ben, stream, subscriber } = await watching();
    await settled();
    /** @type {string[]} */
    const chosen = [];
    /** @param {any} shown */
    const listen = (shown) => { part(shown.element, 'OT_video-element').setSinkId = async (/** @type {string} */ id) => { chosen.push(id); }; };
    listen(subscriber);
    assert.deepEqual(await OT.getAudioOutputDevices(), [{ deviceId: 'speaker', label: 'Speaker' }]);
    assert.deepEqual(await OT.getActiveAudioOutputDevice(), { deviceId: 'speaker', label: 'Speaker' });
    await OT.setAudioOutputDevice('speaker');
    const later = ben.subscribe(stream, page.element());
    listen(later);
    await settled();
    assert.deepEqual(chosen, ['speaker', 'speaker']);
    await assert.rejects(OT.setAudioOutputDevice('other'), { name: 'OT_NO_DEVICES_FOUND' });
  });

  test('gives errors that go to a callback to the handlers of exceptions too', async () => {
    /** @type {any[]} */
    const seen = [];
    const handler = (/** @type {any} */ event) => seen.push([event.type, event.code, event.title, event.target]);
    assert.equal(OT.on('exception', handler), OT);
    const made = session('a');
    const error = await called((callback) => made.connect('token_expired', callback));
    assert.deepEqual(seen, [['exception', error.code, error.name, made]]);
    OT.off('exception', handler);
  });
});

describe('A publisher', () => {
  test('reports that the browser asks for permission, and that the user has answered', async (t) => {
    /** @type {[() => void, number][]} */
    const timers = [];
    t.mock.method(globalThis, 'setTimeout', (/** @type {() => void} */ run, /** @type {number} */ ms) => timers.push([run, ms]));
    let allow = () => {};
    page.devices.decision = new Promise((resolve) => { allow = () => resolve(undefined); });
    const publisher = OT.initPublisher(page.element());
    /** @type {string[]} */
    const events = [];
    for (const name of ['accessDialogOpened', 'accessDialogClosed', 'accessAllowed', 'accessDenied', 'videoElementCreated']) {
      publisher.on(name, ({ type }) => events.push(type));
    }
    for (const [run, ms] of timers.splice(0)) if (ms === 500) run();
    assert.deepEqual(events, ['accessDialogOpened']);
    allow();
    await settled();
    assert.deepEqual(events, ['accessDialogOpened', 'accessDialogClosed', 'videoElementCreated', 'accessAllowed']);
  });

  test('suppresses noise with the filter of the browser, and does without on a microphone that replaces another', async () => {
    page.devices.opened = (/** @type {any} */ track) => Object.assign(track, {
      getCapabilities: () => (page.devices.given.length === 0 ? { voiceIsolation: [true, false] } : {}),
      getConstraints: () => ({}), applyConstraints: async (/** @type {any} */ constraints) => { track.applied = constraints; },
    });
    const publisher = OT.initPublisher(page.element());
    await settled();
    const filter = { type: 'advancedNoiseSuppression' };
    page.devices.given[0].settings.deviceId = 'headset';
    const [headset] = /** @type {any[]} */ (page.devices.given);
    headset.getCapabilities = () => ({ voiceIsolation: [true, false] });
    await publisher.applyAudioFilter(filter);
    assert.deepEqual([headset.applied, publisher.getAudioFilter()], [{ voiceIsolation: { exact: true } }, filter]);
    await publisher.clearAudioFilter();
    assert.deepEqual([headset.applied, publisher.getAudioFilter()], [{ voiceIsolation: { exact: false } }, null]);
    await publisher.applyAudioFilter(filter);
    headset.end();
    await settled();
    assert.deepEqual([publisher.getAudioSource()?.readyState, publisher.getAudioFilter()], ['live', null]);
  });

  test('sends what a connector makes of its microphone', async () => {
    const publisher = OT.initPublisher(page.element());
    await settled();
    const made = new FakeTrack('audio');
    /** @type {any[]} */
    const given = [];
    await publisher.setAudioMediaProcessorConnector({ setTrack: async (/** @type {any} */ track) => { given.push(track); return made; } });
    assert.deepEqual([given, publisher.getAudioSource()], [[page.devices.given[0]], page.devices.given[0]]);
    await assert.rejects(publisher.setAudioMediaProcessorConnector({}), { name: 'OT_INVALID_PARAMETER' });
  });
});

describe('A subscriber', () => {
  test('plays sound in the chosen volume, and none if the program turns it off', async () => {
    const { subscriber } = await watching();
    const video = part(/** @type {any} */ (subscriber.element), 'OT_video-element');
    await settled();
    assert.equal(subscriber.setAudioVolume(40), subscriber);
    assert.deepEqual([subscriber.getAudioVolume(), video.volume, video.muted], [40, 0.4, false]);
    assert.equal(subscriber.subscribeToAudio(false), subscriber);
    assert.deepEqual([video.muted, part(/** @type {any} */ (subscriber.element), 'OT_mute').attributes['aria-label']], [true, 'Unmute sound from Ann']);
  });

  test('offers a button for sound that the browser has blocked', async () => {
    const { subscriber } = await watching();
    const element = /** @type {any} */ (subscriber.element);
    part(element, 'OT_video-element').refusal = Object.assign(new Error('click first'), { name: 'NotAllowedError' });
    await settled();
    const play = part(element, 'OT_audio-blocked');
    assert.deepEqual([subscriber.isAudioBlocked(), play.hidden], [true, false]);
    part(element, 'OT_video-element').refusal = null;
    play.happen('click');
    assert.deepEqual([subscriber.isAudioBlocked(), play.hidden], [false, true]);
    await OT.unblockAudio();
  });

  test('requests the preferred frame rate, or the lowest if it is restricted', async () => {
    const { subscriber } = await watching({ mode: 'routed' });
    await settled();
    const requested = () => room.clients[1].askedFor('session.subscribe').at(-1).preferredFrameRate;
    subscriber.setPreferredFrameRate(15);
    await settled();
    assert.equal(requested(), 15);
    assert.equal(subscriber.restrictFrameRate(true), subscriber);
    await settled();
    assert.equal(requested(), 1);
    subscriber.restrictFrameRate(false);
    await settled();
    assert.equal(requested(), 15);
  });

  test('reports the size of its video', async () => {
    const { subscriber } = await watching();
    await settled();
    const video = part(/** @type {any} */ (subscriber.element), 'OT_video-element');
    /** @type {any[]} */
    const sizes = [];
    subscriber.on('videoDimensionsChanged', (/** @type {any} */ { newValue }) => sizes.push(newValue));
    assert.deepEqual([subscriber.videoWidth(), subscriber.videoHeight()], [undefined, undefined]);
    Object.assign(video, { videoWidth: 320, videoHeight: 180 }).happen('resize');
    assert.deepEqual([subscriber.videoWidth(), subscriber.videoHeight(), sizes], [320, 180, [{ width: 320, height: 180 }]]);
  });

  test('has no processing of received media and no captions', async () => {
    const { subscriber } = await watching();
    const connector = { setTrack: async (/** @type {any} */ track) => track };
    await assert.rejects(subscriber.setVideoMediaProcessorConnector(connector), { name: 'OT_NOT_SUPPORTED', code: 1013 });
    await assert.rejects(subscriber.setAudioMediaProcessorConnector(connector), { name: 'OT_NOT_SUPPORTED', code: 1013 });
    await subscriber.setAudioMediaProcessorConnector(null);
    await subscriber.subscribeToCaptions(false);
    await settled();
  });
});

test('a session uses the ICE servers and the policy of its options', async () => {
  const customServers = [{ urls: 'turn:turn.example.org', username: 'a', credential: 'b' }];
  await watching({ iceConfig: { includeServers: 'custom', transportPolicy: 'relay', customServers } });
  await settled();
  const [{ configuration }] = FakePeerConnection.all;
  assert.deepEqual([configuration.iceServers, configuration.iceTransportPolicy], [customServers, 'relay']);
});
