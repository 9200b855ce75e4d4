// Tests the check of docs/limits.md.
import assert from 'node:assert/strict';
import test from 'node:test';
import { defaults, faults, names, numbers } from '../../../scripts/limits.mjs';

const page = `
| resource | limits | counted by |
| --- | --- | --- |
| transfers | \`limits.transfers\`, \`Transfers.maxCount\` | \`Transfers.begin\` (\`Sources/Server/Gateway/Transfers.swift\`) |

| limit | default | counts | reason |
| --- | --- | --- | --- |
| \`limits.transfers\`, \`limits.rate\` | 400, 16 KiB/s | uploads and downloads | memory |
| (\`Transfers.maxCount\`, \`minTime\`) | 3, 60 s | the same | memory |
`;
const sample = 'limits:\n  # A comment: 5\n  #transfers: 400\n\n  #rate: 16KiB\n';
const sources = new Map([
  ['Sources/Server/Configuration/Setting.swift', 'Setting(\n    "limits.transfers", 1)\nSetting("limits.rate", 2)\nSetting("log.level", 3)'],
  ['Sources/Server/Gateway/Transfers.swift', 'struct Transfers {\n    static let maxCount = 3\n    static let minTime = 60\n    func begin() {}\n}'],
]);
const found = (change) => faults({ page, sample, sources, ...change });
const without = (text) => page.split('\n').filter((line) => !line.includes(text)).join('\n');

test('a page that names what the code counts has no faults', () => {
  assert.deepEqual(found({}), []);
  assert.deepEqual(numbers('4 MiB/s, 10s, 0B'), [4 << 20, 10, 0]);
  assert.deepEqual(names('(`Rules.joins`, `maxTalk`) `rooms.lobby`'), { settings: ['rooms.lobby'], constants: ['Rules.joins', 'Rules.maxTalk'] });
  assert.deepEqual([...defaults(sample)], [['limits.transfers', '400'], ['limits.rate', '16KiB']]);
});

test('what is not in the code is a fault', () => {
  assert.deepEqual(found({ page: page.replaceAll('limits.rate', 'limits.pace') }).slice(0, 1), ['There is no setting limits.pace.']);
  assert.deepEqual(found({ page: page.replace('minTime', 'minWait') }), ['There is no constant Transfers.minWait.']);
  assert.deepEqual(found({ page: page.replace('Transfers.begin', 'Transfers.start') }), ['Sources/Server/Gateway/Transfers.swift has no Transfers.start.']);
  assert.deepEqual(found({ page: page.replace('400,', '300,') }), ['limits.transfers,limits.rate: the page says 300, 16 KiB/s, the sample 400,16384.']);
});

test('what is in the code and not on the page is a fault', () => {
  assert.deepEqual(found({ page: without('16 KiB/s') }), ['The page does not name the setting limits.rate.']);
  const more = new Map([...sources, ['Sources/Signaling/Lobby.swift', 'struct Lobby {\n    /// Of one address.\n    static let maxPeople = 3\n    static let maxTalk = 5\n}']]);
  assert.deepEqual(found({ sources: more }), ['The page does not name Lobby.maxPeople (Sources/Signaling/Lobby.swift).']);
});
