// What a subscriber and a publisher know about the quality of their stream, and when to tell the program.

import { condition, good, receivedCondition, sentCondition, streamCondition, worst } from '../media/condition.js';
import { ConditionMeter } from '../media/condition-meter.js';
import { receivedCounters, sentCounters } from '../media/stats.js';

/** @typedef {import('../media/condition.js').Condition} Condition */
/** @typedef {import('./roster.js').Stream} Stream */

/** Tells a condition when it differs from the last one. */
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
 * @property {() => Promise<RTCStatsReport[]>} reports of the receivers
 * @property {() => {stream: Stream, pause: string | null, isLost: boolean}} state
 * @property {(condition: Condition) => void} changed
 */

/**
 * What the server says of the video that it forwards.
 * @typedef {{videoPaused: boolean, reason: string, rid?: string, temporalLayer?: number, limited?: boolean}} SubscriptionChange
 */

/** The quality of a stream that is received. */
export class ReceivedQuality {
  #options;
  #news;
  meter;
  /** Whether the server will pause the video if the network gets worse. */
  isWarned = false;
  /** @type {import('../media/stats.js').Limitation} */
  limitation = { qualityLimitationReason: 'none' };
  /** Whether the network carries less than the subscriber wants of the video. */
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
    // The reason of a change may be that what limited the video has gone.
    const lasting = limited ? 'bandwidth' : reason === 'size' || reason === 'publisher' ? reason : 'none';
    this.limitation = { qualityLimitationReason: videoPaused ? reason : lasting, rid, temporalLayer };
  }

  /** Forgets what limited the video, because the server sets up the subscription again. */
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

  /** Tells the condition if it has changed. */
  check() {
    this.#news.check();
  }
}

/**
 * @typedef {object} SentOptions
 * @property {() => Promise<{reports: RTCStatsReport[]}[]>} reports of the senders, for each connection
 * @property {() => Stream | null} stream null while not published
 * @property {() => boolean} isVideoStopped whether the video is not sent, because the network is too slow for it
 * @property {() => void} judged the network may have been judged differently
 * @property {(condition: Condition) => void} changed
 */

/** The quality of a stream that is sent. */
export class SentQuality {
  #options;
  #news;
  /** @type {ConditionMeter<import('../media/condition.js').SentCounters> | null} null while nobody listens */
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
   * Whether the network does not carry what is sent. A long way alone, which only delays it, would not be shorter for less.
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

  /** Skips the time since the last look, because what is sent has changed on purpose. */
  skip() {
    this.#meter?.skip();
  }

  /** Tells the condition if it has changed. */
  check() {
    this.#options.judged();
    this.#news.check();
  }
}
