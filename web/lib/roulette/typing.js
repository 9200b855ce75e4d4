// "… is typing": said now and then while it lasts, believed for a while only, because the word that it ended can be lost.

/** While somebody types it is said again this often. */
const repeatMs = 2000;
/** Without another word it is over (two repeats and a slow network). */
const believeMs = 5000;

/** @typedef {import('../clock.js').Timers} Timers */

/** Says it for us: at once, then no oftener than `repeatMs`, and once that it is over. */
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

  /** A message was sent: whoever gets it knows that the typing is over. */
  finished() {
    this.#typing = false;
  }
}

/** Believes it of the other. */
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
