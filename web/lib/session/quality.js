// The stream quality of subscribers and publishers, and when to notify the program about it.

import { condition, good, receivedCondition, sentCondition, streamCondition, worst } from '../media/condition.js';
import { ConditionMeter } from '../media/condition-meter.js';
import { receivedCounters, sentCounters } from '../media/stats.js';

/** @typedef {import('../media/condition.js').Condition} Condition */
/** @typedef {import('./roster.js').Stream} Stream */

/** Reports a condition when it differs from the last one reported. */
class News {
  #read;
  #tell;
  /** @type {string} */
  #last;

  /** @param {() => Condition} read @param {(condition: Condition) => void} tell */
  constructor(read, tell) {
    this.#read = read;
    this.#tell = tell;
    this.#last = JSON.stringify(read());
  }

  check() {
    const now = this.#read();
    if (JSON.stringify(now) === this.#last) return;
    this.#last = JSON.stringify(now);
    this.#tell(now);
  }
}

/**
 * @typedef {object} ReceivedOptions
 * @property {import('../clock.js').Clock} clock
 * @property {() => Promise<RTCStatsReport[]>} reports the reports of the receivers
 * @property {() => {stream: Stream, pause: string | null, isLost: boolean}} state `pause`: why the server paused the
 *   video; null if it has not; `isLost`: whether the peer connection is down
 * @property {(condition: Condition) => void} changed called when the condition has changed
 */

/**
 * The server's information about the video that it forwards.
 * @typedef {{videoPaused: boolean, reason: string, rid?: string, temporalLayer?: number, limited?: boolean}} SubscriptionChange
 */

/** The quality of a stream that is received. */
export class ReceivedQuality {
  #options;
  #news;
  meter;
  /** Whether the server has warned that it will pause the video if the network gets worse. */
  isWarned = false;
  /**
   * What limits the quality of the received video, for the statistics.
   * @type {import('../media/stats.js').Limitation}
   */
  limitation = { qualityLimitationReason: 'none' };
  /** Whether the network is too slow for the video layer that the subscriber wants. */
  #isLimited = false;

  /** @param {ReceivedOptions} options */
  constructor(options) {
    this.#options = options;
    this.meter = new ConditionMeter({
      clock: options.clock,
      count: async () => receivedCounters(await options.reports()),
      judge: receivedCondition,
      changed: () => this.check(),
    });
    this.#news = new News(() => this.condition, options.changed);
  }

  /** @param {SubscriptionChange} change */
  limited({ videoPaused, reason, rid, temporalLayer, limited = this.#isLimited }) {
    this.#isLimited = limited;
    // Compute the limitation again on each change, because a change may also mean that a limit was removed.
    const lasting = limited ? 'bandwidth' : reason === 'size' || reason === 'publisher' ? reason : 'none';
    this.limitation = { qualityLimitationReason: videoPaused ? reason : lasting, rid, temporalLayer };
  }

  /** Clears the limits of the video, because the server sets up the subscription again. */
  unlimited() {
    this.#isLimited = false;
    this.limitation = { qualityLimitationReason: 'none' };
  }

  get condition() {
    const { stream, pause, isLost } = this.#options.state();
    return streamCondition({
      received: this.meter.judgment, uplink: stream.uplink, isPaused: pause === 'quality', isWarned: this.isWarned, isLost,
    });
  }

  /** Reports the condition if it has changed. */
  check() {
    this.#news.check();
  }
}

/**
 * @typedef {object} SentOptions
 * @property {() => Promise<{reports: RTCStatsReport[]}[]>} reports the reports of the senders, for each connection
 * @property {() => Stream | null} stream returns the published stream; null while there is none
 * @property {() => boolean} isVideoStopped whether the video is stopped because the network is too slow
 * @property {() => void} judged called when the judgment of the network may have changed
 * @property {(condition: Condition) => void} changed called when the condition has changed
 */

/** The quality of a stream that is sent. */
export class SentQuality {
  #options;
  #news;
  /** @type {ConditionMeter<import('../media/condition.js').SentCounters> | null} null while nothing is measured */
  #meter = null;

  /** @param {SentOptions} options */
  constructor(options) {
    this.#options = options;
    this.#news = new News(() => this.condition, options.changed);
  }

  get condition() {
    if (this.#options.isVideoStopped()) return condition({ level: 'poor', reason: 'paused' }, 'local');
    return condition(worst(this.#judgments), 'local');
  }

  /**
   * Whether the network is too slow for the media being sent. A long round trip alone does not count, because sending less does not
   * shorten it.
   */
  get isTooSlow() {
    return this.#judgments.some(({ level, reason }) => level === 'poor' && (reason === 'loss' || reason === 'bandwidth'));
  }

  get #judgments() {
    return [this.#options.stream()?.uplink ?? good, this.#meter?.judgment ?? good];
  }

  /** @param {import('../clock.js').Clock | null} clock null stops judging */
  judge(clock) {
    this.#meter?.stop();
    this.#meter = clock && new ConditionMeter({
      clock,
      // In a relayed session all subscribers share this uplink, so one connection is enough.
      count: async () => sentCounters((await this.#options.reports())[0]?.reports ?? [], this.#options.isVideoStopped()),
      judge: sentCondition,
      changed: () => this.check(),
    });
    this.#meter?.start();
    this.check();
  }

  /** Ignores the time since the last judgment, because the sent media was changed on purpose. */
  skip() {
    this.#meter?.skip();
  }

  /** Calls `judged`, and reports the condition if it has changed. */
  check() {
    this.#options.judged();
    this.#news.check();
  }
}
