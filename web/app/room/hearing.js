// Detects whether the microphone picks up sound, from levels and times that the caller passes in.

/** A level above this counts as sound, not as noise of the device; 0 to 1, linear. */
const audible = 0.01;
/**
 * Once sound was detected, a level above this is enough: the background noise of a working microphone exceeds it, even
 * if the user only listens.
 */
const alive = 0.0005;
/**
 * How long there must be no sound before the user is warned (milliseconds). Even a quiet user makes some sound in this
 * time.
 */
const silence = 8_000;

export class Hearing {
  /** @type {number | null} */
  #since = null;
  /** @type {'unknown' | 'heard' | 'silent'} */
  verdict = 'unknown';

  /** Resets the detection, for another microphone or after muting. */
  reset() {
    this.#since = null;
    this.verdict = 'unknown';
  }

  /** @param {number} level @param {number} now @returns {boolean} whether the verdict has changed */
  heard(level, now) {
    const before = this.verdict;
    if (level >= (before === 'heard' ? alive : audible)) {
      this.#since = now;
      this.verdict = 'heard';
    } else {
      this.#since ??= now;
      if (now - this.#since >= silence) this.verdict = 'silent';
    }
    return this.verdict !== before;
  }
}
