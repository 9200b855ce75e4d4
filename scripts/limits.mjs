// Compares docs/limits.md with the code. Prints the differences; exit status 1 if there are any.
//
// 1. Each setting and constant on the page must exist, each counter must be in the listed file, and each constant must have its value.
// 2. The page must list each setting that limits clients, each budget of the rules, and each constant that limits one address or all
//    of them.
//
// scripts/settings writes the rows of settings, and a Swift test compares them.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The groups of settings that are limits. */
const limiting = ['limits', 'rooms', 'whip', 'perch', 'push', 'webhooks', 'storage'];

/** Settings of these groups that need not be on the page, because they do not limit clients. Each has its reason. */
const others = {
  'rooms.creation': 'who may create rooms',
  'whip.connectTimeout': 'a time that no client can extend',
  'perch.ident': 'a credential',
  'perch.secret': 'a credential',
  'push.services': 'where pushes go',
  'push.contact': 'an address of the operator',
  'push.allowPrivateAddresses': 'for tests',
  'push.authorities': 'certificates',
  'push.apnsKey': 'a credential',
  'push.apnsKeyID': 'a credential',
  'push.apnsTeamID': 'a credential',
  'push.apnsBundle': 'a name',
  'push.apnsServer': 'where pushes go',
  'webhooks.allowPrivateAddresses': 'where events go',
  'webhooks.authorities': 'certificates',
  'storage.pollInterval': 'how soon bans of another process apply',
};

/** Constants that need not be on the page, because they do not limit clients. Each has its reason. */
const internals = {
  'HubRunner.maxReads': 'attempts of ours to read rooms',
  'LocalCertificateAuthority.maxSubjects': 'addresses in a certificate of ours',
  'MediaAddresses.maxAddresses': 'addresses in an answer of ours',
  'MediaAddresses.maxAnswering': 'addresses of ours that answer',
  'MediaProbe.maxAddresses': 'addresses that confab doctor tries',
  'PushConnections.maxAttempts': 'attempts of ours for a push',
  'QRCodeDrawing.maxTextSize': 'the capacity of a QR code',
  'SiteProbe.maxAddresses': 'addresses that confab doctor tries',
};

/** Constants whose values are computed, or that are not numbers. */
const computed = [
  'DescriptorBudget.connections', 'DescriptorBudget.transfers', 'RobotConnection.maxSources', 'Room.maxBudgets', 'Rules.messages',
  'Rules.reports', 'SRTPReceiver.maxControlSources',
];

/**
 * Folders whose `max…` constants must all be on the page. In other folders, only constants whose comment mentions
 * addresses must be.
 */
const complete = ['Sources/Server/Gateway/', 'Sources/Server/MediaPlane/'];

const units = {
  '': 1, B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, day: 86_400,
};

/** Returns the numbers in a text such as "4 MiB/s, 10s", in bytes and seconds. @param {string} text */
export function numbers(text) {
  return [...text.matchAll(/(\d+(?:\.\d+)?) ?(KiB|MiB|GiB|day|ms|s|m|h|d|B)?(?![a-zA-Z])/g)]
    .map(([, number, unit = '']) => Number(number) * units[unit]);
}

/**
 * Returns the names that a cell has in backticks: settings such as `rooms.lobby`, and constants such as `Rules.joins`.
 * If a constant has no type, it belongs to the type of the previous constant.
 * @param {string} cell
 */
export function names(cell) {
  const found = { settings: [], constants: [] };
  let type = '';
  for (const [, name] of cell.matchAll(/`([\w.]+)`/g)) {
    const parts = name.split('.');
    if (parts.length === 2 && /^[a-z]/.test(name)) found.settings.push(name);
    else if (parts.length === 2) {
      [type] = parts;
      found.constants.push(name);
    } else if (/^[a-z]/.test(name) && type) found.constants.push(`${type}.${name}`);
  }
  return found;
}

/** Returns the cells of the rows of all tables. @param {string} page */
export function rows(page) {
  return page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) => line.slice(2).split(' |').slice(0, -1).map((cell) => cell.trim()));
}

/**
 * Returns the numbers of an initializer such as `4 << 20`, `.seconds(10)` or `Budget.Rate(perSecond: 2, burst: 100)`, in bytes and seconds.
 * @param {string} text @returns {number[]}
 */
export function valuesOf(text) {
  const rate = /^Budget\.Rate\(per\w+: (.+?)(?:, burst: (.+))?\)$/.exec(text);
  if (rate) return rate.slice(1).flatMap((part) => (part ? valuesOf(part) : []));
  const [, unit, time] = /^\w*\.(milliseconds|seconds)\((.+)\)$/.exec(text) ?? [];
  if (time) return valuesOf(time).map((number) => number * (unit === 'seconds' ? 1 : 0.001));
  const factors = text.replaceAll('_', '').split(' * ').map((factor) => factor.split(' << ').map(Number));
  return [factors.reduce((product, [number, shift = 0]) => product * number * 2 ** shift, 1)];
}

/**
 * Returns the differences between the page and the code.
 * @param {{ page: string, sources: Map<string, string> }} given
 */
export function faults({ page, sources }) {
  const found = [];
  const settings = settingsIn(sources);
  const listed = { settings: new Set(), constants: new Set() };
  for (const cells of rows(page)) {
    // The table of resources lists the limit of each in its second column, and its counter in the third.
    const isResource = cells.length === 3 && /`Sources\//.test(cells[2]);
    const named = names(isResource ? cells[1] : cells[0]);
    for (const name of named.settings) if (!settings.has(name)) found.push(`There is no setting ${name}.`);
    for (const name of named.constants) {
      const [type, constant] = name.split('.');
      if (!isDeclared(type, constant, sources)) found.push(`There is no constant ${name}.`);
    }
    if (isResource) found.push(...misplaced(cells[2], sources));
    if (!isResource && cells.length < 4) continue;
    named.settings.forEach((name) => listed.settings.add(name));
    named.constants.forEach((name) => listed.constants.add(name));
    if (isResource) continue;
    const values = [...new Set(named.constants)].filter((name) => !computed.includes(name)).flatMap((name) => initializers(name, sources));
    const shown = numbers(cells[1]).slice(0, values.length);
    if (`${shown}` !== `${values}`) found.push(`${named.constants}: the page says ${cells[1]}, the code ${values}.`);
  }
  for (const name of settings) {
    const isLimit = limiting.includes(name.split('.')[0]) && !(name in others);
    if (isLimit && !listed.settings.has(name)) found.push(`The page does not name the setting ${name}.`);
  }
  const all = [...sources.values()].join('\n');
  for (const [, budget] of (sources.get('Sources/Signaling/Rules.swift') ?? '').matchAll(/var (\w+) = Budget\.Rate\(/g)) {
    const keys = [...all.matchAll(/"(\w+\.\w+)", \\\.rules\.(\w+)/g)].filter(([, , rule]) => rule === budget).map(([, key]) => key);
    const isListed = listed.constants.has(`Rules.${budget}`) || keys.some((key) => listed.settings.has(key));
    if (!isListed) found.push(`The page does not name Rules.${budget}.`);
  }
  for (const { name, file } of maxima(sources)) {
    if (!listed.constants.has(name) && !(name in internals)) found.push(`The page does not name ${name} (${file}).`);
  }
  return found;
}

/** Returns the names of all settings. @param {Map<string, string>} sources */
function settingsIn(sources) {
  const texts = [...sources].filter(([path]) => path.startsWith('Sources/Server/')).map(([, text]) => text);
  return new Set(texts.flatMap((text) => [...text.matchAll(/Setting\(\s*"(\w+\.\w+)"/g)].map(([, name]) => name)));
}

/**
 * Returns the files that mention the member and declare or extend the type.
 * @param {string} type
 * @param {string} member
 * @param {Map<string, string>} sources
 */
function filesOf(type, member, sources) {
  const declaration = new RegExp(`\\b(?:struct|class|enum|actor|extension) (?:\\w+\\.)*${type}\\b`);
  return [...sources.values()].filter((text) => text.includes(member) && declaration.test(text));
}

/**
 * Returns whether a file that declares or extends the type declares the member.
 * @param {string} type
 * @param {string} member
 * @param {Map<string, string>} sources
 */
function isDeclared(type, member, sources) {
  const property = new RegExp(`\\b(?:let|var|func|case|struct|enum|class) ${member}\\b|\\b${member}\\(`);
  return filesOf(type, member, sources).some((text) => property.test(text));
}

/** Returns the numbers with which a constant is initialized. @param {string} name @param {Map<string, string>} sources */
function initializers(name, sources) {
  const [type, member] = name.split('.');
  const property = new RegExp(`(?:let|var) ${member}(?:: [\\w.]+)? = (.+)`);
  const [value] = filesOf(type, member, sources).flatMap((text) => property.exec(text)?.[1] ?? []);
  return value === undefined ? [] : valuesOf(value);
}

/**
 * Returns the places of a cell, such as "`Transfers.begin` (`Sources/Server/…`)", that do not exist.
 * @param {string} cell
 * @param {Map<string, string>} sources
 */
function misplaced(cell, sources) {
  const found = [];
  const places = [...cell.matchAll(/((?:`[\w.]+`(?:, )?)+) \(`(Sources\/[^`]+)`\)/g)];
  if (places.length === 0) found.push(`No place that counts is in: ${cell}`);
  for (const [, members, file] of places) {
    const text = sources.get(file);
    if (text === undefined) found.push(`There is no file ${file}.`);
    for (const [, name] of members.matchAll(/`([\w.]+)`/g)) {
      const [type, member] = name.split('.');
      const isThere = text !== undefined && isDeclared(type, member, new Map([[file, text]]));
      if (text !== undefined && !isThere) found.push(`${file} has no ${name}.`);
    }
  }
  return found;
}

/** Returns the `max…` constants that must be on the page. @param {Map<string, string>} sources */
function maxima(sources) {
  const found = [];
  for (const [file, text] of sources) {
    if (!/^Sources\/(Server|Signaling)\//.test(file)) continue;
    const types = [];
    let comment = '';
    for (const line of text.split('\n')) {
      if (line.trim().startsWith('///')) {
        comment += line;
        continue;
      }
      const indent = line.length - line.trimStart().length;
      const type = /\b(?:struct|class|enum|actor|extension) ([\w.]+)/.exec(line)?.[1].split('.').pop();
      while (line.trim() !== '' && types.length > 0 && types.at(-1).indent >= indent && line.trim() !== '}') types.pop();
      if (type && !line.trim().startsWith('//')) types.push({ type, indent });
      const constant = /static let (max\w+)/.exec(line)?.[1];
      const isLimit = complete.some((folder) => file.startsWith(folder)) || /address/i.test(comment + (constant ?? ''));
      if (constant && isLimit) found.push({ name: `${types.at(-1)?.type}.${constant}`, file });
      comment = '';
    }
  }
  return found;
}

function main() {
  const root = join(fileURLToPath(import.meta.url), '../..');
  const read = (/** @type {string} */ path) => readFileSync(join(root, path), 'utf8');
  const paths = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'Sources/*.swift'], { cwd: root, encoding: 'utf8' });
  const files = paths.split('\n').filter((path) => path !== '' && existsSync(join(root, path)));
  const sources = new Map(files.map((path) => [path, read(path)]));
  const all = faults({ page: read('docs/limits.md'), sources });
  for (const fault of all) console.log(`docs/limits.md: ${fault}`);
  process.exitCode = all.length > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
