// Prints what `Benchmarks/networks` measured in one case.
//
//   node network-report.mjs FOLDER CASE FOCUS RATE WARMUP BAD RELIEF SPOILED REPAIRED
//
// FOLDER contains `far`, the lines of page.mjs, and `samples`: ten times a second, the time, the bytes in the queue to the page,
// the bytes that were sent to the other subscriber, and the idle and total time of the machine's cores. RATE is the link's, in
// kbit/s. WARMUP, BAD and RELIEF are durations in seconds, and SPOILED and REPAIRED the times at which the link became bad and
// good again.
import { readFileSync } from 'node:fs';
import path from 'node:path';

const [folder, name, focus, ...numbers] = process.argv.slice(2);
const [rate, warmup, bad, relief, spoiled, repaired] = numbers.map(Number);
/** Seconds in which the server notices that the link has become bad. What the queue holds then cannot be taken back. */
const reaction = 5;
/** Seconds at the start of the warm-up that are not compared: jitter buffers and encoders begin. */
const beginning = 3;

const read = (file) => readFileSync(path.join(folder, file), 'utf8').trim().split('\n');
const seconds = read('far').map((line) => JSON.parse(line));
const samples = read('samples').map((line) => line.split(' ').map(Number))
  .map(([time, queued, sent, idle, all]) => ({ time, queued, sent, idle, all }));

const total = (values) => values.reduce((sum, value) => sum + value, 0);
const percent = (part, whole) => (whole ? 100 * part / whole : 100);
/** The seconds after one and up to another. */
const between = (from, to) => seconds.filter(({ second }) => second > from && second <= to);
const phases = {
  before: between(beginning, warmup),
  bad: between(warmup, warmup + bad),
  later: between(warmup + reaction, warmup + bad),
  relief: between(warmup + bad, warmup + bad + relief),
};

function concealed(phase, members = ['concealed']) {
  const streams = phase[0].played.map((_, index) => ({
    concealed: total(phase.flatMap((second) => members.map((member) => second[member][index]))),
    played: total(phase.map((second) => second.played[index])),
  }));
  const all = percent(total(streams.map((stream) => stream.concealed)), total(streams.map((stream) => stream.played)));
  const worst = Math.max(...streams.map((stream) => percent(stream.concealed, stream.played)));
  return `${all.toFixed(2)} % (worst stream ${worst.toFixed(2)} %)`;
}

function stillness(phase) {
  const longest = Math.max(...phase.map(({ still }) => still));
  return `${phase.filter(({ frames }) => frames === 0).length} s (at most ${longest} ms at a time)`;
}

/**
 * The widths that must come back: the largest of the video in focus, and the smallest of each other one, because a browser that
 * publishes may change its sizes.
 */
function bestWidths() {
  const shown = between(0, warmup).map(({ widths }) => widths).filter((widths) => !widths.includes(null));
  if (shown.length === 0) throw new Error('A video stood still in every second of the warm-up.');
  return shown[0].map((_, stream) => {
    const widths = shown.map((one) => one[stream]);
    return stream === 0 ? Math.max(...widths) : Math.min(...widths);
  });
}

/** Seconds from the start of a phase until something is the case. */
function until(phase, isReached) {
  const found = phase.findIndex(isReached);
  return found < 0 ? 'never' : `${found + 1} s`;
}

const sampled = (from, to) => samples.filter(({ time }) => time > from && time <= to);

/** The time that a packet which enters the queue waits in it. */
function queue(from, to) {
  const delays = sampled(from, to).map(({ queued }) => Math.round(queued * 8 / rate)).sort((one, other) => one - other);
  const share = (part) => delays[Math.min(delays.length - 1, Math.floor(delays.length * part))];
  return `at most ${share(1)} ms (median ${share(0.5)} ms, 95 % under ${share(0.95)} ms)`;
}

/** kbit/s that were sent to the other subscriber. */
function sent(from, to) {
  const some = sampled(from, to);
  const [first, last] = [some[0], some.at(-1)];
  return (last.sent - first.sent) * 8 / 1000 / (last.time - first.time);
}

/** How busy the machine was. A busy machine delays packets and what a browser reports about them. */
function busy(from, to) {
  const some = sampled(from, to);
  const [first, last] = [some[0], some.at(-1)];
  return `${Math.round(100 - percent(last.idle - first.idle, last.all - first.all))} %`;
}

/** How often each width was shown. @param {(number | null)[]} widths */
function shares(widths) {
  const counts = new Map();
  for (const width of widths) counts.set(width, (counts.get(width) ?? 0) + 1);
  const sorted = [...counts].sort(([one], [other]) => (other ?? 0) - (one ?? 0));
  return sorted.map(([width, count]) => `${width ?? 'still'} ${Math.round(percent(count, widths.length))} %`).join(', ');
}

function mean(phase) {
  const of = (member) => Math.round(total(phase.map((second) => second[member])) / phase.length);
  const sum = (member) => total(phase.map((second) => second[member]));
  return [
    `${of('kilobits')} kbit/s`,
    `width in focus ${shares(phase.map(({ widths }) => widths[0]))} (${of('frames')} frames/s, ${sum('freezes')} freezes)`,
    `others ${shares(phase.flatMap(({ widths }) => widths.slice(1)))}`,
    `audio packets lost ${sum('lost')}, discarded ${sum('discarded')}, of error correction ${sum('corrections')}`,
    `jitter buffers ${of('buffered')} ms`,
  ].join('; ');
}

const row = (what, value, goal = '') => console.log(`  ${what.padEnd(36)} ${value.padEnd(50)} ${goal}`.trimEnd());
const hasQueue = name !== 'loss';
const best = bestWidths();
const [before, during] = [sent(spoiled - reaction, spoiled), sent(spoiled, repaired)];

console.log(`\n${name}, in focus: ${focus}`);
row('audio concealed', concealed(phases.bad), 'goal: under 1 %');
row('  before', concealed(phases.before));
row(`  after the first ${reaction} s`, concealed(phases.later));
row('  with the silent rest of long gaps', concealed(phases.bad, ['concealed', 'silent']));
row('picture in focus stood still', stillness(phases.bad), 'goal: 0 s');
row('  before', stillness(phases.before));
const smaller = ({ widths: [width] }) => width !== null && width < best[0];
const isBest = ({ widths }) => widths.every((width, stream) => width >= best[stream]);
row('smaller layer in focus after', until(phases.bad, smaller), hasQueue ? 'goal: 3 s' : '');
row('best layers again after relief', until(phases.relief, isBest), 'goal: 10 s');
const rates = `${(during / before).toFixed(2)} (${Math.round(during)} and ${Math.round(before)} kbit/s)`;
row('bitrate to the other / before', rates, 'goal: 0.9 to 1.1');
if (hasQueue) {
  row(`queue in the first ${reaction} s`, queue(spoiled, spoiled + reaction));
  row(`queue after the first ${reaction} s`, queue(spoiled + reaction, repaired), 'goal: under 200 ms');
}
row('cores busy before, on the bad link', `${busy(spoiled - reaction, spoiled)}, ${busy(spoiled, repaired)}`);
console.log(`  before:      ${mean(phases.before)}`);
console.log(`  on bad link: ${mean(phases.bad)}`);
console.log(`  relief:      ${mean(phases.relief)}`);
