// What the indicator of the network says.
import assert from 'node:assert/strict';
import test from 'node:test';
import { explain } from '../../app/shared/connection-words.js';
import { stringsFor } from '../../app/shared/strings.js';

const words = stringsFor(['en']).strings.network;
const condition = (networkCondition, networkConditionReason = null, networkDegradationSource = null) => (
  { networkCondition, networkConditionReason, networkDegradationSource });

for (const [whose, given, name, why] of [
  ['mine', condition('good'), 'Your connection: good', words.good.mine],
  ['theirs', condition('good'), 'Connection: good', words.good.theirs],
  ['mine', condition('poor', 'bandwidth', 'local'), 'Your connection: poor', words.upload.bandwidth],
  ['mine', condition('fair', 'device', 'local'), 'Your connection: fair', words.upload.device],
  ['theirs', condition('fair', 'loss', 'remote'), 'Connection: fair', words.remote.loss],
  ['theirs', condition('fair', 'loss', 'local'), 'Connection: fair', words.download.loss],
  ['theirs', condition('poor', 'paused', 'local'), 'Connection: poor', words.download.paused],
  ['theirs', condition('poor', 'reconnecting'), 'Connection: poor', words.download.reconnecting],
  ['theirs', condition('poor', 'something new', 'remote'), 'Connection: poor', words.unknown],
]) {
  test(`${whose} ${JSON.stringify(given)}: ${why}`, () => assert.deepEqual(explain(given, { whose }, words), { name, why }));
}

test('every reason that the SDK gives has a sentence', () => {
  const reasons = {
    mine: { local: ['loss', 'delay', 'bandwidth', 'device', 'paused'] },
    theirs: { local: ['loss', 'delay', 'bandwidth', 'freezes', 'paused'], remote: ['loss', 'delay', 'bandwidth'], null: ['reconnecting'] },
  };
  for (const [whose, sides] of Object.entries(reasons)) {
    for (const [side, all] of Object.entries(sides)) {
      for (const reason of all) {
        assert.notEqual(explain(condition('fair', reason, side === 'null' ? null : side), { whose }, words).why, words.unknown, `${whose} ${side} ${reason}`);
      }
    }
  }
});

test('the name of a person is in the name of their button', () => {
  assert.equal(explain(condition('fair', 'loss', 'remote'), { whose: 'theirs', name: 'Ann' }, words).name, '\u2068Ann\u2069’s connection: fair');
});
