// The charts of the operator's page, as numbers and SVG paths.

/** @typedef {import('./state.js').Overview} Overview */
/** @typedef {{key: string, unit: 'count' | 'cores' | 'bits' | 'rate'}} Chart */

/** @type {readonly Chart[]} */
export const charts = [
  { key: 'people', unit: 'count' }, { key: 'clients', unit: 'count' }, { key: 'sessions', unit: 'count' }, { key: 'rooms', unit: 'count' },
  { key: 'matches', unit: 'count' }, { key: 'waiting', unit: 'count' }, { key: 'calls', unit: 'count' }, { key: 'cores', unit: 'cores' },
  { key: 'bitsIn', unit: 'bits' }, { key: 'bitsOut', unit: 'bits' }, { key: 'packets', unit: 'rate' }, { key: 'switches', unit: 'rate' },
  { key: 'archives', unit: 'count' }, { key: 'broadcasts', unit: 'count' },
];

/** The size of a chart in units of its SVG. */
export const size = { width: 240, height: 56 };

/** What the top of a chart is at least, so that noise does not look like load. */
const least = { count: 4, cores: 0.5, bits: 100_000, rate: 10 };

/**
 * Returns the latest value of a figure, its range, and its chart: the last hour from left to right. A time without samples is a gap.
 * @param {Overview} overview @param {Chart} chart
 * @returns {{now: number | null, low: number, high: number, line: string, area: string}}
 */
export function drawChart({ samples, now, intervalMs, keptSamples }, { key, unit }) {
  const known = samples.filter((sample) => sample[key] !== undefined);
  const values = known.map((sample) => sample[key]);
  const high = values.reduce((most, value) => Math.max(most, value), 0);
  const low = values.reduce((few, value) => Math.min(few, value), values.length ? Infinity : 0);
  const top = Math.max(high, least[unit]) * 1.08;
  const span = intervalMs * keptSamples;
  const place = (/** @type {import('./state.js').Sample} */ sample) => {
    const x = size.width * Math.min(1, Math.max(0, 1 - (now - sample.at) / span));
    return [round(x), round(size.height * (1 - sample[key] / top))];
  };
  /** @type {number[][][]} runs of samples without a gap */
  const runs = [];
  let last = -Infinity;
  for (const sample of known) {
    if (sample.at - last > 3 * intervalMs) runs.push([]);
    runs[runs.length - 1].push(place(sample));
    last = sample.at;
  }
  const lineOf = (/** @type {number[][]} */ run) => `M${run.map(([x, y]) => `${x} ${y}`).join('L')}`;
  const line = runs.map(lineOf).join('');
  const area = runs.map((run) => `${lineOf(run)}L${run[run.length - 1][0]} ${size.height}L${run[0][0]} ${size.height}Z`).join('');
  return { now: values.at(-1) ?? null, low, high, line, area };
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;
