import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { OT } from '../../lib/ot.js';
import { settled } from './fake-clock.mjs';
import { FakeTrack, installPage } from './fake-page.mjs';

/** @type {ReturnType<typeof installPage>} */
let page;

beforeEach(() => {
  page = installPage();
});

/**
 * @param {(callback: (error?: any) => void) => void} call
 * @returns {Promise<any>} the callback's argument */
const called = (call) => new Promise((resolve) => call(resolve));

describe('A publisher', () => {
  test('reports a denied camera with OpenTok’s error, and removes itself from the page', async () => {
    page.devices.refuse = () => Object.assign(new Error('no'), { name: 'NotAllowedError' });
    const target = page.element();
    /** @type {string[]} */
    const reported = [];
    const error = await called((callback) => OT.initPublisher(target, { insertMode: 'append' }, callback)
      .on('accessDenied destroyed', (event) => reported.push(event.type)));
    assert.deepEqual([error.name, error.code], ['OT_USER_MEDIA_ACCESS_DENIED', 1500]);
    assert.deepEqual(reported, ['accessDenied', 'destroyed']);
    assert.deepEqual(target.children, []);
  });

  test('publishes audio only without a camera', async () => {
    page.devices.devices = page.devices.devices.filter(({ kind }) => kind !== 'videoinput');
    page.devices.refuse = ({ video }) => (video ? Object.assign(new Error('none'), { name: 'NotFoundError' }) : null);
    const publisher = OT.initPublisher(page.element(), {});
    await settled();
    assert.equal(publisher.accessAllowed, true);
    assert.equal(publisher.getVideoSource().track, null);
    assert.ok(publisher.getAudioSource());
  });

  test('destroyed while the browser asks does not turn the camera on', async () => {
    let decide = () => {};
    page.devices.decision = new Promise((resolve) => { decide = () => resolve(); });
    const publisher = OT.initPublisher(page.element());
    publisher.destroy();
    decide();
    await settled();
    assert.deepEqual(page.devices.given.map(({ readyState }) => readyState), ['ended', 'ended']);
  });

  test('shows its own tracks and leaves them running', async () => {
    const track = new FakeTrack('video');
    const publisher = OT.initPublisher(page.element(), { videoSource: track, audioSource: null });
    await settled();
    assert.deepEqual(page.devices.asked, []);
    assert.deepEqual([publisher.getVideoSource().type, publisher.getVideoSource().track], ['custom', track]);
    publisher.destroy();
    assert.equal(track.readyState, 'live');
  });

  test('reports an unplugged camera, and ends with its last track if there is no other microphone', async () => {
    const publisher = OT.initPublisher(page.element());
    await settled();
    /** @type {string[]} */
    const events = [];
    publisher.on({
      mediaStopped: ({ track }) => events.push(`${track.kind} stopped`), mediaLost: ({ kind }) => events.push(`${kind} lost`),
      destroyed: () => events.push('destroyed'),
    });
    page.devices.refuse = () => Object.assign(new Error('none'), { name: 'NotFoundError' });
    const [voice, picture] = page.devices.given;
    picture.end();
    assert.deepEqual(events.splice(0), ['video stopped', 'video lost']);
    voice.end();
    await settled();
    assert.deepEqual(events, ['audio stopped', 'audio lost', 'destroyed']);
  });

  test('takes the default microphone when a headset is unplugged, and stays muted', async () => {
    const publisher = OT.initPublisher(page.element(), { audioSource: 'headset', publishAudio: false });
    await settled();
    /** @type {any} */
    let reported;
    publisher.on('audioInputDeviceChanged', ({ device }) => { reported = device; });
    publisher.on('mediaLost', () => assert.fail('there is another one'));
    const [headset] = page.devices.given;
    headset.end();
    await settled();
    assert.equal(reported.deviceId, 'mic');
    assert.deepEqual([publisher.getAudioSource()?.readyState, publisher.getAudioSource()?.enabled], ['live', false]);
    assert.notEqual(publisher.getAudioSource(), headset);
    assert.deepEqual(page.devices.asked.at(-1), { audio: {}, video: false });
  });

  test('waits for another microphone while it sends video, and asks for none after the program has chosen', async () => {
    /** @type {() => void} */
    let plugIn = () => {};
    Object.assign(page.devices, { addEventListener: (/** @type {string} */ _, /** @type {() => void} */ listener) => { plugIn = listener; } });
    const publisher = OT.initPublisher(page.element());
    await settled();
    page.devices.refuse = () => Object.assign(new Error('none'), { name: 'NotFoundError' });
    page.devices.given[0].end();
    await settled();
    assert.equal(publisher.isDestroyed, false);
    page.devices.refuse = () => null;
    plugIn();
    await settled();
    assert.equal(publisher.getAudioSource()?.readyState, 'live');
    const asked = page.devices.asked.length;
    plugIn();
    await settled();
    assert.equal(page.devices.asked.length, asked);
  });

  test('leaves a track of the program to the program', async () => {
    const track = new FakeTrack('audio');
    const publisher = OT.initPublisher(page.element(), { audioSource: track, videoSource: new FakeTrack('video') });
    await settled();
    track.end();
    await settled();
    assert.deepEqual([page.devices.asked, publisher.isDestroyed], [[], false]);
  });

  test('keeps running without devices if the program wants that', async () => {
    const publisher = OT.initPublisher(page.element(), { videoSource: null });
    await settled();
    publisher.on('mediaLost', (event) => event.preventDefault());
    page.devices.refuse = () => Object.assign(new Error('none'), { name: 'NotFoundError' });
    page.devices.given[0].end();
    await settled();
    assert.equal(publisher.isDestroyed, false);
  });

  test('sets its hint on every video track', async () => {
    const publisher = OT.initPublisher(page.element(), { videoContentHint: 'detail' });
    await settled();
    const hint = () => /** @type {any} */ (publisher.getVideoSource().track).contentHint;
    assert.deepEqual([hint(), publisher.getVideoContentHint()], ['detail', 'detail']);
    await publisher.cycleVideo();
    assert.equal(hint(), 'detail');
    publisher.setVideoContentHint('motion');
    assert.deepEqual([hint(), publisher.getVideoContentHint()], ['motion', 'motion']);
    assert.equal(OT.initPublisher(page.element()).getVideoContentHint(), '');
    await settled();
  });

  test('replaces the target by default, and is inserted where requested', async () => {
    const target = page.element();
    target.id = 'me';
    const replaced = OT.initPublisher('me', { width: '100%', height: 120, fitMode: 'contain', label: 'You' });
    assert.equal(replaced.element, target);
    assert.deepEqual([target.style.width, target.style.height], ['100%', '120px']);
    const [video] = target.children[0].children;
    assert.deepEqual([video.style.objectFit, video.attributes['aria-label'], video.muted], ['contain', 'You', true]);
    assert.equal(video.style.transform, 'scaleX(-1)');
    const beside = OT.initPublisher(target, { insertMode: 'after' });
    assert.equal(page.body.children[1], beside.element);
    const none = OT.initPublisher({ insertDefaultUI: false });
    assert.equal(none.element, undefined);
    await settled();
  });

  test('throws if the element does not exist', () => {
    assert.throws(() => OT.initPublisher('nowhere'), /No element has the id "nowhere"/);
  });
});
