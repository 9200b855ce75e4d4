// When a slot shows its new stream. Slots are used again, and their decoder keeps the last picture of the stream before: nobody
// may see the former partner under the next one's name. So media is handed out once frames were decoded that are new.

import { Timers } from '../clock.js';

/** While somebody looks at an empty frame. */
const waitingMs = 20;
/** While there is sound, and a picture may follow. */
const listeningMs = 200;
/** Packets of the stream before that are under way, or wait to be decoded, when its slot is given to the next. */
const drainMs = 300;

/** @typedef {{packets: number, frames: number}} Counts */
/**
 * @typedef {object} ArrivalOptions
 * @property {import('./media-link.js').Slot} slot
 * @property {import('../clock.js').Clock} clock
 * @property {typeof MediaStream} MediaStream
 * @property {() => {audio: boolean, video: boolean}} expected what the stream has and somebody here wants
 * @property {(media: MediaStream) => void} arrived once; should its picture come later, it is added
 */

export class Arrival {
  #options;
  #timers;
  #drainedAt;
  #stopped = false;
  /** @type {import('./media-link.js').Transceivers | null} with a past; those of a new connection begin at nothing */
  #used;
  /** @type {Counts | null} */
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
    this.#look();
  }

  stop() {
    this.#stopped = true;
    this.#timers.clearAll();
  }

  /** No picture is expected any more: the last one is taken away, until there are new ones. */
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
    // Nothing to look for while only sound was sent, and it is here.
    const isWaiting = !this.#media || expected().video;
    const counts = transceivers && isWaiting && await count(transceivers).catch(() => null);
    if (this.#stopped) return;
    if (transceivers && counts && transceivers === this.#options.slot.transceivers) this.#compare(transceivers, counts);
    if (!this.#stopped) this.#timers.set('look', this.#media ? listeningMs : waitingMs, () => this.#look());
  }

  /** @param {import('./media-link.js').Transceivers} transceivers @param {Counts} counts */
  #compare(transceivers, counts) {
    const { clock, expected, MediaStream, arrived } = this.#options;
    if (this.#past === null || clock.now() < this.#drainedAt) this.#past = counts;
    const before = transceivers === this.#used ? this.#past : { packets: 0, frames: 0 };
    const hasFrames = counts.frames > before.frames;
    if (!this.#media) {
      const { audio, video } = expected();
      if (video ? !hasFrames : audio && counts.packets <= before.packets) return;
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
