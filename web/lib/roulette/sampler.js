// Samples of the user's camera, for servers whose operator checks video chats (protocol §5). A sample is sent at regular intervals, if the
// person has agreed. One that cannot be made or sent is skipped: the chat must not depend on it.

import { Timers } from '../clock.js';

/**
 * The qualities to encode a sample with, best first. The next one is used if the image is too large.
 */
const qualities = [0.7, 0.4, 0.2];
/** The time from the begin of a chat to the first sample (milliseconds): the camera has sent its first frames then. */
const firstMs = 1000;
/** How long sending a sample may take (milliseconds). */
export const sendMs = 15_000;

/**
 * @typedef {object} SamplerOptions
 * @property {import('../signaling/messages.js').Sampling} sampling
 * @property {(width: number, quality: number) => Promise<Blob | null>} frame returns the camera's frame as JPEG; null while it is off
 * @property {() => boolean} isAllowed whether the person has agreed to samples; asked before each of them
 * @property {(sample: Blob, signal: AbortSignal) => Promise<unknown>} send `signal` aborts after a time limit, and at the end of the chat
 * @property {import('../clock.js').Clock} clock
 */

export class Sampler {
  #options;
  #timers;
  #over = false;
  /** @type {AbortController | null} of the sample that is being sent */
  #sending = null;

  /** @param {SamplerOptions} options */
  constructor(options) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
  }

  begin() {
    this.#schedule(Math.min(firstMs, this.#options.sampling.intervalMs));
  }

  end() {
    this.#over = true;
    this.#timers.clearAll();
    this.#sending?.abort();
  }

  /** @param {number} ms */
  #schedule(ms) {
    if (!this.#over) this.#timers.set('sample', ms, () => this.#sample());
  }

  async #sample() {
    // Count from the start of this sample, but never send two at the same time: a slow upload delays the next one.
    const { sampling, clock, isAllowed } = this.#options;
    const due = clock.now() + sampling.intervalMs;
    try {
      const sample = isAllowed() ? await this.#encode() : null;
      // The person may have changed their mind while the image was encoded.
      if (sample && !this.#over && isAllowed()) await this.#send(sample);
    } catch {
      // The next sample is enough.
    }
    this.#schedule(Math.max(0, due - clock.now()));
  }

  /** @param {Blob} sample */
  async #send(sample) {
    const sending = this.#sending = new AbortController();
    this.#timers.set('send', sendMs, () => sending.abort());
    try {
      await this.#options.send(sample, sending.signal);
    } finally {
      this.#timers.clear('send');
      this.#sending = null;
    }
  }

  /** @returns {Promise<Blob | null>} */
  async #encode() {
    const { sampling, frame } = this.#options;
    for (const quality of qualities) {
      const sample = await frame(sampling.width, quality);
      if (!sample || sample.size <= sampling.maxBytes) return sample;
    }
    return null;
  }
}

/**
 * @param {string} url the URL of `POST /v1/roulette/sample` @param {string} token of the session in which the client publishes
 * @param {Blob} sample @param {AbortSignal} signal
 */
export async function sendSample(url, token, sample, signal) {
  await fetch(url, {
    method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'image/jpeg' }, body: sample, cache: 'no-store', signal,
  });
}
