// Tests `scripts/reachable.mjs` on an invented package.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { faults, products } from '../../../scripts/reachable.mjs';

/** @param {string} name @param {string[]} dependencies @param {object} more */
const target = (name, dependencies = [], more = {}) => ({
  name, type: 'regular', settings: [{ kind: { enableUpcomingFeature: { _0: 'ExistentialAny' } } }],
  dependencies: [...dependencies.map((each) => ({ byName: [each, null] })), { product: ['NIOCore', 'swift-nio', null, null] }],
  ...more,
});

/** @param {Record<string, string[]>} edges planted, by target */
function found(edges = {}) {
  const targets = [
    target('Wire'), target('Confab', ['Wire']), target('ConfabUI', ['Confab']), target('OpenTokCompat', ['ConfabUI']),
    target('AppModel', ['Confab']),
    target('RTC', ['COpenSSL'], { settings: [{ kind: { unsafeFlags: { _0: ['-O'] } } }] }),
    target('COpenSSL', [], { type: 'system' }), target('CSockets'), target('Between', ['RTC']),
  ].map((each) => ({
    ...each, dependencies: [...each.dependencies, ...(edges[each.name] ?? []).map((name) => ({ target: [name, null] }))],
  }));
  return faults({ targets, products: products.map((name) => ({ name, targets: [name] })) }, (folder) => folder === 'Sources/CSockets');
}

describe('What the products for apps reach', () => {
  test('is allowed if it has neither C code, nor unsafe flags, nor a system library', () => {
    assert.deepEqual(found(), []);
  });

  test('must not be C code', () => {
    assert.deepEqual(found({ AppModel: ['CSockets'] }), [
      'The product AppModel must not need CSockets, which has C code: AppModel → CSockets',
    ]);
  });

  test('must not have unsafe flags or be a system library, also through other targets', () => {
    assert.deepEqual(found({ OpenTokCompat: ['Between'] }), [
      'The product OpenTokCompat must not need RTC, which has unsafe flags: OpenTokCompat → Between → RTC',
      'The product OpenTokCompat must not need COpenSSL, which is a system library: OpenTokCompat → Between → RTC → COpenSSL',
    ]);
    assert.equal(found({ Wire: ['RTC'] }).length, 2 * products.length);
  });

  test('is reported if a product is gone', () => {
    assert.deepEqual(faults({ targets: [], products: [] }, () => false), products.map((name) => `There is no product ${name}.`));
  });
});
