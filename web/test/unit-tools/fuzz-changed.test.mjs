// Tests which fuzz targets a change affects.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { touchedTargets } from '../../../scripts/fuzz-changed.mjs';

const sources = {
  'Fuzz/Sources/FuzzTargets/FuzzTarget.swift': 'public struct FuzzTarget {}\nfunc require() {}',
  'Fuzz/Sources/FuzzTargets/JSON.swift':
    'extension FuzzTarget {\n static let json = FuzzTarget("json", dictionary: "words") { try JSONReader($0) }\n}',
  'Fuzz/Sources/FuzzTargets/STUN.swift':
    'extension FuzzTarget {\n static let stun = FuzzTarget(\n "stun", seeds: ["Tests/Offers"]\n) { STUNMessage($0) }\n}',
  'Sources/Wire/JSONReader.swift': 'public struct JSONReader { let digits: Digits }',
  'Sources/Wire/Digits.swift': 'struct Digits {}',
  'Sources/RTC/STUNMessage.swift': 'public struct STUNMessage {} // not a JSONReader',
  'Sources/RTC/Digits.swift': 'struct Digits {}',
  'Sources/Server/Server.swift': 'struct Server { JSONReader STUNMessage }',
};
const links = new Map([['Fuzz/Sources/Wire', 'Sources/Wire'], ['Fuzz/Sources/RTC', 'Sources/RTC']]);

function touchedBy(...changed) {
  return touchedTargets({ changed, links, files: Object.keys(sources), read: (file) => sources[file] ?? '' });
}

test('a target is affected by its own file and by everything it uses, directly or not', () => {
  assert.deepEqual(touchedBy('Fuzz/Sources/FuzzTargets/JSON.swift'), ['json']);
  assert.deepEqual(touchedBy('Sources/Wire/JSONReader.swift'), ['json']);
  assert.deepEqual(touchedBy('Sources/Wire/Digits.swift'), ['json']);
  assert.deepEqual(touchedBy('Sources/RTC/STUNMessage.swift'), ['stun']);
});

test('a change of shared code affects all targets', () => {
  sources['Fuzz/Sources/FuzzTargets/JSON.swift'] += '\nrequire()';
  sources['Fuzz/Sources/FuzzTargets/STUN.swift'] += '\nrequire()';
  assert.deepEqual(touchedBy('Fuzz/Sources/FuzzTargets/FuzzTarget.swift'), ['json', 'stun']);
});

test('a change of how targets run affects all of them', () => {
  for (const file of ['Fuzz/Package.swift', 'Fuzz/Sources/fuzz/main.swift', 'scripts/fuzz']) {
    assert.deepEqual(touchedBy(file), ['json', 'stun'], file);
  }
});

test('inputs and dictionaries affect the targets with their names', () => {
  assert.deepEqual(touchedBy('Fuzz/Corpora/json/one'), ['json']);
  assert.deepEqual(touchedBy('Fuzz/Findings/stun/crash'), ['stun']);
  assert.deepEqual(touchedBy('Fuzz/Dictionaries/words.dict'), ['json']);
  assert.deepEqual(touchedBy('Tests/Offers/chromium.sdp'), ['stun']);
});

test('nothing else affects a target: a comment, the same name in a module that is not imported, code that is not fuzzed', () => {
  assert.deepEqual(touchedBy('Sources/RTC/Digits.swift', 'Sources/Server/Server.swift', 'README.md'), []);
});
