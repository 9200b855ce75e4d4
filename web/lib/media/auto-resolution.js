// OpenTok's preferred resolution 'auto': a subscriber requests the size at which its video is shown, and no video
// while it is hidden. A changing layout or scrolling must not cause a request for every step, so a change to the view
// (size and visibility) takes effect only after a delay. Exception: a hidden video that becomes visible is requested
// immediately.

import { Timers } from '../clock.js';
import { preferredResolution } from './preference.js';
import { isSameView, unknownView, ViewObserver } from './view.js';

/** @typedef {import('./view.js').View} View */

/** The delay before a larger view takes effect. Shorter than `shrinkMs`, because the video is blurred until then. */
const growMs = 250;
/** The delay before a smaller or hidden view takes effect. A video that resumes needs a keyframe, which is large. */
const shrinkMs = 1000;

/**
 * Delays changes to a view. When the delay is over, `view` becomes the latest view that was measured. If the measured
 * view returns to `view` before that, nothing changes.
 */
export class SteadyView {
  #clock;
  #timers;
  #changed;
  #dueAt = Infinity;
  /** @type {View} */
  view;
  /** @type {View} */
  #latest;

  /** @param {View} view the initial view @param {import('../clock.js').Clock} clock @param {() => void} changed */
  constructor(view, clock, changed) {
    this.view = this.#latest = view;
    this.#clock = clock;
    this.#timers = new Timers(clock);
    this.#changed = changed;
  }

  /** @param {View} view */
  see(view) {
    this.#latest = view;
    const delay = this.#delay;
    if (delay === null) return this.stop();
    const dueAt = this.#clock.now() + delay;
    // A pending change keeps its deadline or gets an earlier one, so that a view that changes constantly is followed
    // too.
    if (dueAt >= this.#dueAt) return;
    this.#dueAt = dueAt;
    if (delay === 0) this.#settle();
    else this.#timers.set('settle', delay, () => this.#settle());
  }

  stop() {
    this.#dueAt = Infinity;
    this.#timers.clearAll();
  }

  /** Returns how long to wait before the latest view becomes `view` (milliseconds); null if the two are the same. */
  get #delay() {
    const { view } = this;
    const latest = this.#latest;
    if (isSameView(view, latest)) return null;
    if (latest.isHidden) return shrinkMs;
    return view.isHidden ? 0 : grows(view.size, latest.size) ? growMs : shrinkMs;
  }

  #settle() {
    this.stop();
    this.view = this.#latest;
    this.#changed();
  }
}

/** @param {View['size']} before @param {View['size']} after null: unknown, which requests the largest video */
const grows = (before, after) => before !== null && (after === null || after.width > before.width || after.height > before.height);

/**
 * @typedef {object} AutoOptions
 * @property {HTMLVideoElement} video
 * @property {import('../clock.js').Clock} clock
 * @property {() => import('./preference.js').Size} picture returns the size of the stream's video
 * @property {'cover' | 'contain'} fitMode
 * @property {() => void} changed called when `isHidden` or `preference` has changed
 */

/** Follows the view of one subscriber's video, and converts its size to a preferred resolution. */
export class AutoResolution {
  #options;
  #observer;
  #steady;

  /** @param {AutoOptions} options */
  constructor(options) {
    this.#options = options;
    this.#observer = new ViewObserver(options.video, () => this.look());
    this.#steady = new SteadyView(this.#measured, options.clock, options.changed);
  }

  get isHidden() {
    return this.#steady.view.isHidden;
  }

  /** @returns {import('./preference.js').Preference} */
  get preference() {
    return preferredResolution(this.#steady.view.size);
  }

  /** Measures the video again. Call this when the size of the stream's video has changed. */
  look() {
    this.#steady.see(this.#measured);
  }

  stop() {
    this.#observer.stop();
    this.#steady.stop();
  }

  get #measured() {
    const { picture, fitMode } = this.#options;
    return this.#observer?.look(picture(), fitMode) ?? unknownView;
  }
}
