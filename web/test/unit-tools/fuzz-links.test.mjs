// Tests which declarations the fuzz package lacks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingFiles } from '../../../scripts/fuzz-links.mjs';

const links = new Map([['Fuzz/Sources/Wire', 'Sources/Wire'], ['Fuzz/Sources/Server/Settings', 'Sources/Server/Settings']]);

/** Returns the faults of a server with this file in a linked folder, and another one beside it. */
function faults(linked, other) {
  const sources = {
    'Sources/Wire/Reader.swift': 'public struct Reader {}',
    'Sources/Server/Settings/Setting.swift': 'struct Setting {\n    var port = 1\n}\n',
    'Sources/Server/Settings/Keys.swift': linked,
    'Sources/Server/Other.swift': other,
    'Sources/Broadcasting/Other.swift': other,
  };
  return missingFiles({ links, files: Object.keys(sources), read: (file) => sources[file] ?? '' });
}

test('a type or function of a file that is not linked is found', () => {
  const [fault, ...others] = faults('let path = TokenFile.path\n', 'import Foundation\n@frozen public enum TokenFile {}\n');
  assert.match(fault, /Keys\.swift uses TokenFile of Sources\/Server\/Other\.swift, which Fuzz\/Sources\/Server does not link/);
  assert.deepEqual(others, []);
  assert.equal(faults('let value = parsed()\n', 'func parsed() {}\n').length, 1);
});

test('types and static members in extensions of linked types are found', () => {
  const other = 'extension Setting {\n    static let keys: [Setting] = []\n    struct Range {}\n    func text() {}\n}\n';
  assert.equal(faults('let all = Setting.keys\n', other).length, 1);
  assert.equal(faults('let all = Setting.Range()\n', other).length, 1);
  assert.deepEqual(faults('let all = setting.text()\n', other), [], 'other types have members of the same name');
  assert.deepEqual(faults('let all = keys\n', other.replace('Setting {', 'Server {')), []);
});

test('names in comments and texts, and those that linked files declare, are no faults', () => {
  const other = 'struct TokenFile {}\nstruct Reader {}\n';
  assert.deepEqual(faults('// TokenFile\nlet text = "TokenFile \\(Reader())"\nlet reader = Reader()\n', other), []);
  assert.deepEqual(faults('private struct TokenFile {}\nlet file = TokenFile()\n', other), []);
});

test('a name after a text with two slashes is found', () => {
  assert.equal(faults('let rule = Rule("an https:// URL", { TokenFile($0) }) // ends\n', 'struct TokenFile {}\n').length, 1);
});
