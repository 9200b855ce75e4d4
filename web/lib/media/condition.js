// Judges the quality of media transport in three levels, each with a reason that users can understand. Compares the counters of
// WebRTC statistics at two moments; stores nothing itself.

/** @typedef {'good' | 'fair' | 'poor'} Level */
/**
 * Why a level is not good:
 * - `loss`: packets are lost.
 * - `delay`: packets are late.
 * - `bandwidth`: the bandwidth is too low.
 * - `freezes`: the video froze.
 * - `device`: the device cannot encode as fast as requested.
 * - `paused`: video is paused because of low bandwidth.
 * - `reconnecting`: there is no connection.
 * @typedef {'loss' | 'delay' | 'bandwidth' | 'freezes' | 'device' | 'paused' | 'reconnecting'} Reason
 */
/** @typedef {{level: Level, reason: Reason | null}} Judgment */
/**
 * @typedef {object} Condition a judgment in OpenTok's terms
 * @property {Level} networkCondition
 * @property {Reason | null} networkConditionReason null if the level is good
 * @property {'local' | 'remote' | null} networkDegradationSource the side whose network causes the level; null if the
 * level is good, or the side is unknown
 */

/** @type {Judgment} */
export const good = Object.freeze({ level: 'good', reason: null });
const levels = /** @type {const} */ (['good', 'fair', 'poor']);

/** @param {Judgment} judgment */
const rankOf = ({ level }) => levels.indexOf(level);

/**
 * @param {Judgment[]} judgments
 * @returns {Judgment} the worst judgment; if several are equally bad, the first; `good` if there are none
 */
export function worst(judgments) {
  return judgments.reduce((one, other) => (rankOf(other) > rankOf(one) ? other : one), good);
}

/**
 * For each measure, the values from which the level is fair, and from which it is poor. Shares are 0 to 1, times in
 * seconds.
 *
 * - Loss: up to about 2 %, lost audio is concealed well. Above that, video without retransmission breaks. From 8 %,
 *   speech is hard to follow.
 * - Concealed: the share of audio samples that replaced missing audio.
 * - Round trip: at 300 ms people start to interrupt each other; at 700 ms they have to take turns.
 * - Jitter: a jitter buffer adds twice this much delay.
 * - Freezes: the share of time in which the video was frozen.
 * - Limited: the share of time in which the encoder reduced the quality. This alone is never poor.
 */
export const limits = /** @type {const} */ ({
  loss: [0.02, 0.08], concealed: [0.02, 0.1], roundTrip: [0.3, 0.7], jitter: [0.05, 0.15], freezes: [0.05, 0.25], limited: [0.5, Infinity],
});
/** Minimum number of packets for judging loss. With fewer, a single lost packet would weigh too much. */
const leastPackets = 20;
/** Below this bitrate (bit/s), video is no more than a slide show. */
export const leastBitrate = 150_000;

/** @param {keyof typeof limits} name @param {Reason} reason @param {number | undefined} value @returns {Judgment} */
function judge(name, reason, value = 0) {
  const [fair, poor] = limits[name];
  if (!(value >= fair)) return good;
  return { level: value >= poor ? 'poor' : 'fair', reason };
}

/**
 * The counters of received media: `received` and `lost` count packets, `samples` and `concealed` audio samples, and
 * `frozen` is the total time of all freezes. Times are in seconds.
 * @typedef {{at: number, received: number, lost: number, frozen: number, concealed: number, samples: number, jitter?: number, roundTrip?: number}} ReceivedCounters
 */

/**
 * Judges the media received between two moments.
 * @param {ReceivedCounters} before
 * @param {ReceivedCounters} after
 * @returns {Judgment}
 */
export function receivedCondition(before, after) {
  const elapsed = after.at - before.at;
  if (!(elapsed > 0)) return good;
  const lost = Math.max(0, after.lost - before.lost);
  const packets = lost + Math.max(0, after.received - before.received);
  const samples = after.samples - before.samples;
  return worst([
    judge('loss', 'loss', packets < leastPackets ? 0 : lost / packets),
    judge('concealed', 'loss', samples > 0 ? (after.concealed - before.concealed) / samples : 0),
    judge('roundTrip', 'delay', after.roundTrip),
    judge('jitter', 'delay', after.jitter),
    judge('freezes', 'freezes', (after.frozen - before.frozen) / elapsed),
  ]);
}

/**
 * The state and counters of sent media. `limitedByNetwork` and `limitedByDevice` are the total times in which the
 * encoder reduced the quality. `available` is the estimated bitrate of the uplink, in bit/s. Times are in seconds.
 * @typedef {{at: number, limitedByNetwork: number, limitedByDevice: number, sendsVideo: boolean, lossRatio?: number, roundTrip?: number, available?: number}} SentCounters
 */

/**
 * Judges the media sent between two moments.
 * @param {SentCounters} before
 * @param {SentCounters} after
 * @returns {Judgment}
 */
export function sentCondition(before, after) {
  const elapsed = after.at - before.at;
  if (!(elapsed > 0)) return good;
  const isSlow = after.sendsVideo && after.available !== undefined && after.available < leastBitrate;
  return worst([
    judge('loss', 'loss', after.lossRatio),
    isSlow ? { level: 'poor', reason: 'bandwidth' } : judge('limited', 'bandwidth', (after.limitedByNetwork - before.limitedByNetwork) / elapsed),
    judge('roundTrip', 'delay', after.roundTrip),
    judge('limited', 'device', (after.limitedByDevice - before.limitedByDevice) / elapsed),
  ]);
}

/**
 * Combines all judgments of a received stream.
 * @param {object} known
 * @param {Judgment} known.received the local judgment of the received media
 * @param {Judgment} known.uplink the server's judgment of the publisher's uplink
 * @param {boolean} known.isPaused whether the server paused the video because the local network is too slow
 * @param {boolean} known.isWarned whether the server will pause the video if the local network gets worse
 * @param {boolean} known.isLost whether the media connection is lost
 * @returns {Condition}
 */
export function streamCondition({ received, uplink, isPaused, isWarned, isLost }) {
  if (isLost) return condition({ level: 'poor', reason: 'reconnecting' }, null);
  if (isPaused) return condition({ level: 'poor', reason: 'paused' }, 'local');
  const local = worst([received, isWarned ? { level: 'fair', reason: 'bandwidth' } : good]);
  // Packets lost on the publisher's uplink freeze the video here too, so freezes count as the publisher's if the
  // uplink is not good. Loss and delay never do, because they are measured only between the server and this browser.
  const isTheirs = rankOf(uplink) > rankOf(local) || (local.reason === 'freezes' && uplink.level !== 'good');
  if (isTheirs) return condition({ level: worst([uplink, local]).level, reason: uplink.reason }, 'remote');
  return condition(local, 'local');
}

/** @param {Judgment} judgment @param {Condition['networkDegradationSource']} source @returns {Condition} */
export function condition({ level, reason }, source) {
  return { networkCondition: level, networkConditionReason: reason, networkDegradationSource: level === 'good' ? null : source };
}

/** How many consecutive judgments must be worse, or better, than the reported one before its level changes. */
const inARow = { worse: 2, better: 3 };

/**
 * The reported judgment (`shown`), and how many judgments in a row were worse or better. The reported level changes
 * only after several of them, so that a single bad judgment is not reported.
 * @typedef {{shown: Judgment, worse: number, better: number}} Steadied
 */
/** @type {Steadied} */
export const unjudged = Object.freeze({ shown: good, worse: 0, better: 0 });

/** @param {Steadied} before @param {Judgment} judgment @returns {Steadied} */
export function steadied(before, judgment) {
  const difference = rankOf(judgment) - rankOf(before.shown);
  if (difference === 0) return { shown: judgment, worse: 0, better: 0 };
  const counts = { worse: difference > 0 ? before.worse + 1 : 0, better: difference < 0 ? before.better + 1 : 0 };
  const isDue = counts.worse >= inARow.worse || counts.better >= inARow.better;
  return isDue ? { shown: judgment, worse: 0, better: 0 } : { shown: before.shown, ...counts };
}
