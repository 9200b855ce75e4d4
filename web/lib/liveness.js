// Whether the other end is still there (protocol §1): after a silence ask, after another silence give up. Only what really
// arrived counts, so a timer that a background tab delayed by a minute does not condemn a socket that was heard meanwhile.

export class Liveness {
  #heardAt;
  #silenceMs;
  /** @type {number | null} */
  #askedAt = null;

  /** @param {number} now @param {number} silenceMs */
  constructor(now, silenceMs) {
    this.#heardAt = now;
    this.#silenceMs = silenceMs;
  }

  /** @param {number} now */
  heard(now) {
    this.#heardAt = now;
    this.#askedAt = null;
  }

  /** @param {number} now @returns {'ask' | 'dead' | null} */
  check(now) {
    if (this.#askedAt !== null) return now - this.#askedAt >= this.#silenceMs ? 'dead' : null;
    if (now - this.#heardAt < this.#silenceMs) return null;
    this.ask(now);
    return 'ask';
  }

  /**
   * Ask at once, whatever was heard: the network changed.
   * @param {number} now
   */
  ask(now) {
    this.#askedAt ??= now;
  }

  /** When to check next. */
  get deadline() {
    return (this.#askedAt ?? this.#heardAt) + this.#silenceMs;
  }
}
