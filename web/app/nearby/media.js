// The camera and microphone of a call. This code sends nothing itself; the call publishes the publisher that is
// created here.
import { OT } from '../../lib/index.js';
import { showCondition } from '../shared/connection.js';
import { box } from '../shared/dom.js';
import { mediaTrouble } from '../shared/media-trouble.js';

export class Media {
  /** @type {any} the SDK's publisher; null until the devices are open, and after `close` */
  publisher = null;
  // Counts calls to `open` and `close`. If a publisher becomes ready after a later call to either, it is discarded.
  #turn = 0;

  /**
   * @param {import('../shared/strings.js').Strings} strings
   * @param {(event: import('./types.js').Event) => void} dispatch
   * @param {import('../shared/memory.js').DeviceMemory} devices storage for the most recently used devices
   */
  constructor(strings, dispatch, devices) {
    this.strings = strings;
    this.dispatch = dispatch;
    this.devices = devices;
  }

  /** @param {boolean} camera whether to open the camera in addition to the microphone */
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
   * Tries again without the saved devices, because they may be gone: the browser chooses the devices.
   * @param {any} failed
   * @param {boolean} camera
   * @param {number} turn
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
   * @param {boolean} camera
   * @param {{camera?: string, microphone?: string}} chosen
   * @param {(publisher: any, error?: {name: string}) => void} done
   */
  #make(camera, chosen, done) {
    const publisher = OT.initPublisher(box('you'), {
      insertMode: 'append', width: '100%', height: '100%', fitMode: 'cover', label: this.strings.you, name: '',
      videoSource: camera ? chosen.camera : null, audioSource: chosen.microphone,
    }, (/** @type {any} */ error) => done(publisher, error ?? undefined));
    showCondition(box('you'), publisher, 'mine', this.strings);
  }

  /** @param {any} publisher @param {boolean} asked whether a camera was requested */
  #opened(publisher, asked) {
    this.publisher = publisher;
    publisher.on({ mediaLost: (/** @type {any} */ event) => this.#lost(publisher, event), audioInputDeviceChanged: () => this.#back(publisher) });
    // If there is only a microphone, the SDK publishes only audio.
    this.dispatch({ type: 'mediaOn', camera: asked && !!publisher.getVideoSource().track });
  }

  /**
   * Handles an unplugged device that could not be replaced. Keeps the publisher even if it has nothing to send,
   * because the call continues and another device may be connected. The SDK switches to the next microphone that is
   * connected.
   * @param {any} publisher
   * @param {any} event
   */
  #lost(publisher, event) {
    event.preventDefault();
    if (publisher === this.publisher) this.dispatch({ type: 'mediaLost', kind: event.kind });
  }

  /** @param {any} publisher */
  #back(publisher) {
    if (publisher === this.publisher) this.dispatch({ type: 'mediaBack' });
  }

  /** @param {any} publisher @param {{name: string}} error */
  #failed(publisher, error) {
    publisher.destroy();
    this.dispatch({ type: 'mediaFailed', why: mediaTrouble(error) });
  }

  /** Opens a camera in addition to the microphone, which is in use. */
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
  }
}
