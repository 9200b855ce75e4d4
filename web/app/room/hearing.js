// Whether the microphone hears anything. Pure: levels and the time in, a verdict out.

/** A level above this is a sound, not the noise of the device; 0 to 1, linear. */
const audible = 0.01;
/** A microphone that worked is heard while it makes any noise at all, because its user may just listen. */
const alive = 0.0005;
/** After this time without a sound (milliseconds), the user is told. People are silent while they read, but not absolutely. */
const silence = 8_000;

export class Hearing {
  /** @type {number | null} */
  #since = null;
  /** @type {'unknown' | 'heard' | 'silent'} */
  verdict = 'unknown';

  /** Starts over, for another microphone or after it was muted. */
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
