// Decides when the media of a slot's new stream may be shown. Slots (pairs of transceivers) are reused, and a slot's
// decoder keeps the last frame of the previous stream. The previous person must not appear under the next person's
// name, so video is handed out only after frames of the new stream were decoded.

import { Timers } from '../clock.js';

/** Polling interval until the media is handed out, and for `soonMs` after video was requested again. */
const waitingMs = 20;
/** Polling interval after the media was handed out without video, which may still arrive. */
const listeningMs = 200;
/**
 * How long to wait for audio packets if no video is expected. After that, the media is handed out without them: a
 * silent sender's packets may never arrive, because in a large session only those of the loudest are forwarded.
 */
const silentMs = 1000;
/** How long to poll often after video was requested again: about the time until its first keyframe arrives. */
const soonMs = 2000;
/** How long packets of the previous stream may still arrive or be decoded after a slot was freed. */
const drainMs = 300;

/** @typedef {{packets: number, frames: number}} Counts */
/**
 * @typedef {object} ArrivalOptions
 * @property {import('./media-link.js').Slot} slot
 * @property {import('../clock.js').Clock} clock
 * @property {typeof MediaStream} MediaStream
 * @property {() => {audio: boolean, video: boolean}} expected returns which media to expect: those that the
 *   stream has and a subscriber on this page wants
 * @property {(media: MediaStream) => void} arrived called once, when `media` may be shown; video that arrives later
 *   is added to it
 */

export class Arrival {
  #options;
  #timers;
  #drainedAt;
  #silentAt;
  #soonUntil = -Infinity;
  #stopped = false;
  /**
   * @type {import('./media-link.js').Transceivers | null} transceivers that may still deliver old packets and frames;
   * null if the slot's transceivers were unused, so that all their frames belong to this stream
   */
  #used;
  /** @type {Counts | null} the counts of `#used` when old media had drained; null before they were first read */
  #past = null;
  /** @type {MediaStream | null} */
  #media = null;

  /** @param {ArrivalOptions} options */
  constructor(options) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
    const { freedAt, transceivers } = options.slot;
    this.#used = freedAt === -Infinity ? null : transceivers;
    this.#drainedAt = freedAt + drainMs;
    this.#silentAt = options.clock.now() + silentMs;
    this.#look();
  }

  stop() {
    this.#stopped = true;
    this.#timers.clearAll();
  }

  /** Polls more often for `soonMs`, if video is expected. Call this when the video was requested again. */
  expectSoon() {
    if (this.#stopped || !this.#options.expected().video) return;
    this.#soonUntil = this.#options.clock.now() + soonMs;
    if (this.#timers.has('look')) this.#timers.set('look', 0, () => this.#look());
  }

  /**
   * Removes the video until new frames arrive, so that its last frame is not shown. Call this when video is no longer
   * expected.
   */
  withdraw() {
    const video = this.#media?.getTracks().find(({ kind }) => kind === 'video');
    if (!video) return;
    this.#media?.removeTrack(video);
    this.#used = this.#options.slot.transceivers;
    this.#past = null;
    this.#drainedAt = this.#options.clock.now() + drainMs;
    this.#stopped = false;
    this.#look();
  }

  async #look() {
    const { slot: { transceivers }, expected } = this.#options;
    this.#timers.clear('look');
    // If the media was handed out and no video is expected, skip the statistics, but keep polling: video may be
    // expected later.
    const isWaiting = !this.#media || expected().video;
    const counts = transceivers && isWaiting && await count(transceivers).catch(() => null);
    if (this.#stopped) return;
    if (transceivers && counts && transceivers === this.#options.slot.transceivers) this.#compare(transceivers, counts);
    if (this.#stopped) return;
    const isSoon = !this.#media || this.#options.clock.now() < this.#soonUntil;
    this.#timers.set('look', isSoon ? waitingMs : listeningMs, () => this.#look());
  }

  /** @param {import('./media-link.js').Transceivers} transceivers @param {Counts} counts */
  #compare(transceivers, counts) {
    const { clock, expected, MediaStream, arrived } = this.#options;
    if (this.#past === null || clock.now() < this.#drainedAt) this.#past = counts;
    const before = transceivers === this.#used ? this.#past : { packets: 0, frames: 0 };
    const hasFrames = counts.frames > before.frames;
    if (!this.#media) {
      const { audio, video } = expected();
      const isSilent = clock.now() >= this.#silentAt;
      if (video ? !hasFrames : audio && !isSilent && counts.packets <= before.packets) return;
      this.#media = new MediaStream([transceivers.audio.receiver.track]);
      if (hasFrames) this.#media.addTrack(transceivers.video.receiver.track);
      arrived(this.#media);
    } else if (hasFrames) {
      this.#media.addTrack(transceivers.video.receiver.track);
    }
    if (hasFrames) this.stop();
  }
}

/** @param {import('./media-link.js').Transceivers} transceivers @returns {Promise<Counts>} */
async function count({ audio, video }) {
  const [heard, seen] = await Promise.all([audio.receiver.getStats(), video.receiver.getStats()]);
  return { packets: sum(heard, 'packetsReceived'), frames: sum(seen, 'framesDecoded') };
}

/** @param {RTCStatsReport} report @param {string} name */
function sum(report, name) {
  let total = 0;
  report.forEach((entry) => { if (entry.type === 'inbound-rtp') total += entry[name] ?? 0; });
  return total;
}
