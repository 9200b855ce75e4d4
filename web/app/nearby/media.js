// Camera and microphone of a call. Nothing leaves the browser from here: the publisher it makes is handed to the call.
import { OT } from '../../lib/index.js';
import { box } from '../shared/dom.js';
import { mediaTrouble } from '../shared/media-trouble.js';

export class Media {
  /** @type {any} The SDK's Publisher, or null */
  publisher = null;
  // Counts openings and closings: an answer that belongs to an earlier one is thrown away.
  #turn = 0;
  #isUnheard = false;

  /**
   * @param {string} label @param {(event: import('./types.js').Event) => void} dispatch
   * @param {import('../shared/memory.js').DeviceMemory} devices those chosen last
   */
  constructor(label, dispatch, devices) {
    this.label = label;
    this.dispatch = dispatch;
    this.devices = devices;
    // Whatever was plugged in may be a microphone.
    navigator.mediaDevices?.addEventListener?.('devicechange', () => { if (this.#isUnheard) this.#findMicrophone(); });
  }

  /** @param {boolean} camera without it, no camera's light goes on */
  open(camera) {
    this.close();
    if (!window.isSecureContext || !navigator.mediaDevices) {
      this.dispatch({ type: 'mediaFailed', why: 'insecure' });
      return;
    }
    const turn = this.#turn;
    const chosen = this.devices.recall();
    this.#make(camera, chosen, (publisher, error) => {
      if (turn !== this.#turn) publisher.destroy();
      else if (!error) this.#opened(publisher, camera);
      else if (chosen.camera || chosen.microphone) this.#openAny(publisher, camera, turn);
      else this.#failed(publisher, error);
    });
  }

  /**
   * The devices chosen last time may be gone: any will do.
   * @param {any} failed @param {boolean} camera @param {number} turn
   */
  #openAny(failed, camera, turn) {
    failed.destroy();
    this.#make(camera, {}, (publisher, error) => {
      if (turn !== this.#turn) publisher.destroy();
      else if (error) this.#failed(publisher, error);
      else this.#opened(publisher, camera);
    });
  }

  /**
   * @param {boolean} camera @param {{camera?: string, microphone?: string}} chosen
   * @param {(publisher: any, error?: {name: string}) => void} done
   */
  #make(camera, chosen, done) {
    const publisher = OT.initPublisher(box('you'), {
      insertMode: 'append', width: '100%', height: '100%', fitMode: 'cover', label: this.label, name: '',
      videoSource: camera ? chosen.camera : null, audioSource: chosen.microphone,
    }, (/** @type {any} */ error) => done(publisher, error ?? undefined));
  }

  /** @param {any} publisher @param {boolean} asked whether a camera was asked for */
  #opened(publisher, asked) {
    this.publisher = publisher;
    publisher.on('mediaStopped', (/** @type {any} */ event) => this.#stopped(publisher, event));
    // Where there is only a microphone, the SDK takes that.
    this.dispatch({ type: 'mediaOn', camera: asked && !!publisher.getVideoSource().track });
  }

  /**
   * A device was unplugged. The publisher lives on, also with nothing to send: the call does, and there may be another.
   * @param {any} publisher @param {any} event
   */
  #stopped(publisher, event) {
    event.preventDefault();
    if (publisher !== this.publisher) return;
    const { kind } = event.track;
    this.dispatch({ type: 'mediaLost', kind });
    if (kind !== 'audio') return;
    this.#isUnheard = true;
    this.#findMicrophone();
  }

  async #findMicrophone() {
    const { publisher } = this;
    try {
      await publisher?.setAudioSource(true);
    } catch {
      // There is none, or none that is free: the browser says when another comes.
      return;
    }
    if (publisher !== this.publisher || !this.#isUnheard) return;
    this.#isUnheard = false;
    this.dispatch({ type: 'mediaBack' });
  }

  /** @param {any} publisher @param {{name: string}} error */
  #failed(publisher, error) {
    publisher.destroy();
    this.dispatch({ type: 'mediaFailed', why: mediaTrouble(error) });
  }

  /** Beside the microphone, which is in use. */
  async addCamera() {
    const { publisher } = this;
    try {
      await publisher?.setVideoSource(true);
      if (publisher && publisher === this.publisher) this.dispatch({ type: 'mediaOn', camera: true });
    } catch (error) {
      if (publisher === this.publisher) this.dispatch({ type: 'mediaFailed', why: mediaTrouble(error) });
    }
  }

  async switchCamera() {
    try {
      const next = await this.publisher?.cycleVideo();
      if (next?.deviceId) this.devices.remember({ camera: next.deviceId });
    } catch (error) {
      this.dispatch({ type: 'mediaFailed', why: mediaTrouble(error) });
    }
  }

  /** @param {boolean} on */
  mute(on) {
    this.publisher?.publishAudio(!on);
  }

  close() {
    this.#turn += 1;
    this.publisher?.destroy();
    this.publisher = null;
    this.#isUnheard = false;
  }
}
