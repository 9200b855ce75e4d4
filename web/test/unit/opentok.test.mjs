import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { serverOf, socketOf } from '../../opentok/address.js';
import { hasMediaProcessorSupport, processorOf, setFilter } from '../../opentok/filters.js';
import { styleOf, validStyle } from '../../opentok/interface.js';
import { makeOT } from '../../opentok/ot.js';
import { settled } from './fake-clock.mjs';
import { FakeTrack } from './fake-page.mjs';
import { begin, called, OT, page, part, room, session, watching } from './opentok-room.mjs';

beforeEach(begin);

/**
 * Lets a track have constraints, and adds those that are applied to a list.
 * @param {any} track @param {any[]} applied @param {unknown} name
 */
function constrainable(track, applied, name) {
  let current = { width: { max: 640 }, height: { max: 480 } };
  track.getConstraints = () => ({ ...current });
  track.applyConstraints = async (/** @type {any} */ constraints) => {
    current = constraints;
    applied.push([name, constraints]);
  };
}

describe('The address of the server', () => {
  test('is that of the folder from which the script was loaded', () => {
    assert.equal(serverOf('https://chat.example.org/v2/js/opentok.min.js'), 'https://chat.example.org');
    assert.equal(serverOf('https://example.org/video/v2/js/opentok.esm.js?1'), 'https://example.org/video');
    assert.equal(serverOf('https://cdn.example.org/assets/opentok.js'), 'https://cdn.example.org');
    for (const script of [undefined, '', 'file:///home/v2/js/opentok.min.js', 'no address']) assert.equal(serverOf(script), '');
  });

  test('leads to its socket, or to an error that says what to set', () => {
    assert.equal(socketOf('https://example.org/video/'), 'wss://example.org/video/v1/socket');
    assert.equal(socketOf('http://localhost:8080'), 'ws://localhost:8080/v1/socket');
    for (const server of ['', 'ftp://example.org', 'nothing']) assert.throws(() => socketOf(server), { name: 'OT_INVALID_PARAMETER' });
    const other = makeOT(undefined);
    assert.throws(() => other.initSession('1', '1_room'), /apiURL/);
    other.setProxyUrl('https://proxy.example.org');
    assert.equal(other.initSession(1, '1_room').apiKey, '1');
  });
});

describe('A style', () => {
  test('ignores what it does not know', () => {
    assert.deepEqual(validStyle({ nameDisplayMode: 'on', buttonDisplayMode: 'maybe', color: 'red', backgroundImageURI: 7, toString: 'on' }), { nameDisplayMode: 'on' });
    assert.equal(styleOf({}).nameDisplayMode, 'auto');
    const hidden = styleOf({ showControls: false, style: { nameDisplayMode: 'on', backgroundImageURI: 'a.png' } });
    assert.deepEqual([hidden.nameDisplayMode, hidden.buttonDisplayMode, hidden.backgroundImageURI], ['off', 'off', 'a.png']);
  });
});

describe('A filter', () => {
  /** @param {any[]} values what the browser can set */
  const track = (values) => {
    const made = new FakeTrack('video');
    /** @type {any[]} */
    const applied = [];
    Object.assign(made, {
      applied, getCapabilities: () => ({ backgroundBlur: values }), getConstraints: () => ({ width: 640 }),
      applyConstraints: async (/** @type {any} */ constraints) => { applied.push(constraints); },
    });
    return /** @type {any} */ (made);
  };

  test('is the browser\'s own', async () => {
    const able = track([true, false]);
    await setFilter(able, 'video', { type: 'backgroundBlur' }, true);
    await setFilter(able, 'video', { type: 'backgroundBlur' }, false);
    assert.deepEqual(able.applied, [{ width: 640, backgroundBlur: { exact: true } }, { width: 640, backgroundBlur: { exact: false } }]);
  });

  test('fails where the browser has none, and if its type is unknown', async () => {
    await assert.rejects(setFilter(track([false]), 'video', { type: 'backgroundBlur' }, true), { name: 'OT_NOT_SUPPORTED' });
    await assert.rejects(setFilter(null, 'video', { type: 'backgroundBlur' }, true), { name: 'OT_NOT_SUPPORTED' });
    await assert.rejects(setFilter(track([true]), 'video', { type: 'backgroundReplacement' }, true), { name: 'OT_NOT_SUPPORTED' });
    await assert.rejects(setFilter(track([true]), 'video', { type: 'toString' }, true), { name: 'OT_INVALID_PARAMETER' });
    assert.equal(hasMediaProcessorSupport(), false);
    assert.throws(() => processorOf({}), { name: 'OT_INVALID_PARAMETER' });
  });

  test('that the options request and the browser lacks ends the publisher, so that nobody is shown without it', async () => {
    const error = await called((callback) => OT.initPublisher(page.element(), { videoFilter: { type: 'backgroundBlur' } }, callback));
    assert.equal(error.name, 'OT_NOT_SUPPORTED');
    assert.deepEqual(page.devices.given.map(({ readyState }) => readyState), ['ended', 'ended']);
  });
});

describe('A publisher', () => {
  test('has a name and a mute button, and mutes', async () => {
    const target = page.element();
    const publisher = OT.initPublisher(target, { name: '<b>Ann</b>' });
    await settled();
    const [name, mute] = [part(target, 'OT_name'), part(target, 'OT_mute')];
    assert.deepEqual([name.textContent, name.children.length, mute.attributes['aria-label']], ['<b>Ann</b>', 0, 'Mute microphone']);
    mute.happen('click');
    assert.deepEqual([publisher.getAudioSource()?.enabled, mute.attributes['aria-label']], [false, 'Unmute microphone']);
    mute.happen('click');
    assert.equal(publisher.getAudioSource()?.enabled, true);
    publisher.setStyle('nameDisplayMode', 'off').setStyle({ buttonDisplayMode: 'on' });
    assert.deepEqual([publisher.getStyle('nameDisplayMode'), publisher.getStyle().buttonDisplayMode], ['off', 'on']);
    assert.ok(name.className.includes('OT_mode-off'));
  });

  test('shows its initials or a silhouette while it sends no video, and an image instead of both', async () => {
    const [target, other] = [page.element(), page.element()];
    const publisher = OT.initPublisher(target, { initials: '<i>AL', videoSource: null });
    OT.initPublisher(other, { videoSource: null });
    await settled();
    const initials = part(target, 'OT_initials');
    assert.deepEqual([initials.textContent, initials.children.length, initials.parent.className], ['<i>AL', 0, 'OT_video-poster']);
    assert.equal(part(other, 'OT_initials'), undefined);
    assert.equal(part(other, 'OT_video-poster').children[0].tagName, 'svg');
    publisher.setStyle('backgroundImageURI', 'a.png");}');
    const poster = part(target, 'OT_video-poster');
    assert.deepEqual([poster.style.backgroundImage, poster.classList.contains('OT_has-image')], ['url("a.png\\");}")', true]);
    publisher.setStyle({ backgroundImageURI: null });
    assert.deepEqual([poster.style.backgroundImage, poster.classList.contains('OT_has-image')], ['', false]);
  });

  test('has no mute button without a microphone', async () => {
    const target = page.element();
    const publisher = OT.initPublisher(target, { audioSource: null });
    const mute = part(target, 'OT_mute');
    assert.equal(mute.hidden, true);
    await settled();
    await publisher.setAudioSource(/** @type {any} */ (new FakeTrack('audio')));
    assert.equal(mute.hidden, false);
    page.devices.refuse = ({ audio }) => (audio ? Object.assign(new Error('none'), { name: 'NotFoundError' }) : null);
    page.devices.devices = page.devices.devices.filter(({ kind }) => kind === 'videoinput');
    OT.initPublisher('second', {});
    await settled();
    assert.equal(part(page.body, 'OT_publisher') && part(/** @type {any} */ (page.body.children.at(-1)), 'OT_mute').hidden, true);
  });

  test('keeps its preferred size and frame rate for the next camera, within the limits of its options', async () => {
    const publisher = OT.initPublisher(page.element(), { maxResolution: { width: 640, height: 480 } });
    await settled();
    /** @type {any[]} */
    const applied = [];
    for (const [index, track] of page.devices.given.entries()) constrainable(track, applied, index);
    await publisher.setPreferredFrameRate(7);
    await publisher.setPreferredResolution({ width: 320, height: 240 });
    const size = { width: { max: 640, ideal: 320 }, height: { max: 480, ideal: 240 } };
    assert.deepEqual(applied.splice(0), [[1, { width: { max: 640 }, height: { max: 480 }, frameRate: { ideal: 7 } }], [1, { ...size, frameRate: { ideal: 7 } }]]);
    page.devices.opened = (/** @type {any} */ track) => constrainable(track, applied, 'next');
    await publisher.cycleVideo();
    assert.deepEqual(applied, [['next', { ...size, frameRate: { ideal: 7 } }]]);
  });

  test('never shows another camera without the filter of the first', async () => {
    page.devices.opened = (/** @type {any} */ track) => {
      const blurs = track.settings.deviceId === 'front';
      Object.assign(track, {
        getCapabilities: () => (blurs ? { backgroundBlur: [true, false] } : {}), getConstraints: () => ({}), applyConstraints: async () => {},
      });
    };
    const publisher = OT.initPublisher(page.element(), { videoFilter: { type: 'backgroundBlur' } });
    await settled();
    const [, front] = page.devices.given;
    await assert.rejects(publisher.cycleVideo(), { name: 'OT_NOT_SUPPORTED' });
    assert.deepEqual(page.devices.given.map(({ readyState }) => readyState), ['live', 'live', 'ended']);
    assert.equal(publisher.getVideoSource().track, /** @type {any} */ (front));
    assert.deepEqual(publisher.getVideoFilter(), { type: 'backgroundBlur' });
    await publisher.clearVideoFilter();
    assert.deepEqual(await publisher.cycleVideo(), { deviceId: 'back' });
  });

  test('of a screen ends when the user stops sharing, unless the program prevents that', async () => {
    const [one, other] = [OT.initPublisher(page.element(), { videoSource: 'screen' }), OT.initPublisher(page.element(), { videoSource: 'screen' })];
    await settled();
    other.on('mediaStopped', (event) => event.preventDefault());
    for (const publisher of [one, other]) /** @type {any} */ (publisher.getVideoSource().track).end();
    assert.deepEqual([one.isDestroyed, other.isDestroyed], [true, false]);
  });

  test('adds an element if none has the id', async () => {
    const publisher = OT.initPublisher('nowhere', {});
    assert.deepEqual([publisher.element?.id, page.body.children.at(-1)], ['nowhere', publisher.element]);
    assert.equal(OT.initPublisher({ insertDefaultUI: false }).element, undefined);
    await settled();
  });

  test('sends what a connector makes of its camera, also of the next one', async () => {
    const publisher = OT.initPublisher(page.element());
    await settled();
    /** @type {any[]} */
    const [given, made] = [[], []];
    let ended = 0;
    const connector = {
      setTrack: async (/** @type {any} */ track) => {
        given.push(track);
        made.push(new FakeTrack('video'));
        return made.at(-1);
      },
      destroy: () => { ended += 1; },
    };
    await publisher.setVideoMediaProcessorConnector(connector);
    const [, camera] = page.devices.given;
    assert.deepEqual([given, publisher.getVideoSource().track, publisher.getVideoSource().type], [[camera], camera, 'camera']);
    const video = part(/** @type {any} */ (publisher.element), 'OT_video-element');
    const shown = () => video.srcObject.getTracks().filter((/** @type {any} */ { kind }) => kind === 'video');
    assert.deepEqual(shown(), [made[0]]);
    assert.deepEqual(await publisher.cycleVideo(), { deviceId: 'back' });
    assert.deepEqual([given.length, shown(), camera.readyState], [2, [made[1]], 'ended']);
    await publisher.setVideoMediaProcessorConnector(null);
    assert.deepEqual([ended, shown()], [1, [publisher.getVideoSource().track]]);
  });
});

describe('A session', () => {
  test('makes publishers and subscribers with the default interface', async () => {
    const { ann, ben, publisher, stream, subscriber } = await watching();
    await settled();
    assert.equal(part(subscriber.element, 'OT_name').textContent, 'Ann');
    assert.deepEqual([ann.getPublisherForStream(publisher.stream), ben.getSubscribersForStream(stream)], [publisher, [subscriber]]);
    part(subscriber.element, 'OT_mute').happen('click');
    assert.equal(part(subscriber.element, 'OT_video-element').muted, true);
    await assert.rejects(subscriber.subscribeToCaptions(true), { name: 'OT_NOT_SUPPORTED' });
    assert.equal(subscriber.isSubscribedToCaptions(), false);
    const refusal = await called((callback) => ben.subscribe(undefined, page.element(), {}, callback));
    assert.equal(refusal.name, 'OT_INVALID_PARAMETER');
  });

  test('describes a stream with its initials and frame rate', async () => {
    const [ann, ben] = [session('a'), session('b')];
    ann.connect('good');
    ben.connect('good');
    await settled();
    ann.publish(page.element(), { initials: 'Ada Lovelace', frameRate: 15 });
    ann.publish(page.element(), /** @type {any} */ ({ initials: 7, frameRate: NaN }));
    /** @type {any[]} */
    const streams = [];
    ben.on('streamCreated', ({ stream }) => streams.push(stream));
    await settled();
    assert.deepEqual(streams.map(({ initials, frameRate }) => [initials, frameRate]), [['Ada Love', 15], ['', undefined]]);
    const subscriber = ben.subscribe(streams[0], page.element());
    assert.equal(part(subscriber.element, 'OT_initials').textContent, 'Ada Love');
    assert.equal(OT.subscribers.find(({ stream }) => stream === streams[0]), subscriber);
    assert.equal(OT.subscribers.find(({ id }) => id === 'none'), undefined);
    assert.ok(OT.subscribers.find());
    await settled();
  });

  test('removes its subscribers when a stream or the session ends, unless the program prevents that', async () => {
    const [ann, ben] = [session('a'), session('b')];
    ann.connect('good');
    ben.connect('good');
    await settled();
    /** @type {any[]} */
    const subscribers = [];
    let keeps = false;
    ben.on({
      streamCreated: ({ stream }) => subscribers.push(ben.subscribe(stream, page.element())),
      streamDestroyed: (event) => { if (keeps) event.preventDefault(); },
      sessionDisconnected: (event) => { if (keeps) event.preventDefault(); },
    });
    const isShown = () => subscribers.map(({ element }) => element.isConnected);
    const publishers = [1, 2, 3].map(() => ann.publish(page.element(), {}));
    await settled();
    ann.unpublish(publishers[0]);
    await settled();
    keeps = true;
    ann.unpublish(publishers[1]);
    await settled();
    assert.deepEqual(isShown(), [false, true, true]);
    await ben.disconnect();
    assert.deepEqual(isShown(), [false, true, true]);
    for (const subscriber of subscribers) ben.unsubscribe(subscriber);
    assert.deepEqual(isShown(), [false, false, false]);
  });

  test('shows on publishers that the session is recorded', async () => {
    const { ann, publisher } = await watching({ mode: 'routed' });
    await settled();
    const mark = part(/** @type {any} */ (publisher.element), 'OT_archiving');
    assert.equal(mark.classList.contains('OT_archiving-off'), true);
    room.clients[0].tell({ type: 'session.archiveStarted', sessionId: '2_room', archiveId: 'x' });
    await settled();
    assert.deepEqual([mark.classList.contains('OT_archiving-on'), mark.classList.contains('OT_archiving-off')], [true, false]);
    const second = ann.publish(page.element(), { name: 'Screen' });
    await settled();
    assert.equal(part(/** @type {any} */ (second.element), 'OT_archiving').classList.contains('OT_archiving-on'), true, 'one that is published later');
    room.clients[0].tell({ type: 'session.archiveStopped', sessionId: '2_room', archiveId: 'x' });
    await settled();
    assert.deepEqual([mark.classList.contains('OT_archiving-on'), mark.classList.contains('OT_archiving-off')], [false, true]);
  });

  test('shows that the network is too slow for a video, in the order of OpenTok\'s events', async () => {
    const { stream, subscriber } = await watching({ mode: 'routed' });
    /** @type {string[]} */
    const events = [];
    for (const name of ['videoDisableWarning', 'videoDisableWarningLifted', 'videoDisabled', 'videoEnabled']) {
      subscriber.on(name, (/** @type {any} */ { type, reason }) => events.push(reason ? `${type} ${reason}` : type));
    }
    await settled();
    const notice = part(subscriber.element, 'OT_video-disabled-indicator');
    /** @type {[object, string, RegExp][]} the message of the server, the event, and the notice */
    const steps = [
      [{ videoPaused: false, warning: true }, 'videoDisableWarning', /may stop/],
      [{ videoPaused: false, warning: false }, 'videoDisableWarningLifted', /^$/],
      [{ videoPaused: false, warning: true }, 'videoDisableWarning', /may stop/],
      [{ videoPaused: true, warning: false }, 'videoDisabled quality', /has stopped/],
      [{ videoPaused: false }, 'videoEnabled quality', /^$/],
    ];
    for (const [message, event, text] of steps) {
      room.clients[1].tell({ type: 'session.subscriptionChanged', sessionId: '2_room', streamId: stream.streamId, reason: 'slow', ...message });
      await settled();
      assert.deepEqual(events.splice(0), [event]);
      assert.match(notice.textContent, text);
      assert.notEqual(notice.hidden, true, 'a hidden element would not be announced');
      assert.equal(subscriber.element?.classList.contains('OT_audio-only'), event === 'videoDisabled quality');
    }
  });

  test('sends and receives nothing more after the program has set an encryption secret', async () => {
    const made = session('a');
    made.connect('good');
    await settled();
    await assert.rejects(made.setEncryptionSecret('a secret'), { name: 'OT_NOT_SUPPORTED' });
    const error = await called((callback) => made.publish(page.element(), {}, callback));
    assert.deepEqual([error.name, error.code], ['OT_NOT_SUPPORTED', 1013]);
    assert.deepEqual(room.clients[0].askedFor('session.publish'), []);
  });

  test('with an encryption secret does not connect', async () => {
    for (const made of [session('a', { encryptionSecret: 'a secret' }), session('b')]) {
      await assert.rejects(made.setEncryptionSecret('a secret'), { name: 'OT_NOT_SUPPORTED' });
      const error = await called((callback) => made.connect('good', callback));
      assert.deepEqual([error.name, made.isConnected()], ['OT_NOT_SUPPORTED', false]);
    }
    assert.deepEqual(room.clients.flatMap(({ asked }) => asked), []);
  });

  test('takes an ICE configuration only before it connects', async () => {
    const made = session('a');
    await made.setIceConfig({ transportPolicy: 'relay' });
    made.connect('good');
    await settled();
    await assert.rejects(made.setIceConfig({}), { name: 'OT_NOT_SUPPORTED' });
  });
});
