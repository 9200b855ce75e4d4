// Handles a publisher's device that stops unexpectedly, for example because a headset was unplugged. Replaces a
// microphone with the default one, or with the next one that is connected. Never replaces a camera, because another
// one may show something private.

import { OTEvent } from '../events.js';

/** @typedef {import('../media/capture.js').Kind} Kind */
/**
 * @typedef {object} LossOptions
 * @property {() => Promise<MediaStreamTrack | null>} replace switches to the default microphone
 * @property {(device: import('../media/devices.js').Device) => void} replaced called with the new microphone
 * @property {() => void} missing called when no other microphone could be opened
 */

class MicrophoneLoss {
  #options;
  isMissing = false;
  #done = new AbortController();

  /** @param {LossOptions} options */
  constructor(options) {
    this.#options = options;
    const devices = globalThis.navigator?.mediaDevices;
    devices?.addEventListener?.('devicechange', () => { if (this.isMissing) this.#try(); }, { signal: this.#done.signal });
  }

  /** Replaces the microphone, which stopped. Reports `missing` if that fails. */
  async lost() {
    if (this.isMissing) return;
    this.isMissing = true;
    if (!await this.#try() && this.isMissing) this.#options.missing();
  }

  /** Forgets the loss, because the microphone was replaced, here or by the program, or because the publisher ended. */
  end() {
    this.isMissing = false;
  }

  stop() {
    this.end();
    this.#done.abort();
  }

  /** @returns {Promise<boolean>} whether the publisher has a microphone again */
  async #try() {
    // If this fails, for example because the microphone is in use, the next `devicechange` event causes another
    // attempt.
    const track = await this.#options.replace().catch(() => null);
    if (!track || !this.isMissing) return false;
    this.end();
    this.#options.replaced({ kind: 'audioInput', deviceId: track.getSettings().deviceId ?? '', label: track.label });
    return true;
  }
}

/**
 * @typedef {object} DeviceOptions
 * @property {import('../media/capture.js').Capture} capture
 * @property {() => Promise<MediaStreamTrack | null>} replace switches to the default microphone
 * @property {(event: OTEvent, whenAllowed?: () => void) => void} dispatch emits an event, and then calls `whenAllowed`
 *   unless the program prevented the default action
 * @property {() => void} over called when nothing is left to send
 */

export class DeviceLoss {
  #options;
  #microphone;
  #isOver = false;

  /** @param {DeviceOptions} options */
  constructor(options) {
    this.#options = options;
    this.#microphone = new MicrophoneLoss({
      replace: options.replace,
      replaced: (device) => options.dispatch(new OTEvent('audioInputDeviceChanged', { device })),
      missing: () => this.#missing('audio'),
    });
  }

  /** @param {MediaStreamTrack} track a track that stopped unexpectedly */
  stopped(track) {
    const { capture, dispatch, over } = this.#options;
    const kind = /** @type {Kind} */ (track.kind);
    dispatch(new OTEvent('mediaStopped', { track }, true), () => {
      if (this.#isOver) return;
      // The user stopped the screen share, so the publisher ends.
      if (capture.videoType === 'screen' && kind === 'video') over();
      else if (kind === 'audio' && capture.hasScreenSound) return;
      else if (kind === 'audio' && capture.owns(track)) this.#microphone.lost();
      else this.#missing(kind);
    });
  }

  /** Forgets a lost microphone, because the program chose another one. */
  end() {
    this.#microphone.end();
  }

  stop() {
    this.#isOver = true;
    this.#microphone.stop();
  }

  /**
   * Reports that no device of this kind is left. If then nothing is left to send, the publisher ends, unless the
   * program prevents it, for example to set another source.
   * @param {Kind} kind
   */
  #missing(kind) {
    const { capture, dispatch, over } = this.#options;
    dispatch(new OTEvent('mediaLost', { kind }, true), () => {
      // A microphone that stopped together with the camera may still be replaced.
      const mayReturn = kind === 'video' && capture.owns(capture.source('audio')) && !this.#microphone.isMissing;
      if (!mayReturn && capture.tracks().every(({ readyState }) => readyState === 'ended')) over();
    });
  }
}
