// What the page `/check` says: a line for each row, one sentence for support, and the report.
import assert from 'node:assert/strict';
import test from 'node:test';
import { allowed } from '../../lib/check/result.js';
import { problemsOf, unmeasured, verdictsOf } from '../../lib/check/verdicts.js';
import { checkStringsFor } from '../../app/check/strings.js';
import { browserOf, lineOf, reportOf, summaryOf } from '../../app/check/words.js';
import { fineFlow, fineResult } from '../unit/check-results.mjs';

const { language, strings } = checkStringsFor(['en']);
const blocked = { udp: 'blocked', tcp: 'blocked', turn: 'notOffered', relay: null, quality: 'noPath', path: null, up: null, down: null, roundTripMs: null };
const summary = (measured) => summaryOf({ ...fineResult, ...measured }, strings);

/** Results in which each finding occurs at least once. */
function* results() {
  yield unmeasured;
  for (const [name, values] of Object.entries(allowed)) {
    for (const value of values) {
      for (const others of [{}, blocked, { ...blocked, udp: 'notOffered' }, { ...blocked, address: '10.0.0.5:40000' }, { ...blocked, address: '10.0.0.5:40000', udp: 'notOffered' }]) {
        yield { ...fineResult, ...others, [name]: value };
      }
    }
  }
  for (const flow of [{ ...fineFlow, loss: 0.1 }, { ...fineFlow, kbit: 100, isLimited: true }, { ...fineFlow, jitterMs: 90 }]) yield { ...fineResult, up: flow, down: flow };
  yield { ...fineResult, roundTripMs: 800 };
}

test('each finding has words, each problem says what to do, and no words are left over', () => {
  const used = new Set();
  for (const measured of results()) {
    for (const verdict of verdictsOf(measured)) {
      const { says, todo, level } = lineOf(verdict, measured, strings);
      const where = `${verdict.row} ${verdict.code}`;
      used.add(where);
      assert.match(says, /^\S.*[.]$/, where);
      assert.ok(level, where);
      assert.doesNotMatch(says + todo, /undefined|NaN|null/, where);
      const isProblem = verdict.level === 'bad' || verdict.level === 'fair';
      // A consequence of another problem has neither advice nor a part in the sentence.
      if (isProblem && !['blockedToo', 'noPath'].includes(verdict.code)) assert.match(todo, /^\S.*[.]$/, where);
      if (!isProblem) assert.equal(todo, '', where);
    }
    assert.match(summaryOf(measured, strings).sentence, /^[A-Z0-9].*[.]$/);
  }
  const all = Object.entries(strings.check.rows).flatMap(([row, { findings }]) => Object.keys(findings).map((code) => `${row} ${code}`));
  assert.deepEqual(all.filter((where) => !used.has(where)), []);
});

for (const [situation, measured, sentence] of [
  ['everything works', {}, 'Everything works: media travels over UDP, with at least 1.5 Mbit/s up and at least 1.5 Mbit/s down, 0 % loss and 23 ms of delay.'],
  ['the speakers were not tested', { speakers: 'untested', path: 'tcp', udp: 'notOffered' }, 'Everything that was tested works: media travels over TCP, with at least 1.5 Mbit/s up and at least 1.5 Mbit/s down, 0 % loss and 23 ms of delay.'],
  ['nothing was measured', { ...unmeasured }, 'Everything that was tested works, but the quality of the network was not measured.'],
  ['UDP is blocked', { udp: 'blocked', path: 'tcp' }, 'UDP to 203.0.113.7:40000 is blocked.'],
  ['everything is blocked', blocked,
    'Neither UDP nor TCP reaches the server at 203.0.113.7:40000, so there is no audio and video; the site offers no TURN server.'],
  ['the announced address is wrong', { ...blocked, address: '10.0.0.5:40000' }, 'The server announces 10.0.0.5:40000 for media, where it cannot be reached.'],
  ['the TURN credentials are wrong', { turn: 'credentials', relay: null }, 'The TURN server refuses the credentials that the site gave out.'],
  ['there is no camera', { camera: 'missing' }, 'No camera was found.'],
  ['access is denied', { camera: 'refused', microphone: 'refused' }, 'The browser blocks the microphone; the browser blocks the camera.'],
  ['the microphone is muted', { microphone: 'muted' }, 'The microphone is muted.'],
  ['packets are lost', { up: { ...fineFlow, loss: 0.034 } }, '3.4 % of the packets are lost on the upload.'],
  ['both directions are slow', { up: { ...fineFlow, kbit: 300, isLimited: true }, down: { ...fineFlow, kbit: 120, isLimited: true } },
    'The download carries only 120 kbit/s; the upload carries only 300 kbit/s.'],
  ['the WebSocket is not upgraded', { ...unmeasured, host: 'chat.example.org', server: 'noUpgrade' }, 'The server chat.example.org answers over HTTP, but no WebSocket can be opened.'],
  ['there are more than three problems', { ...blocked, camera: 'missing', microphone: 'silent', speakers: 'silent' },
    'Neither UDP nor TCP reaches the server at 203.0.113.7:40000, so there is no audio and video; the microphone is silent; no camera was found.'],
]) {
  test(`the sentence if ${situation}`, () => assert.equal(summary(measured).sentence, sentence));
}

test('the advice is that for the worst problem', () => {
  assert.equal(summary({}).todo, '');
  assert.equal(summary({ camera: 'missing', udp: 'blocked' }).todo, strings.check.rows.camera.findings.missing.todo);
});

test('a report has the sentence, all rows and the link', () => {
  const text = reportOf(fineResult, 'https://chat.example.org/check#result=x', strings, language);
  const lines = text.split('\n');
  assert.match(lines[0], /^Check of chat\.example\.org on .*UTC, in Chrome 156$/);
  assert.equal(lines[1], summary({}).sentence);
  assert.equal(lines.filter((line) => line.startsWith('- ')).length, Object.keys(strings.check.rows).length);
  assert.ok(lines.includes('- TURN server: Good. Works over TLS. It is used where nothing else works.'), text);
  assert.equal(lines.at(-1), 'https://chat.example.org/check#result=x');
});

test('what the server does not offer is not called untested', () => {
  const levels = (measured) => verdictsOf(measured).map((verdict) => lineOf(verdict, measured, strings).level);
  assert.equal(levels({ ...fineResult, turn: 'notOffered' })[6], 'Not offered');
  assert.equal(levels(unmeasured)[6], 'Not tested');
});

test('a row with a problem that only follows from another one is not in the sentence', () => {
  const measured = { ...fineResult, ...blocked };
  const silent = problemsOf(verdictsOf(measured)).filter((verdict) => lineOf(verdict, measured, strings).short === '').map(({ row }) => row);
  assert.deepEqual(silent, ['tcp', 'up', 'down']);
});

test('browsers are named by their own name', () => {
  const chrome = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36';
  for (const [userAgent, name] of [
    [chrome, 'Chrome 156'], [`${chrome} Edg/156.0.0.0`, 'Edge 156'], [`${chrome} OPR/120.0.0.0`, 'Opera 120'],
    [chrome.replace('Chrome', 'HeadlessChrome'), 'Chrome 156'],
    ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox 140'],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1', 'Safari 19'],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.1 Safari/605.1.15', 'Safari 19'],
    ['curl/8', ''], ['', ''],
  ]) assert.equal(browserOf(userAgent), name, userAgent);
});
