// Tests the QR code of a link. The server draws the code.
import assert from 'node:assert/strict';
import test, { beforeEach, mock } from 'node:test';
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

/** A refusal, with the seconds after which to ask again. */
const refusal = (seconds) => ({ ok: false, headers: new Headers(seconds ? { 'Retry-After': String(seconds) } : {}) });
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
  asked[0].answer(refusal());
  await settled();
  showQr(place, 'two', 'Two');
  asked[1].fail();
  await settled();
  assert.deepEqual(shown(), []);
});

test('a drawing that was refused for now is requested again after the time that the server names, and the page says so', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    showQr(place, 'one', 'One', 'In a moment.');
    asked[0].answer(refusal(3));
    await settled();
    assert.deepEqual(place.children.map(({ textContent }) => textContent), ['In a moment.']);
    mock.timers.tick(2999);
    assert.equal(asked.length, 1);
    mock.timers.tick(1);
    assert.equal(asked.length, 2);
    asked[1].answer(drawing('1'));
    await settled();
    assert.deepEqual(shown(), [['data:image/svg+xml,1', 'One']]);
  } finally {
    mock.timers.reset();
  }
});

test('a drawing that was refused for now is not requested again for a link that has changed', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    showQr(place, 'one', 'One', 'In a moment.');
    asked[0].answer(refusal(3));
    await settled();
    showQr(place, 'two', 'Two', 'In a moment.');
    mock.timers.tick(10_000);
    assert.deepEqual(asked.map(({ body }) => body), ['one', 'two']);
  } finally {
    mock.timers.reset();
  }
});
