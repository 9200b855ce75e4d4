// Samples of the user's camera, for servers whose operator checks video chats (protocol §5). A sample is sent at regular intervals. One
// that cannot be made or sent is skipped: the chat must not depend on it.

import { Timers } from '../clock.js';

/**
 * The qualities to encode a sample with, best first. The next one is used if the image is too large.
 */
const qualities = [0.7, 0.4, 0.2];
/** The time from the begin of a chat to the first sample (milliseconds): the camera has sent its first frames then. */
const firstMs = 1000;

/**
 * @typedef {object} SamplerOptions
 * @property {import('../signaling/messages.js').Sampling} sampling
 * @property {(width: number, quality: number) => Promise<Blob | null>} frame returns the camera's frame as JPEG; null while it is off
 * @property {(sample: Blob) => Promise<unknown>} send
 * @property {import('../clock.js').Clock} clock
 */

export class Sampler {
  #options;
  #timers;
  #over = false;

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
  }

  /** @param {number} ms */
  #schedule(ms) {
    if (!this.#over) this.#timers.set('sample', ms, () => this.#sample());
  }

  async #sample() {
    // Count from the start of this sample, but never send two at the same time: a slow upload delays the next one.
    const { sampling, clock } = this.#options;
    const due = clock.now() + sampling.intervalMs;
    try {
      const sample = await this.#encode();
      if (sample && !this.#over) await this.#options.send(sample);
    } catch {
      // The next sample is enough.
    }
    this.#schedule(Math.max(0, due - clock.now()));
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
 * @param {Blob} sample
 */
export async function sendSample(url, token, sample) {
  await fetch(url, {
    method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'image/jpeg' }, body: sample, cache: 'no-store',
  });
}
