// Decodes and re-encodes every golden message. Unknown types and missing, unknown or invalid members fail.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { decode, unnumberedTypes } from '../../lib/signaling/messages.js';

const examples = new URL('../../../protocol/examples/', import.meta.url);
const files = readdirSync(examples).filter((name) => name.endsWith('.json'));

/** @param {string} file @returns {'client' | 'server'} */
function directionOf(file) {
  const direction = /^(client|server)-/.exec(file)?.[1];
  assert.ok(direction, `${file} must begin with client- or server-`);
  return /** @type {'client' | 'server'} */ (direction);
}

describe('The golden messages', () => {
  test('exist', () => assert.ok(files.length > 0, `no examples in ${examples.pathname}`));

  for (const file of files) {
    test(`${file} is unchanged after decoding`, () => {
      const direction = directionOf(file);
      const message = JSON.parse(readFileSync(new URL(file, examples), 'utf8'));
      assert.deepEqual(decode(direction, message, { strict: true }), message);
      assert.ok(file.startsWith(`${direction}-${message.type}`), `it holds a ${message.type}`);
      if (direction === 'client') assert.equal(message.seq === undefined, unnumberedTypes.includes(message.type));
    });
  }
});

describe('decode', () => {
  const waiting = { type: 'roulette.waiting', seq: 1, ack: 1 };

  test('returns null for an unknown type', () => assert.equal(decode('server', { type: 'session.soon' }), null));

  test('drops unknown members, and rejects them if strict', () => {
    assert.deepEqual(decode('server', { ...waiting, mood: 'good' }), waiting);
    assert.throws(() => decode('server', { ...waiting, mood: 'good' }, { strict: true }), /roulette\.waiting\.mood/);
  });

  test('names the missing or invalid member', () => {
    assert.throws(() => decode('server', { type: 'roulette.count', seq: 1, re: 1, online: 3 }), /roulette\.count\.waiting must be present/);
    assert.throws(() => decode('server', { type: 'roulette.count', seq: 1, re: 1, online: 3, waiting: 0.5 }), /an integer/);
    assert.throws(() => decode('server', { type: 'roulette.partner', matchId: 'm', state: 'asleep' }), /one of reconnecting, connected/);
  });

  test('keeps the null that ends the candidates, and drops other nulls', () => {
    const end = { type: 'session.negotiate', seq: 1, ack: 0, sessionId: '1_s', from: 'c', candidate: null };
    assert.deepEqual(decode('server', end), end);
    assert.deepEqual(decode('server', { ...waiting, retryAfterMs: null }), waiting);
  });
});
