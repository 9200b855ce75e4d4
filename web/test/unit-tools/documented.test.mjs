import { test } from 'node:test';
import assert from 'node:assert/strict';
import { declarations, faults, repeatsName, undescribedTypes } from '../../../scripts/documented.mjs';

const source = `
/// A call between two people.
public enum Call: Sendable {
    /// Nobody answered yet.
    case ringing
    case ended(reason: String)

    public init() {}

    /// The number of devices that ring.
    @inlinable
    public var devices: Int { 0 }
    var hidden: Int { 0 }
    public static func == (left: Call, right: Call) -> Bool { true }
    public var description: String { "" }

    func classify() {
        switch self {
        case .ringing: break
        }
    }
}

package protocol Clock {
    var now: Int { get }
}

extension Call {
    public func end() {}
}
`;

test('finds the public declarations with their comments, but not those that a protocol already defines', () => {
  assert.deepEqual(declarations(source).map(({ name, comment }) => [name, comment]), [
    ['Call', 'A call between two people.'],
    ['ringing', 'Nobody answered yet.'],
    ['ended', ''],
    ['devices', 'The number of devices that ring.'],
    ['Clock', ''],
    ['now', ''],
    ['end', ''],
  ]);
});

test('a comment that only repeats the name is recognized', () => {
  assert.ok(repeatsName('The last packet.', 'lastPacket'));
  assert.ok(repeatsName('Whether it is open.', 'isOpen'));
  assert.ok(!repeatsName('When the last packet arrived.', 'lastPacket'));
  assert.ok(!repeatsName('', 'lastPacket'));
});

test('a type without a sentence about its purpose is found, whatever its access', () => {
  const types = undescribedTypes('/// A clock.\n@MainActor\nfinal class Clock {\n    private enum State { case on }\n    let sql = "class TEXT NOT NULL,"\n}\n');
  assert.deepEqual(types.map(({ name, line }) => [name, line]), [['State', 4]]);
});

test('a falling share fails, a rising one does not', () => {
  const today = { Wire: { documented: 9, total: 10 }, SFU: { documented: 6, total: 10 } };
  assert.deepEqual(faults(today, { Wire: 90, SFU: 50 }), []);
  assert.equal(faults(today, { Wire: 100, SFU: 50 }).length, 1);
});
