// What `/try` says when a session ends.
import assert from 'node:assert/strict';
import test from 'node:test';
import { stringsFor } from '../../app/shared/strings.js';
import { claimsOf, endingWords } from '../../app/try/ending.js';

const words = stringsFor(['en']).strings.session;
const token = (/** @type {object} */ claims) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;

test('every end of a session says what happened and what to do next', () => {
  const match = claimsOf(token({ iss: '1', match: 'm' }));
  const plain = claimsOf(token({ iss: '1' }));
  for (const [end, expected] of /** @type {[any, string][]} */ ([
    [{ reason: 'clientDisconnected', claims: plain }, ''],
    [{ reason: 'forceDisconnected', claims: plain }, words.putOut],
    [{ reason: 'forceDisconnected', claims: match }, words.tookPlace],
    [{ reason: 'matchEnded', claims: match }, words.over],
    [{ reason: 'networkDisconnected', error: { code: 'replaced', message: 'Elsewhere.' }, claims: plain }, words.replaced],
    [{ reason: 'networkDisconnected', error: { code: 'banned', message: 'You are banned until May.' }, claims: plain }, 'You are banned until May.'],
    [{ reason: 'networkDisconnected', claims: plain }, words.lost],
    [{ reason: 'networkDisconnected', error: null, claims: plain }, words.lost],
  ])) assert.equal(endingWords(end, words), expected);
});

test('a token that is none has no claims', () => {
  for (const text of ['', 'a.b', 'a.!.c', token([]).replace('.', ''), `a.${Buffer.from('null').toString('base64url')}.c`]) assert.deepEqual(claimsOf(text), {});
});
