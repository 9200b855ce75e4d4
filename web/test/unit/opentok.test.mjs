import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { serverOf, socketOf } from '../../opentok/address.js';
import { hasMediaProcessorSupport, processorOf, setFilter } from '../../opentok/filters.js';
import { styleOf, validStyle } from '../../opentok/interface.js';
import { makeOT } from '../../opentok/ot.js';
import { OpenTokSession } from '../../opentok/session.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeElement, FakeTrack, installPage } from './fake-page.mjs';
import { FakeRoom } from './fake-room.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

/** @type {ReturnType<typeof installPage>} */
let page;
/** @type {FakeRoom} */
let room;

const OT = makeOT('https://chat.example.org/v2/js/opentok.min.js');

beforeEach(() => {
  page = installPage();
  Object.assign(globalThis.document, { createElementNS: (/** @type {string} */ _, /** @type {string} */ name) => new FakeElement(name) });
  room = new FakeRoom();
  FakePeerConnection.all = [];
  FakePeerConnection.network = true;
});

/** @param {(callback: (error?: any) => void) => void} call @returns {Promise<any>} the callback's argument */
const called = (call) => new Promise((resolve) => call(resolve));

/** @param {string} id @param {object} [options] */
function session(id, options = {}) {
  return OpenTokSession.make('1', '1_room', /** @type {any} */ ({ client: room.client(id), rtc: fakeRtc, clock: new FakeClock(), ...options }));
}

/** @param {FakeElement} element @param {string} name @returns {any} the first element inside with this class */
function part(element, name) {
  if (element.className.split(' ').includes(name)) return element;
  return element.children.map((child) => part(child, name)).find(Boolean);
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
    const [ann, ben] = [session('a'), session('b')];
    ann.connect('good');
    ben.connect('good');
    await settled();
    /** @type {any} */
    let stream;
    ben.on('streamCreated', (event) => { stream = event.stream; });
    const publisher = ann.publish(page.element(), { name: 'Ann' });
    await settled();
    const subscriber = ben.subscribe(stream, page.element());
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
