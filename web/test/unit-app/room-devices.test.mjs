// Camera, microphone and speakers of a room, with the real SDK and a fake browser: changing them, and what happens if that fails.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { Output } from '../../app/room/output.js';
import { Preview } from '../../app/shared/preview.js';
import { roomStringsFor } from '../../app/room/strings.js';
import { stringsFor } from '../../app/shared/strings.js';
import { settled } from '../unit/fake-clock.mjs';
import { FakeElement, installPage } from '../unit/fake-page.mjs';

class FakeSelect extends FakeElement {
  get value() {
    return this.children.find(({ selected }) => selected)?.value ?? '';
  }

  set value(value) {
    for (const option of this.children) option.selected = option.value === value;
  }

  set selectedIndex(index) {
    this.children.forEach((option, at) => { option.selected = at === index; });
  }

  /** A select shows its first option if none is selected. */
  replaceChildren(...options) {
    super.replaceChildren(...options);
    if (options[0] && !options.some(({ selected }) => selected)) options[0].selected = true;
  }
}

let devices;
let reported;
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
  reported = [];
  kept = {};
  const memory = { recall: () => kept, remember: (change) => Object.assign(kept, change) };
  preview = new Preview(stringsFor(['en']).strings, (event) => reported.push(event), memory, { keepsLost: true });
});

async function opened() {
  preview.open({ camera: true, muted: false, cameraOff: false });
  await settled();
  assert.deepEqual(reported.splice(0), [{ type: 'mediaOn', camera: true }]);
}

async function pick(kind, deviceId) {
  pickers[kind].value = deviceId;
  pickers[kind].happen('change');
  await settled();
  return reported.splice(0);
}

/** Disconnects the camera in use, so that only the others remain. */
async function unplugCamera(deviceId) {
  devices.devices = devices.devices.filter((device) => device.deviceId !== deviceId);
  preview.publisher.getVideoSource().track.end();
  await settled();
  return reported.splice(0);
}

const busy = () => Object.assign(new Error('in use'), { name: 'NotReadableError' });
const missing = () => Object.assign(new Error('none'), { name: 'OverconstrainedError' });

test('another camera is taken and remembered, and a lost one is over with it', async () => {
  await opened();
  assert.equal(pickers.camera.value, 'front');
  assert.deepEqual(await pick('camera', 'back'), [{ type: 'mediaBack', kind: 'video' }]);
  assert.deepEqual([preview.publisher.getVideoSource().deviceId, kept.camera, pickers.camera.value], ['back', 'back', 'back']);
});

test('a camera that cannot be opened is reported, and the one before continues and stays chosen', async () => {
  await opened();
  devices.refuse = missing;
  assert.deepEqual((await pick('camera', 'back')).map(({ type }) => type), ['cameraFailed']);
  assert.deepEqual([preview.publisher.getVideoSource().track.readyState, kept.camera, pickers.camera.value], ['live', 'front', 'front']);
});

test('a camera that was stopped for another one, which then failed, is lost', async () => {
  await opened();
  devices.refuse = busy;
  assert.deepEqual((await pick('camera', 'back')).map(({ type, kind }) => [type, kind]), [['mediaLost', 'video'], ['cameraFailed', undefined]]);
  assert.equal(preview.publisher.isDestroyed, false, 'the microphone continues');
});

test('the camera is turned on again with any device if the saved one is gone', async () => {
  await opened();
  kept.camera = 'gone';
  devices.refuse = ({ video }) => (video?.deviceId?.exact === 'gone' ? missing() : null);
  preview.addCamera();
  await settled();
  assert.deepEqual(reported, [{ type: 'mediaOn', camera: true }]);
});

test('after the camera was disconnected, the only one that remains can be chosen', async () => {
  await opened();
  assert.deepEqual(await unplugCamera('front'), [{ type: 'mediaLost', kind: 'video' }]);
  assert.deepEqual([pickers.camera.children.map(({ value }) => value), pickers.camera.value, pickers.camera.disabled], [['back'], '', false]);
  assert.deepEqual(await pick('camera', 'back'), [{ type: 'mediaBack', kind: 'video' }]);
  assert.deepEqual([preview.publisher.getVideoSource().track.readyState, kept.camera], ['live', 'back']);
});

test('after the last camera was disconnected, there is none to choose', async () => {
  await opened();
  devices.devices = devices.devices.filter(({ deviceId }) => deviceId !== 'back');
  await unplugCamera('front');
  assert.deepEqual([pickers.camera.children, pickers.camera.disabled], [[], true]);
});

describe('Speakers', () => {
  const { strings } = roomStringsFor(['en']);
  let picker;
  let player;
  let output;

  /** A player whose changes of device end when the test says so. */
  const playerOf = () => {
    const made = {
      sinkId: '', answers: [],
      setSinkId: (deviceId) => new Promise((resolve, reject) => { made.answers.push({ deviceId, yes: () => { made.sinkId = deviceId; resolve(); }, no: reject }); }),
    };
    return made;
  };

  beforeEach(() => {
    class HTMLMediaElement {}
    HTMLMediaElement.prototype.setSinkId = () => {};
    globalThis.HTMLMediaElement = HTMLMediaElement;
    globalThis.Option = class { constructor(text, value) { Object.assign(this, { text, value, remove() {} }); } };
    picker = Object.assign(new FakeSelect('select'), { id: 'speakers', parentElement: new FakeElement('label') });
    document.body.append(picker);
    player = playerOf();
    output = new Output(strings, preview.devices, () => [player]);
  });

  const choose = (deviceId) => {
    picker.value = deviceId;
    picker.happen('change');
  };
  const offered = () => picker.children.map(({ value }) => value);

  test('the choice of the system is offered first, also where the browser does not list it', async () => {
    await output.list();
    assert.deepEqual([offered(), picker.children[0].text, picker.value], [['', 'speaker'], strings.room.systemSpeakers, '']);
    devices.devices.push({ kind: 'audiooutput', deviceId: 'default', label: 'Default' });
    await output.list();
    assert.deepEqual([offered(), picker.value], [['speaker', 'default'], 'default']);
  });

  test('speakers that cannot be used are no longer shown as chosen', async () => {
    await output.list();
    choose('speaker');
    player.answers[0].no(new Error('unplugged'));
    await settled();
    assert.equal(picker.value, '');
  });

  test('a failure that comes late does not undo a later choice', async () => {
    devices.devices.push({ kind: 'audiooutput', deviceId: 'headphones', label: 'Headphones' });
    await output.list();
    choose('speaker');
    choose('headphones');
    player.answers[1].yes();
    player.answers[0].no(new Error('unplugged'));
    await settled();
    assert.deepEqual([picker.value, player.sinkId, player.answers.length], ['headphones', 'headphones', 2]);
  });
});
