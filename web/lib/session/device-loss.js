// What a publisher does when its microphone stops by itself, for example because a headset was unplugged: it takes the default
// one instead, or the next one that is connected. A camera is not replaced, because another one may show what it should not.

/**
 * @typedef {object} LossOptions
 * @property {() => Promise<MediaStreamTrack | null>} replace takes the default microphone
 * @property {(device: import('../media/devices.js').Device) => void} replaced
 * @property {() => void} missing there is no other microphone now
 */

export class MicrophoneLoss {
  #options;
  isMissing = false;
  #done = new AbortController();

  /** @param {LossOptions} options */
  constructor(options) {
    this.#options = options;
    const devices = globalThis.navigator?.mediaDevices;
    devices?.addEventListener?.('devicechange', () => { if (this.isMissing) this.#try(); }, { signal: this.#done.signal });
  }

  async lost() {
    if (this.isMissing) return;
    this.isMissing = true;
    if (!await this.#try() && this.isMissing) this.#options.missing();
  }

  /** Forgets the loss, because the program chose a microphone or the publisher ended. */
  end() {
    this.isMissing = false;
  }

  stop() {
    this.end();
    this.#done.abort();
  }

  /** @returns {Promise<boolean>} whether there is a microphone again */
  async #try() {
    // It may be in use. The next change of devices tries again.
    const track = await this.#options.replace().catch(() => null);
    if (!track || !this.isMissing) return false;
    this.end();
    this.#options.replaced({ kind: 'audioInput', deviceId: track.getSettings().deviceId ?? '', label: track.label });
    return true;
  }
}
