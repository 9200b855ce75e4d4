// What `/try` says while a session is being recorded or broadcast.
import assert from 'node:assert/strict';
import test from 'node:test';
import { stringsFor } from '../../app/shared/strings.js';
import { captureWords } from '../../app/try/capture.js';

const words = stringsFor(['en']).strings.session;
const none = { isRecorded: false, isBroadcast: false, asksConsent: false, asksBroadcastConsent: false };

test('the status says that the session is being recorded, broadcast, or both', () => {
  assert.deepEqual(captureWords(none, words), { status: '', question: null });
  assert.equal(captureWords({ ...none, isRecorded: true }, words).status, words.recorded);
  assert.equal(captureWords({ ...none, isBroadcast: true }, words).status, words.broadcast);
  assert.equal(captureWords({ ...none, isRecorded: true, isBroadcast: true }, words).status, words.recordedAndBroadcast);
});

test('the question about a recording comes before that about a broadcast', () => {
  const both = { isRecorded: true, isBroadcast: true, asksConsent: true, asksBroadcastConsent: true };
  assert.deepEqual(captureWords(both, words).question, { of: 'recording', text: words.askRecording, accept: words.beRecorded });
  const answered = captureWords({ ...both, asksConsent: false }, words);
  assert.deepEqual(answered.question, { of: 'broadcast', text: words.askBroadcast, accept: words.beBroadcast });
  assert.equal(answered.status, words.recordedAndBroadcast);
});
