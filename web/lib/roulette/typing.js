// "… is typing" notifications. The sender repeats them while the user types. The receiver lets them expire, because
// the notification that typing has ended can be lost.

/** How often to repeat the notification while the user types (milliseconds). */
const repeatMs = 2000;
/**
 * After this time (milliseconds) without a notification, the partner no longer counts as typing. Long enough for two
 * repeats, even on a slow network.
 */
const believeMs = 5000;

/** @typedef {import('../clock.js').Timers} Timers */

/**
 * Notifies the partner whether this user is typing: immediately when typing starts, then at most once per `repeatMs`,
 * and once when it ends.
 */
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

  /** Ends typing without a notification, because sending a message implies that the person has stopped typing. */
  finished() {
    this.#typing = false;
  }
}

/** Tracks whether the partner is typing. */
export class TypingReceiver {
  #tell;
  #timers;
  #typing = false;

  /** @param {(typing: boolean) => void} tell called only when the state changes @param {Timers} timers */
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
