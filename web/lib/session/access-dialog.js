// Detects when the browser shows its permission prompt, which browsers do not report.

import { systemClock, Timers } from '../clock.js';

/** If the browser takes longer than this to answer, assume that it is showing the prompt (milliseconds). */
const dialogMs = 500;

export class AccessDialog {
  #tell;
  #timers = new Timers(systemClock);

  /** @param {(type: 'accessDialogOpened' | 'accessDialogClosed') => void} tell */
  constructor(tell) {
    this.#tell = tell;
  }

  /** Call this when devices were requested from the browser. */
  begin() {
    this.#timers.set('dialog', dialogMs, () => this.#tell('accessDialogOpened'));
  }

  /** Call this when the browser has answered. */
  end() {
    const wasOpened = !this.#timers.has('dialog');
    this.cancel();
    if (wasOpened) this.#tell('accessDialogClosed');
  }

  cancel() {
    this.#timers.clearAll();
  }
}
