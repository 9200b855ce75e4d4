// Camera and microphone of a room, with the real SDK and a fake browser: changing them, and what happens if that fails.
import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { Preview } from '../../app/shared/preview.js';
import { stringsFor } from '../../app/shared/strings.js';
import { settled } from '../unit/fake-clock.mjs';
import { FakeElement, installPage } from '../unit/fake-page.mjs';

class FakeSelect extends FakeElement {
  get value() {
    return (this.children.find(({ selected }) => selected) ?? this.children[0])?.value ?? '';
  }

  set value(value) {
    for (const option of this.children) option.selected = option.value === value;
  }
}

let devices;
let told;
let kept;
let pickers;
let preview;

beforeEach(() => {
  const page = installPage();
  const window = { isSecureContext: true, addEventListener() {} };
  Object.assign(globalThis, { window, HTMLElement: FakeElement, HTMLSelectElement: FakeSelect });
  devices = page.devices;
  // Nothing measures the level before a gesture.
  globalThis.navigator.userActivation = { hasBeenActive: false };
  pickers = { camera: new FakeSelect('select'), microphone: new FakeSelect('select') };
  for (const [id, element] of Object.entries({ ...pickers, you: new FakeElement('div'), 'camera-picker': new FakeElement('label'), level: new FakeElement('span') })) {
    element.style.setProperty = () => {};
    page.body.append(Object.assign(element, { id }));
  }
  told = [];
  kept = {};
  const memory = { recall: () => kept, remember: (change) => Object.assign(kept, change) };
  preview = new Preview(stringsFor(['en']).strings, (event) => told.push(event), memory, { keepsLost: true });
});

async function opened() {
  preview.open({ camera: true, muted: false, cameraOff: false });
  await settled();
  assert.deepEqual(told.splice(0), [{ type: 'mediaOn', camera: true }]);
}

async function pick(kind, deviceId) {
  pickers[kind].value = deviceId;
  pickers[kind].happen('change');
  await settled();
  return told.splice(0);
}

const busy = () => Object.assign(new Error('in use'), { name: 'NotReadableError' });
const missing = () => Object.assign(new Error('none'), { name: 'OverconstrainedError' });

test('another camera is taken and remembered, and a lost one is over with it', async () => {
  await opened();
  assert.equal(pickers.camera.value, 'front');
  assert.deepEqual(await pick('camera', 'back'), [{ type: 'mediaBack', kind: 'video' }]);
  assert.deepEqual([preview.publisher.getVideoSource().deviceId, kept.camera, pickers.camera.value], ['back', 'back', 'back']);
});

test('a camera that cannot be opened is told, and the one before goes on and stays chosen', async () => {
  await opened();
  devices.refuse = missing;
  assert.deepEqual((await pick('camera', 'back')).map(({ type }) => type), ['cameraFailed']);
  assert.deepEqual([preview.publisher.getVideoSource().track.readyState, kept.camera, pickers.camera.value], ['live', 'front', 'front']);
});

test('a camera that was stopped for another one, which then failed, is lost', async () => {
  await opened();
  devices.refuse = busy;
  assert.deepEqual((await pick('camera', 'back')).map(({ type, kind }) => [type, kind]), [['mediaLost', 'video'], ['cameraFailed', undefined]]);
  assert.equal(preview.publisher.isDestroyed, false, 'the microphone goes on');
});

test('the camera is turned on again with any device if the saved one is gone', async () => {
  await opened();
  kept.camera = 'gone';
  devices.refuse = ({ video }) => (video?.deviceId?.exact === 'gone' ? missing() : null);
  preview.addCamera();
  await settled();
  assert.deepEqual(told, [{ type: 'mediaOn', camera: true }]);
});
