// Files over HTTP: what a failed upload or download says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fetchFile, sendFile } from '../../lib/rooms/room-files.js';

/** @param {Promise<unknown>} promise @returns {Promise<any>} the error that it rejects with */
const rejection = (promise) => promise.then(() => assert.fail('it was not rejected'), (error) => error);

const refusal = JSON.stringify({ code: 'not_found', message: 'There is no such file.', retryable: false });

/**
 * Uploads a file, and lets the request end.
 * @param {'load' | 'error'} end @param {number} [status] @param {string} [responseText]
 */
function uploadThat(end, status = 0, responseText = '') {
  const known = globalThis.XMLHttpRequest;
  const Request = class extends EventTarget {
    upload = new EventTarget();
    status = status;
    responseText = responseText;
    open() {}
    setRequestHeader() {}
    send() {
      this.dispatchEvent(new Event(end));
    }
  };
  globalThis.XMLHttpRequest = /** @type {any} */ (Request);
  try {
    return sendFile('https://here/f1', { fileId: 'f1', path: '/f1', secret: 's1' }, new Blob(['tea']), {});
  } finally {
    globalThis.XMLHttpRequest = known;
  }
}

/** @param {() => Promise<Response>} answer */
async function downloadThat(answer) {
  const known = globalThis.fetch;
  globalThis.fetch = answer;
  try {
    return await fetchFile('https://here/f1', 'k1');
  } finally {
    globalThis.fetch = known;
  }
}

test('an upload resolves when the server has the file, and rejects with the server\'s error', async () => {
  await uploadThat('load', 204);
  assert.equal((await rejection(uploadThat('load', 404, refusal))).code, 'not_found');
  const busy = JSON.stringify({ code: 'rate_limited', message: 'Wait.', retryable: true, retryAfterMs: 2000 });
  const { code, retryable, retryAfterMs } = await rejection(uploadThat('load', 429, busy));
  assert.deepEqual([code, retryable, retryAfterMs], ['rate_limited', true, 2000]);
});

test('an upload that another server refuses, or that breaks, says what to do', async () => {
  for (const error of [await rejection(uploadThat('load', 413, '<html>')), await rejection(uploadThat('error'))]) {
    assert.equal(error.code, 'upload_failed');
    assert.match(error.message, /Try again|send it again/);
  }
});

test('a download that fails speaks of saving, not of sending', async () => {
  const broken = [
    () => Promise.resolve(new Response('<html>', { status: 502 })), () => Promise.reject(new TypeError('network')),
  ];
  for (const answer of broken) {
    const { code, message } = await rejection(downloadThat(answer));
    assert.equal(code, 'download_failed');
    assert.match(message, /save it again/);
  }
  assert.equal((await rejection(downloadThat(() => Promise.resolve(new Response(refusal, { status: 404 }))))).code, 'not_found');
  assert.equal(await (await downloadThat(() => Promise.resolve(new Response('tea')))).text(), 'tea');
});
