// Tests the QR code of a link. The server draws the code.
import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { showQr } from '../../app/shared/qr.js';
import { settled } from '../unit/fake-clock.mjs';
import { FakeElement, installPage } from '../unit/fake-page.mjs';

/** @type {{url: string, method: string, body: string, answer: (response: object) => void, fail: () => void}[]} */
let asked;
let place;

beforeEach(() => {
  installPage();
  place = new FakeElement('div');
  asked = [];
  globalThis.fetch = (url, { method, body }) => new Promise((resolve, reject) => {
    asked.push({ url, method, body, answer: resolve, fail: () => reject(new TypeError('offline')) });
  });
});

const drawing = (svg) => ({ ok: true, text: async () => svg });
const shown = () => place.children.map(({ src, alt }) => [decodeURIComponent(src), alt]);

test('a link is sent in the body, and its image is shown with an accessible name', async () => {
  showQr(place, 'https://confab.example/nearby#link=ABCD', 'A code');
  assert.deepEqual(asked.map(({ url, method, body }) => [url, method, body]), [['/v1/qr', 'POST', 'https://confab.example/nearby#link=ABCD']]);
  asked[0].answer(drawing('<svg #/>'));
  await settled();
  assert.deepEqual(shown(), [['data:image/svg+xml,<svg #/>', 'A code']]);
});

test('no image is shown for a link that has changed or been removed since the request', async () => {
  showQr(place, 'one', 'One');
  showQr(place, 'two', 'Two');
  asked[1].answer(drawing('2'));
  await settled();
  asked[0].answer(drawing('1'));
  await settled();
  assert.deepEqual(shown(), [['data:image/svg+xml,2', 'Two']]);
  showQr(place, 'three', 'Three');
  showQr(place, '', 'Nothing');
  asked[2].answer(drawing('3'));
  await settled();
  assert.deepEqual(shown(), []);
  assert.equal(asked.length, 3);
});

test('an error response and a lost connection show no image', async () => {
  showQr(place, 'one', 'One');
  asked[0].answer({ ok: false });
  await settled();
  showQr(place, 'two', 'Two');
  asked[1].fail();
  await settled();
  assert.deepEqual(shown(), []);
});
