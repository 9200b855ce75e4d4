// What the operator's page says and draws.
import assert from 'node:assert/strict';
import test from 'node:test';
import { charts, drawChart, size } from '../../app/admin/charts.js';
import { factsOf, levelOf, offerOf, relayTrouble, sourceText, stateText } from '../../app/admin/nodes.js';
import { adminStringsFor } from '../../app/admin/strings.js';
import {
  bitrateText, bytesText, lengthText, noteText, qualityText, reportsAgainst, shortID, streamText, switchText, troubleText, valueText,
} from '../../app/admin/words.js';
import { pageText } from './page-text.mjs';

const { strings, language } = adminStringsFor(['en']);
const words = strings.admin;
const overview = (samples, now = 100) => ({ version: '', now, startedAt: 0, intervalMs: 1, keptSamples: 100, samples });
const clients = { key: 'clients', unit: 'count' };

test('a chart has the last hour from left to right, and leaves room above', () => {
  const { now, low, high, line, area } = drawChart(overview([{ at: 0, clients: 0 }, { at: 1, clients: 54 }, { at: 2, clients: 27 }]), clients);
  assert.deepEqual([now, low, high], [27, 0, 54]);
  assert.equal(line, `M0 ${size.height}L2.4 4.1L4.8 30.1`);
  assert.equal(area, `${line}L4.8 ${size.height}L0 ${size.height}Z`);
});

test('a chart has a gap where samples are missing, and stays inside of its frame', () => {
  const { line } = drawChart(overview([{ at: -50, clients: 1 }, { at: 50, clients: 1 }, { at: 51, clients: 1 }, { at: 120, clients: 1 }]), clients);
  assert.equal(line.match(/M/g).length, 3);
  for (const x of line.matchAll(/[ML]([-\d.]+)/g)) assert.ok(x[1] >= 0 && x[1] <= size.width, line);
});

test('without samples, and without this figure, a chart is empty', () => {
  for (const samples of [[], [{ at: 1 }]]) assert.deepEqual(drawChart(overview(samples), { key: 'cores', unit: 'cores' }), { now: null, low: 0, high: 0, line: '', area: '' });
});

test('each chart has a name', () => {
  for (const { key } of charts) assert.ok(words.charts[key], key);
  assert.equal(Object.keys(words.charts).length, charts.length);
});

test('what can be requested of a node is the opposite of what it does, or of what was requested last', () => {
  const offers = ['serving', 'draining', 'drained', 'registering', 'waiting', 'cut_off', 'unknown', 'stopping', 'fenced', 'asleep'].map((state) => offerOf({ node: 'n1', life: 1, state }));
  assert.deepEqual(offers, ['draining', 'serving', 'serving', 'draining', 'draining', 'draining', 'draining', null, null, 'draining']);
  assert.equal(offerOf({ node: 'n1', life: 1, state: 'serving', requested: 'draining' }), 'serving');
  assert.equal(offerOf({ node: 'n1', life: 1, state: 'waiting', outOfService: true }), 'serving');
  assert.equal(offerOf({ node: 'n1', life: 1, state: 'draining', requested: 'serving' }), 'draining');
});

test('states of nodes have names, also one that a later release adds', () => {
  for (const state of Object.keys(words.nodeStates)) assert.ok(['good', 'fair', 'bad'].includes(levelOf(state)), state);
  assert.deepEqual([stateText({ node: 'n1', life: 1, state: 'waiting' }, words), levelOf('waiting')], ['Waits for PostgreSQL', 'bad']);
  assert.deepEqual([stateText({ node: 'n1', life: 1, state: 'asleep' }, words), levelOf('asleep')], ['asleep', 'bad']);
});

test('facts about a node that are not known are left out', () => {
  assert.deepEqual(factsOf({ node: 'n1', life: 3, state: 'fenced', fencedBy: 'n2', url: '' }, words, language), [['Ended by', 'n2'], ['Life', '3']]);
  assert.deepEqual(factsOf({ node: 'n1', life: 3, state: 'waiting', leaseMs: 0, load: 0, sockets: 0 }, words, language), [
    ['Life', '3'], ['Lease left', '0.0 s'], ['Sockets', '0'], ['Load', '0%'],
  ]);
});

test('the relays to a node are counted, also if there are none, and have a sentence with what to do if they do not work', () => {
  const states = { connected: 0, connecting: 0, thinned: 0 };
  const about = (relays) => ({ node: 'n2', life: 3, state: 'serving', relays });
  const text = (relays) => new Map(factsOf(about(relays), words, language)).get('Relays');
  assert.deepEqual([undefined, states, { ...states, connected: 1 }, { ...states, connecting: 2 }, { ...states, connected: 1, connecting: 1 }].map(text),
    [undefined, 'none', '1 connected', '2 connecting', '1 connected, 1 connecting']);
  const trouble = (relays) => relayTrouble(about(relays), words);
  assert.deepEqual([undefined, states, { ...states, connecting: 1 }].map(trouble), [null, null, null]);
  assert.match(trouble({ ...states, connecting: 1, fault: 'unreachable' }), /n2 does not connect: a firewall blocks UDP .* media\.relayAddress .* docs\/cluster\.md/);
  assert.match(trouble({ ...states, connecting: 1, fault: 'unanswered' }), /n2 does not answer over Redis/);
  assert.match(trouble({ ...states, connecting: 1, fault: 'asleep' }), /n2 does not connect\./);
  assert.match(trouble({ ...states, connected: 1, thinned: 1 }), /n2 loses packets/);
});

test('it says so if the asked node may know too little', () => {
  const text = (seenMsAgo) => sourceText({ asked: 'n1', seenMsAgo, nodes: [] }, words);
  assert.equal(text(3000), 'The nodes of the cluster, as n1 knows them.');
  assert.match(text(12_400), /^n1 has not reached PostgreSQL for 12 seconds\./);
  assert.match(text(undefined), /^n1 has not reached PostgreSQL yet/);
});

test('figures have units', () => {
  assert.deepEqual([0, 950, 25_400, 2_000_000, 12_345_678_901].map((bits) => bitrateText(bits, language)), ['0 bit/s', '950 bit/s', '25 kbit/s', '2 Mbit/s', '12 Gbit/s']);
  assert.deepEqual([0, 999, 1000, 5_400_000_000].map((bytes) => bytesText(bytes, language)), ['0 B', '999 B', '1 kB', '5.4 GB']);
  assert.deepEqual([['count', 1234], ['cores', 0.256], ['rate', 0.25], ['rate', 1234.4], ['bits', 8]].map(([unit, value]) => valueText(value, unit, words, language)),
    ['1,234', '0.26', '0.3/s', '1,234/s', '8 bit/s']);
  assert.equal(valueText(null, 'cores', words, language), words.unknown);
  assert.deepEqual([0, 61_000, 3_600_000].map(lengthText), ['0:00:00', '0:01:01', '1:00:00']);
});

test('streams, their quality and changes of layers are described', () => {
  const stream = { streamId: 's', audio: true, video: true, kind: 'camera', width: 640, height: 480, quality: 'poor', qualityReason: 'loss' };
  assert.equal(streamText(stream, words), 'sends audio and video, 640 × 480');
  assert.equal(streamText({ ...stream, kind: 'screen' }, words), 'shares a screen, 640 × 480');
  assert.equal(streamText({ ...stream, video: false }, words), 'sends audio');
  assert.equal(qualityText(stream, words), 'Poor: packets are lost');
  assert.equal(qualityText({ ...stream, quality: 'good', qualityReason: undefined }, words), 'Good');
  assert.equal(switchText({ paused: true, reason: 'slow' }, words), 'Video paused: the connection cannot keep up');
  assert.equal(switchText({ paused: false, layer: 'h', reason: 'bandwidth' }, words), 'Layer h: the available bitrate changed');
  assert.equal(switchText({ paused: false, reason: 'new' }, words), 'Video: new');
});

test('troubles and results are sentences', () => {
  assert.deepEqual(['missing', 'wrong', 'unreachable', { text: 'Why.' }].map((trouble) => troubleText(trouble, words)), [...Object.values(words.errors), 'Why.']);
  const note = (act, subject = 'b', text = '') => noteText({ tone: 'good', act, subject, text }, words);
  assert.equal(note({ kind: 'banSubject' }), 'Banned b.');
  assert.equal(note({ kind: 'lift' }), 'The ban of b was lifted.');
  assert.equal(note(null, '', 'Why.'), 'Why.');
  assert.equal(note(null), words.errors.unreachable);
  assert.equal(shortID('0123456789abcdef0123'), '0123456789…');
  assert.equal(reportsAgainst({ against: 'b' }, [{ against: 'b' }, { against: 'a' }, { against: 'b' }]), 2);
});

test('every text that the page names exists', async () => {
  const text = await pageText('admin');
  const entry = (path) => path.split('.').reduce((part, key) => part?.[key], strings);
  const named = [...text.matchAll(/data-(?:text|label|hint)="([^"]+)"/g)].map(([, path]) => path);
  assert.ok(named.length > 15);
  for (const path of named) assert.equal(typeof entry(path), 'string', path);
});

test('the page loads nothing from elsewhere, and has no inline scripts and styles, which its policy forbids', async () => {
  const text = await pageText('admin');
  assert.doesNotMatch(text, /\s(?:style|on\w+)="|<style|https?:\/\//);
  assert.doesNotMatch(text, /<script(?! type="module" src=)/);
});
