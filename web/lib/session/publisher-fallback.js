// Runs the audio fallback of a publisher while it is published. The rules are in `media/audio-fallback.js`.

import { Timers } from '../clock.js';
import { advance, dueAt, eventOf, unstopped } from '../media/audio-fallback.js';

/**
 * @typedef {object} FallbackOptions
 * @property {() => boolean} isTooSlow whether the network is too slow for the media being sent
 * @property {() => void} changed called when `isStopped` has changed
 * @property {(type: string, attributes: {reason?: string}) => void} tell emits an event
 */

export class PublisherFallback {
  #options;
  /** @type {import('../clock.js').Clock | null} null while not published */
  #clock = null;
  /** @type {Timers | null} */
  #timers = null;
  #state = unstopped;

  /** @param {FallbackOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** Whether the fallback has stopped the video. */
  get isStopped() {
    return this.#state.name === 'stopped';
  }

  /**
   * Starts the fallback, or stops it if `clock` is null. In both cases the state is reset.
   * @param {import('../clock.js').Clock | null} clock
   */
  run(clock) {
    this.#clock = null;
    this.#clear();
    this.#clock = clock;
    this.#timers = clock && new Timers(clock);
  }

  /**
   * Resets the fallback, because the program turned the video on or off.
   * @param {boolean} isOn
   */
  videoTurned(isOn) {
    const before = this.#state;
    this.#clear();
    const event = eventOf(before, unstopped);
    // If the video was stopped and is now turned off, do not report that it resumes.
    if (event && (isOn || before.name === 'warned')) this.#tell(event);
  }

  /** Evaluates the network. Call this when the judgment may have changed. */
  check() {
    if (!this.#clock || !this.#timers) return;
    const before = this.#state;
    const now = this.#clock.now();
    const after = advance(before, now, this.#options.isTooSlow());
    this.#state = after;
    const due = dueAt(after);
    if (due === null) this.#timers.clear('due');
    else this.#timers.set('due', Math.max(0, due - now), () => this.check());
    const event = eventOf(before, after);
    if (!event) return;
    if (after.name === 'stopped' || before.name === 'stopped') this.#options.changed();
    this.#tell(event);
  }

  #clear() {
    const wasStopped = this.isStopped;
    this.#timers?.clearAll();
    this.#state = unstopped;
    if (wasStopped) this.#options.changed();
  }

  /** @param {{type: string, reason?: string}} event */
  #tell({ type, ...attributes }) {
    this.#options.tell(type, attributes);
  }
}
