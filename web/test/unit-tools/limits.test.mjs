// Tests the check of docs/limits.md.
import assert from 'node:assert/strict';
import test from 'node:test';
import { faults, names, numbers, valuesOf } from '../../../scripts/limits.mjs';

const page = `
| resource | limits | counted by |
| --- | --- | --- |
| transfers | \`limits.transfers\`, \`Transfers.maxCount\` | \`Transfers.begin\` (\`Sources/Server/Gateway/Transfers.swift\`) |

| limit | default | counts | reason |
| --- | --- | --- | --- |
| \`limits.transfers\` | 400 | uploads and downloads | memory |
| \`limits.rate\` | 16KiB | their speed | memory |
| (\`Transfers.maxCount\`, \`minTime\`) | 3, 60 s | the same | memory |
`;
const sources = new Map([
  ['Sources/Server/Configuration/Setting.swift', 'Setting(\n    "limits.transfers", 1)\nSetting("limits.rate", 2)\nSetting("log.level", 3)'],
  ['Sources/Server/Gateway/Transfers.swift', 'struct Transfers {\n    static let maxCount = 3\n    static let minTime: Duration = .seconds(60)\n    func begin() {}\n}'],
]);
const found = (change) => faults({ page, sources, ...change });
const without = (text) => page.split('\n').filter((line) => !line.includes(text)).join('\n');

test('a page that names what the code counts has no faults', () => {
  assert.deepEqual(found({}), []);
  assert.deepEqual(numbers('4 MiB/s, 10s, 0B'), [4 << 20, 10, 0]);
  assert.deepEqual(names('(`Rules.joins`, `maxTalk`) `rooms.lobby`'), { settings: ['rooms.lobby'], constants: ['Rules.joins', 'Rules.maxTalk'] });
  const texts = ['4 << 20', '2 * 1_024', '.milliseconds(300)', 'Budget.Rate(perSecond: 0.5, burst: 30)', 'Budget.Rate(perMinute: 6)'];
  assert.deepEqual(texts.map(valuesOf), [[4 << 20], [2048], [0.3], [0.5, 30], [6]]);
});

test('what is not in the code is a fault', () => {
  assert.deepEqual(found({ page: page.replaceAll('limits.rate', 'limits.pace') }).slice(0, 1), ['There is no setting limits.pace.']);
  assert.deepEqual(found({ page: page.replace('minTime', 'minWait') }), ['There is no constant Transfers.minWait.']);
  assert.deepEqual(found({ page: page.replace('Transfers.begin', 'Transfers.start') }), ['Sources/Server/Gateway/Transfers.swift has no Transfers.start.']);
  assert.deepEqual(found({ page: page.replace('60 s', '50 s') }), ['Transfers.maxCount,Transfers.minTime: the page says 3, 50 s, the code 3,60.']);
});

test('what is in the code and not on the page is a fault', () => {
  assert.deepEqual(found({ page: without('16KiB') }), ['The page does not name the setting limits.rate.']);
  const rules = new Map([...sources, ['Sources/Signaling/Rules.swift', 'struct Rules {\n    var talk = Budget.Rate(perSecond: 2, burst: 9)\n}']]);
  assert.deepEqual(found({ sources: rules }), ['The page does not name Rules.talk.']);
  const more = new Map([...sources, ['Sources/Signaling/Lobby.swift', 'struct Lobby {\n    /// Of one address.\n    static let maxPeople = 3\n    static let maxTalk = 5\n}']]);
  assert.deepEqual(found({ sources: more }), ['The page does not name Lobby.maxPeople (Sources/Signaling/Lobby.swift).']);
});
