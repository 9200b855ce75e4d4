// "… is typing": repeated while it lasts. The receiver lets it expire, because the end notification can be lost.

/** How often to repeat it while the user types. */
const repeatMs = 2000;
/** When the partner's typing expires (two repeats and a slow network). */
const believeMs = 5000;

/** @typedef {import('../clock.js').Timers} Timers */

/** Our own typing: sent at once, then at most every `repeatMs`, and its end once. */
export class TypingSender {
  #send;
  #clock;
  #saidAt = -Infinity;
  #typing = false;

  /** @param {(typing: boolean) => void} send @param {import('../clock.js').Clock} clock */
  constructor(send, clock) {
    this.#send = send;
    this.#clock = clock;
  }

  /** @param {boolean} typing */
  set(typing) {
    if (!typing && !this.#typing) return;
    const now = this.#clock.now();
    if (typing && this.#typing && now - this.#saidAt < repeatMs) return;
    this.#typing = typing;
    this.#saidAt = now;
    this.#send(typing);
  }

  /** A message was sent, which implies that typing has ended. */
  finished() {
    this.#typing = false;
  }
}

/** The partner's typing. */
export class TypingReceiver {
  #tell;
  #timers;
  #typing = false;

  /** @param {(typing: boolean) => void} tell only when it changes @param {Timers} timers */
  constructor(tell, timers) {
    this.#tell = tell;
    this.#timers = timers;
  }

  /** @param {boolean} typing */
  heard(typing) {
    if (typing) this.#timers.set('typing', believeMs, () => this.heard(false));
    else this.#timers.clear('typing');
    if (typing === this.#typing) return;
    this.#typing = typing;
    this.#tell(typing);
  }
}
