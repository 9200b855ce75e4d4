// Picture in Picture of a room, with videos and a document that have nothing else.
import assert from 'node:assert/strict';
import test, { afterEach, beforeEach } from 'node:test';
import { followInPip, hasPip, togglePip } from '../../app/room/pip.js';

beforeEach(() => {
  globalThis.document = {
    pictureInPictureEnabled: true, pictureInPictureElement: null,
    async exitPictureInPicture() { this.pictureInPictureElement = null; },
  };
});
afterEach(() => {
  delete globalThis.document;
});

const video = (members = {}) => ({
  readyState: 2, disablePictureInPicture: false, asked: 0,
  async requestPictureInPicture() {
    this.asked += 1;
    document.pictureInPictureElement = this;
  },
  ...members,
});

test('the button opens a window with the video, and closes it', () => {
  const ann = video();
  togglePip(ann);
  assert.equal(document.pictureInPictureElement, ann);
  togglePip(ann);
  assert.equal(document.pictureInPictureElement, null);
});

test('the window follows to the video that is large now, and only if it is open', () => {
  const [ann, bob] = [video(), video()];
  followInPip(ann);
  assert.equal(ann.asked, 0, 'nobody pressed the button');
  togglePip(ann);
  followInPip(ann);
  assert.equal(ann.asked, 1);
  followInPip(bob);
  assert.equal(document.pictureInPictureElement, bob);
});

test('the window keeps its video while the next one has no frame yet, or nobody is large', () => {
  const ann = video();
  togglePip(ann);
  for (const other of [null, video({ readyState: 0 }), video({ disablePictureInPicture: true })]) followInPip(other);
  assert.equal(document.pictureInPictureElement, ann);
});

test('without a video that can float, the button does nothing', () => {
  for (const other of [null, video({ readyState: 0 }), video({ disablePictureInPicture: true })]) togglePip(other);
  assert.equal(document.pictureInPictureElement, null);
});

test('a window that the user closes at once is no error', async () => {
  togglePip(video({ requestPictureInPicture: () => Promise.reject(new DOMException('closed', 'AbortError')) }));
  document.pictureInPictureElement = video();
  document.exitPictureInPicture = () => Promise.reject(new DOMException('gone', 'InvalidStateError'));
  togglePip(video());
  // An unhandled rejection would fail the test.
  await new Promise(setImmediate);
});

test('the button is there only where pages may float videos', () => {
  assert.equal(hasPip(), true);
  document.pictureInPictureEnabled = false;
  const ann = video();
  togglePip(ann);
  assert.deepEqual([hasPip(), ann.asked], [false, 0]);
  delete document.pictureInPictureEnabled;
  assert.equal(hasPip(), false);
});
