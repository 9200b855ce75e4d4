// Camera and microphone of a call, with the real SDK and a fake browser.
import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { Media } from '../../app/nearby/media.js';
import { stringsFor } from '../../app/shared/strings.js';
import { settled } from '../unit/fake-clock.mjs';
import { FakeElement, installPage } from '../unit/fake-page.mjs';

let devices;
let reported;
let plugIn;
let media;

beforeEach(() => {
  const page = installPage();
  Object.assign(globalThis, { window: { isSecureContext: true }, HTMLElement: FakeElement });
  page.body.append(Object.assign(new FakeElement('div'), { id: 'you' }));
  devices = page.devices;
  devices.addEventListener = (name, listener) => { if (name === 'devicechange') plugIn = listener; };
  reported = [];
  media = new Media(stringsFor(['en']).strings, (event) => reported.push(event), { recall: () => ({}), remember() {} });
});

/** Opens camera and microphone, and returns the track of one kind. */
async function opened(camera, kind) {
  media.open(camera);
  await settled();
  assert.deepEqual(reported.splice(0), [{ type: 'mediaOn', camera }]);
  return devices.given.find((track) => track.kind === kind);
}

const missing = () => Object.assign(new Error('none'), { name: 'NotFoundError' });

test('the only microphone, when unplugged, is reported missing and used again when it is back', async () => {
  const microphone = await opened(false, 'audio');
  const { publisher } = media;
  media.mute(true);
  devices.refuse = missing;
  microphone.end();
  await settled();
  assert.deepEqual(reported.splice(0), [{ type: 'mediaLost', kind: 'audio' }]);
  assert.deepEqual([media.publisher, publisher.isDestroyed], [publisher, false], 'the call keeps its publisher');
  await plugIn();
  await settled();
  assert.deepEqual(reported, [], 'another device is ignored');
  devices.refuse = () => null;
  plugIn();
  await settled();
  assert.deepEqual(reported, [{ type: 'mediaBack' }]);
  assert.notEqual(publisher.getAudioSource(), microphone);
  assert.deepEqual([publisher.getAudioSource().readyState, publisher.getAudioSource().enabled], ['live', false], 'stays muted');
  const asked = devices.asked.length;
  plugIn();
  await settled();
  assert.equal(devices.asked.length, asked, 'nothing unneeded is requested');
});

test('another microphone is used at once', async () => {
  const microphone = await opened(true, 'audio');
  microphone.end();
  await settled();
  assert.deepEqual(reported.map(({ type }) => type), ['mediaBack']);
});

test('camera and microphone unplugged together: the camera waits until the user turns it on', async () => {
  const camera = await opened(true, 'video');
  const microphone = devices.given.find(({ kind }) => kind === 'audio');
  devices.refuse = missing;
  microphone.stop();
  camera.end();
  microphone.end();
  await settled();
  assert.deepEqual(reported.splice(0).map(({ kind }) => kind), ['video', 'audio']);
  devices.refuse = () => null;
  plugIn();
  await settled();
  assert.deepEqual([reported.splice(0).map(({ type }) => type), media.publisher.isDestroyed], [['mediaBack'], false]);
  assert.equal(devices.asked.at(-1).video, false);
  await media.addCamera();
  assert.deepEqual([reported, media.publisher.getVideoSource().track.readyState], [[{ type: 'mediaOn', camera: true }], 'live']);
});

test('a call that ends without a microphone stops waiting for one', async () => {
  const microphone = await opened(false, 'audio');
  devices.refuse = missing;
  microphone.end();
  await settled();
  media.close();
  devices.refuse = () => null;
  const asked = devices.asked.length;
  plugIn();
  await settled();
  assert.deepEqual([devices.asked.length, reported.length], [asked, 1]);
});
