// Sounds: the ring of a call, a knock for a second call, and the ringback tone for the caller. Made with Web Audio, so that
// nothing is loaded. Browsers play no sound before the first user gesture; the page then shows a hint.

import { mayPlay, tone } from '../shared/tone.js';

/** @typedef {'none' | 'ring' | 'knock' | 'ringback'} Sound */
/**
 * The tones of each sound as [frequency in hertz, start, end], and the period after which the sound repeats. Times are in
 * seconds.
 * @type {Record<Exclude<Sound, 'none'>, {tones: [number, number, number][], every: number, volume: number}>}
 */
const sounds = {
  ring: { tones: [[660, 0, 0.18], [880, 0.2, 0.38], [660, 0.4, 0.58], [880, 0.6, 0.95]], every: 2.6, volume: 0.22 },
  knock: { tones: [[520, 0, 0.09], [520, 0.16, 0.25]], every: 4, volume: 0.12 },
  ringback: { tones: [[425, 0, 1]], every: 4, volume: 0.06 },
};

export class Ring {
  /** @type {Sound} */
  #sound = 'none';
  /** @type {AudioContext | null} */
  #context = null;
  #timer = 0;
  /** @type {AbortController | null} */
  #awaiting = null;

  /** @param {(silent: boolean) => void} tell called with true when a sound should play but the browser blocks it, otherwise with false */
  constructor(tell) {
    this.tell = tell;
  }

  /** @param {Sound} sound */
  set(sound) {
    if (sound === this.#sound) return;
    this.#sound = sound;
    this.#stop();
    if (sound === 'none') return;
    if (mayPlay()) this.#begin();
    else this.#awaitGesture();
  }

  #begin() {
    const context = this.#context = new AudioContext();
    const reported = () => { if (context === this.#context) this.tell(context.state !== 'running'); };
    context.addEventListener('statechange', reported);
    context.resume().then(reported, () => {});
    this.#play();
  }

  #play() {
    const context = this.#context;
    if (!context || this.#sound === 'none') return;
    const { tones, every, volume } = sounds[this.#sound];
    for (const [frequency, from, to] of tones) tone(context, frequency, context.currentTime + from, context.currentTime + to, volume);
    this.#timer = window.setTimeout(() => this.#play(), every * 1000);
  }

  #awaitGesture() {
    this.tell(true);
    const gesture = this.#awaiting = new AbortController();
    for (const name of ['pointerup', 'keyup']) {
      window.addEventListener(name, () => {
        gesture.abort();
        this.tell(false);
        this.#begin();
      }, { signal: gesture.signal, capture: true });
    }
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#awaiting?.abort();
    this.#awaiting = null;
    this.#context?.close().catch(() => {});
    this.#context = null;
    this.tell(false);
  }
}
