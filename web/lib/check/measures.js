// Turns the statistics of a stream that comes back from the server into the loss, jitter and bitrate of each direction. Pure.

import { publisherStats, subscriberStats } from '../media/stats.js';

/** @typedef {import('./verdicts.js').Flow} Flow */
/**
 * The statistics of both connections at one moment. `downlink` is the server's estimate of what the receiving connection carries,
 * in bit/s; undefined while nothing limits it. `isPaused`: the server paused the video because that is too little.
 * @typedef {object} Sample
 * @property {ReturnType<typeof publisherStats>} sent
 * @property {ReturnType<typeof subscriberStats>} received
 * @property {number} [downlink]
 * @property {boolean} isPaused
 */

/** A direction is limited if it carried less than this share of what was sent. */
const nearlyAll = 0.8;
/** Minimum number of audio packets for judging loss. With fewer, a single lost packet would weigh too much. */
const leastPackets = 50;

const noCondition = /** @type {any} */ ({});

/**
 * @param {RTCStatsReport} sending of the connection that sends
 * @param {RTCStatsReport} receiving of the connection that receives
 * @param {{downlink?: number, isPaused: boolean}} known
 * @returns {Sample}
 */
export function sampleOf(sending, receiving, known) {
  return {
    sent: publisherStats([sending], noCondition),
    received: subscriberStats([receiving], noCondition, { qualityLimitationReason: 'none' }, known.downlink),
    ...known,
  };
}

/**
 * Summarizes the samples of a measurement. Bitrates are those of the second half, because browsers begin with a low one. Loss and
 * jitter are those of the audio, if there is some: video has retransmissions, and its packets come in bursts.
 * @param {readonly Sample[]} samples at least two, in the order of time
 * @param {number} target the bitrate that was to be sent, in bit/s
 * @returns {{up: Flow, down: Flow, roundTripMs: number | null}}
 */
export function summarize(samples, target) {
  const [first, last] = [samples[0], samples[samples.length - 1]];
  const middle = samples[Math.floor((samples.length - 1) / 2)];
  const kind = last.sent.audio.packetsSent - first.sent.audio.packetsSent < leastPackets ? 'video' : 'audio';
  const upLoss = share(
    last.sent[kind].packetsLost - first.sent[kind].packetsLost, last.sent[kind].packetsSent - first.sent[kind].packetsSent);
  const lost = last.received[kind].packetsLost - first.received[kind].packetsLost;
  const bothLoss = share(lost, lost + last.received[kind].packetsReceived - first.received[kind].packetsReceived);
  const upRate = rateOf(middle.sent.timestamp, last.sent.timestamp, total(last.sent, 'bytesSent') - total(middle.sent, 'bytesSent'));
  const downRate = rateOf(
    middle.received.timestamp, last.received.timestamp, total(last.received, 'bytesReceived') - total(middle.received, 'bytesReceived'));
  const roundTrips = samples.flatMap(({ sent }) => roundTripOf(sent) ?? []);
  const isPaused = samples.some((sample) => sample.isPaused);
  const downlink = median(samples.slice(samples.length / 2).flatMap((sample) => sample.downlink ?? []));
  const isDownLimited = isPaused || downRate < nearlyAll * upRate || (downlink ?? Infinity) < nearlyAll * target;
  return {
    up: {
      loss: upLoss, jitterMs: jitterOf(samples.map(({ sent }) => sent)), kbit: kilo(upRate),
      isLimited: upRate < nearlyAll * target && limitsSending(last.sent, target),
    },
    down: {
      // A packet that was lost on the way to the server is missing on the way back too.
      loss: upLoss === null || bothLoss === null || upLoss >= 1 ? bothLoss : Math.max(0, 1 - (1 - bothLoss) / (1 - upLoss)),
      jitterMs: jitterOf(samples.map(({ received }) => received)),
      // While the video is paused, less arrives than the network carries.
      kbit: kilo(isDownLimited ? Math.max(downRate, downlink ?? 0) : downRate), isLimited: isDownLimited,
    },
    roundTripMs: median(roundTrips),
  };
}

/**
 * Returns whether the network is why less than the target was sent, and not the device, which may be too slow to encode that much.
 * Firefox does not say, so there a slow device looks like a slow network.
 * @param {Sample['sent']} sent
 * @param {number} target
 */
function limitsSending({ video, transport }, target) {
  if (video.layers.some(({ qualityLimitationReason }) => qualityLimitationReason === 'cpu')) return false;
  return (transport.connectionEstimatedBandwidth ?? 0) < target;
}

/**
 * Returns the round trip in milliseconds, if it is known. Firefox reports 0 for that of ICE, so use that of the media there.
 * @param {Sample['sent']} sent
 */
const roundTripOf = ({ transport, audio, video }) => transport.roundTripTime || audio.roundTripTime || video.roundTripTime || undefined;

/** @param {{audio: {jitter?: number}}[]} sides @returns {number | null} */
const jitterOf = (sides) => median(sides.flatMap(({ audio }) => audio.jitter ?? []));

/** @param {any} side @param {'bytesSent' | 'bytesReceived'} name */
const total = (side, name) => side.audio[name] + side.video[name];

/** @param {number} from milliseconds @param {number} to @param {number} bytes @returns {number} bit/s */
const rateOf = (from, to, bytes) => (to > from ? Math.max(0, bytes) * 8000 / (to - from) : 0);

/** @param {number} rate bit/s */
const kilo = (rate) => Math.round(rate / 1000);

/** @param {number} part @param {number} whole @returns {number | null} null if there is too little to judge */
const share = (part, whole) => (whole < leastPackets ? null : Math.min(1, Math.max(0, part / whole)));

/** @param {number[]} numbers @returns {number | null} */
function median(numbers) {
  if (numbers.length === 0) return null;
  const sorted = [...numbers].sort((one, other) => one - other);
  return Math.round(10 * sorted[Math.floor(sorted.length / 2)]) / 10;
}
