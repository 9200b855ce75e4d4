// Tells when the browser shows its permission prompt, which it does not say itself.

import { systemClock, Timers } from '../clock.js';

/** If the browser takes longer than this to answer, it is showing the prompt. */
const dialogMs = 500;

export class AccessDialog {
  #tell;
  #timers = new Timers(systemClock);

  /** @param {(type: 'accessDialogOpened' | 'accessDialogClosed') => void} tell */
  constructor(tell) {
    this.#tell = tell;
  }

  /** The browser was asked for devices. */
  begin() {
    this.#timers.set('dialog', dialogMs, () => this.#tell('accessDialogOpened'));
  }

  /** The browser has answered. */
  end() {
    const wasOpened = !this.#timers.has('dialog');
    this.cancel();
    if (wasOpened) this.#tell('accessDialogClosed');
  }

  cancel() {
    this.#timers.clearAll();
  }
}
