// Camera and microphone before and during a chat or a room: the preview, the device pickers and the level meter. Sends nothing
// itself: the roulette or the room publishes the publisher that this file creates.
import { OT } from '../../lib/index.js';
import { showCondition } from './connection.js';
import { box, byId, setText, show } from './dom.js';
import { mediaTrouble } from './media-trouble.js';

/** Returns true if the page may use the camera. Without HTTPS, browsers do not define `mediaDevices`. */
export const pageIsSecure = () => window.isSecureContext && !!navigator.mediaDevices?.getUserMedia;

/** Returns true if the camera and microphone were allowed earlier, so that opening them shows no prompt. */
export async function allowedBefore() {
  try {
    const names = /** @type {PermissionName[]} */ (/** @type {string[]} */ (['camera', 'microphone']));
    const answers = await Promise.all(names.map((name) => navigator.permissions.query({ name })));
    return answers.every((answer) => answer.state === 'granted');
  } catch {
    return false; // Not every browser knows these permission names.
  }
}

/**
 * Runs a function after the first user gesture, or immediately if there was one, or if the browser does not report
 * whether there was. Before the first gesture, browsers measure no audio level, and log a warning if a page tries to
 * measure it.
 * @param {() => void} run
 */
function afterGesture(run) {
  const { userActivation } = /** @type {{userActivation?: {hasBeenActive: boolean}}} */ (navigator);
  if (userActivation?.hasBeenActive ?? true) return run();
  const done = new AbortController();
  for (const gesture of ['pointerup', 'keyup']) {
    window.addEventListener(gesture, () => { done.abort(); run(); }, { signal: done.signal, capture: true });
  }
}

/**
 * @typedef {object} PreviewOptions
 * @property {() => object} [publisherOptions] returns more options for the SDK's publisher, such as the video resolution
 * @property {(audioLevel: number) => void} [heard] called with the microphone level, from 0 to 1
 * @property {boolean} [keepsLost] whether to keep the publisher when a device was disconnected or could not be
 *   changed, so that the other device continues. Otherwise, losing one device ends both
 */

export class Preview {
  /** @type {any} the SDK's publisher; null until the devices are open, and after `close` */
  publisher = null;
  // Counts calls to `open` and `close`. If a publisher becomes ready after a later call to either, it is discarded.
  #turn = 0;
  #level = box('level');
  /** @type {import('./memory.js').Devices} the devices that the pickers show as in use */
  #used = {};
  #pickers = { camera: byId('camera', HTMLSelectElement), microphone: byId('microphone', HTMLSelectElement) };

  /**
   * @param {import('./strings.js').Strings} strings
   * @param {(event: {type: string, [member: string]: any}) => void} dispatch
   * @param {import('./memory.js').DeviceMemory} devices storage for the most recently used devices
   * @param {PreviewOptions} [options]
   */
  constructor(strings, dispatch, devices, options = {}) {
    this.options = options;
    this.strings = strings;
    this.dispatch = dispatch;
    this.devices = devices;
    this.#pickers.camera.addEventListener('change', () => this.#pick('camera'));
    this.#pickers.microphone.addEventListener('change', () => this.#pick('microphone'));
    navigator.mediaDevices?.addEventListener?.('devicechange', () => this.#listDevices());
  }

  /** @param {{camera: boolean, muted: boolean, cameraOff: boolean}} options */
  open({ camera, muted, cameraOff }) {
    this.close();
    const turn = this.#turn;
    if (!pageIsSecure()) {
      this.dispatch({ type: 'mediaFailed', why: 'insecure' });
      return;
    }
    const chosen = this.devices.recall();
    this.#make({ camera, muted, cameraOff, chosen }, (publisher, error) => {
      if (turn !== this.#turn) {
        publisher.destroy();
      } else if (!error) {
        this.#opened(publisher, camera);
      } else if (chosen.camera || chosen.microphone) {
        // The saved devices may be gone, so try again with any devices.
        publisher.destroy();
        this.#make({ camera, muted, cameraOff, chosen: {} }, (second, trouble) => {
          if (turn !== this.#turn) second.destroy();
          else if (trouble) this.#failed(second, trouble);
          else this.#opened(second, camera);
        });
      } else {
        this.#failed(publisher, error);
      }
    });
  }

  /**
   * @param {{camera: boolean, muted: boolean, cameraOff: boolean, chosen: {camera?: string, microphone?: string}}} options
   * @param {(publisher: any, error?: {name: string}) => void} done
   */
  #make({ camera, muted, cameraOff, chosen }, done) {
    const publisher = OT.initPublisher(box('you'), {
      insertMode: 'append', width: '100%', height: '100%', fitMode: 'cover',
      label: this.strings.you, name: '', publishAudio: !muted, publishVideo: camera && !cameraOff,
      ...this.options.publisherOptions?.(),
      videoSource: camera ? chosen.camera : null, audioSource: chosen.microphone,
    }, (/** @type {any} */ error) => done(publisher, error ?? undefined));
    showCondition(box('you'), publisher, 'mine', this.strings);
  }

  /** @param {any} publisher @param {boolean} asked whether a camera was requested */
  #opened(publisher, asked) {
    this.publisher = publisher;
    // If there is only a microphone, the SDK publishes only audio.
    const camera = asked && !!publisher.getVideoSource().track;
    afterGesture(() => publisher.on('audioLevelUpdated', (/** @type {{audioLevel: number}} */ event) => {
      this.#showLevel(event.audioLevel);
      this.options.heard?.(event.audioLevel);
    }));
    // `mediaLost` reports a disconnected device that was not replaced. The SDK replaces a microphone if there is
    // another one.
    publisher.on('mediaLost', (/** @type {any} */ event) => {
      if (this.options.keepsLost) event.preventDefault();
      if (publisher !== this.publisher) return;
      this.#listDevices();
      this.dispatch({ type: 'mediaLost', kind: event.kind });
    });
    publisher.on('audioInputDeviceChanged', () => {
      this.#listDevices();
      if (publisher === this.publisher && this.options.keepsLost) this.dispatch({ type: 'mediaBack' });
    });
    show(box('camera-picker'), camera);
    this.#listDevices();
    this.dispatch({ type: 'mediaOn', camera });
  }

  /** @param {any} publisher @param {{name: string}} error */
  #failed(publisher, error) {
    publisher.destroy();
    this.dispatch({ type: 'mediaFailed', why: mediaTrouble(error) });
  }

  /** Opens a camera in addition to the microphone, which is in use. */
  async addCamera() {
    const { publisher } = this;
    const { camera } = this.devices.recall();
    try {
      // If the saved camera cannot be opened, use any other one: it may be gone.
      await publisher?.setVideoSource(camera ?? true).catch((/** @type {Error} */ error) => {
        if (camera === undefined) throw error;
        return publisher.setVideoSource(true);
      });
      if (!publisher || publisher !== this.publisher) return;
      publisher.publishVideo(true);
      show(box('camera-picker'), true);
      this.#listDevices();
      this.dispatch({ type: 'mediaOn', camera: true });
    } catch (error) {
      if (publisher === this.publisher) this.dispatch({ type: 'cameraFailed', why: mediaTrouble(error) });
    }
  }

  close() {
    this.#turn += 1;
    this.publisher?.destroy();
    this.publisher = null;
    this.#showLevel(0);
  }

  /** @param {number} audioLevel 0 to 1, linear. The bar shows it on a logarithmic scale, like human hearing */
  #showLevel(audioLevel) {
    const shown = audioLevel > 0 ? Math.min(1, Math.max(0, 1 + Math.log10(audioLevel) / 2)) : 0;
    this.#level.style.setProperty('--level', shown.toFixed(2));
    this.#level.setAttribute('aria-valuenow', String(Math.round(shown * 100)));
  }

  #listDevices() {
    if (!this.publisher) return;
    OT.getDevices((/** @type {any} */ error, /** @type {{kind: string, deviceId: string, label: string}[]} */ devices) => {
      if (error || !this.publisher) return;
      this.#fill('camera', devices.filter((device) => device.kind === 'videoInput'), this.strings.unnamedCamera);
      this.#fill('microphone', devices.filter((device) => device.kind === 'audioInput'), this.strings.unnamedMicrophone);
    });
  }

  /**
   * @param {'camera' | 'microphone'} kind
   * @param {{deviceId: string, label: string}[]} devices
   * @param {(number: number) => string} unnamed
   */
  #fill(kind, devices, unnamed) {
    const picker = this.#pickers[kind];
    const used = this.#inUse(kind);
    const chosen = devices.some(({ deviceId }) => deviceId === used) ? used : picker.value || this.devices.recall()[kind];
    picker.replaceChildren(...devices.map((device, index) => {
      const option = document.createElement('option');
      option.value = device.deviceId;
      setText(option, device.label || unnamed(index + 1));
      option.selected = device.deviceId === chosen;
      return option;
    }));
    // After a loss, no device is shown as chosen, so that choosing the only remaining one fires `change`.
    const isOff = this.options.keepsLost && !this.#liveTrack(kind);
    if (isOff) picker.selectedIndex = -1;
    this.#used[kind] = picker.value || undefined;
    picker.disabled = devices.length < (isOff ? 1 : 2);
  }

  /** @param {'camera' | 'microphone'} kind @returns {MediaStreamTrack | undefined} the track of the device, while it is in use */
  #liveTrack(kind) {
    const track = kind === 'camera' ? this.publisher?.getVideoSource().track : this.publisher?.getAudioSource();
    return track?.readyState === 'live' ? track : undefined;
  }

  /** @param {'camera' | 'microphone'} kind @returns {string | undefined} the id of the device in use, if known */
  #inUse(kind) {
    return this.#liveTrack(kind)?.getSettings().deviceId;
  }

  /** @param {'camera' | 'microphone'} kind */
  async #pick(kind) {
    const { publisher } = this;
    const deviceId = this.#pickers[kind].value;
    this.devices.remember({ [kind]: deviceId });
    try {
      await (kind === 'camera' ? publisher?.setVideoSource(deviceId) : publisher?.setAudioSource(deviceId));
      this.#used[kind] = deviceId;
      if (publisher && publisher === this.publisher && this.options.keepsLost) {
        this.dispatch({ type: 'mediaBack', kind: kind === 'camera' ? 'video' : 'audio' });
      }
    } catch (error) {
      if (!this.options.keepsLost) this.dispatch({ type: 'mediaFailed', why: 'busy' });
      else if (publisher === this.publisher) this.#notChanged(kind, error);
    }
  }

  /**
   * Handles a device that could not be opened. The previous one continues, unless the SDK had to stop it first.
   * @param {'camera' | 'microphone'} kind
   * @param {any} error
   */
  #notChanged(kind, error) {
    const before = this.#used[kind];
    this.#pickers[kind].value = before ?? '';
    this.devices.remember({ [kind]: before });
    if (!this.#liveTrack(kind)) this.dispatch({ type: 'mediaLost', kind: kind === 'camera' ? 'video' : 'audio' });
    this.dispatch({ type: `${kind}Failed`, why: mediaTrouble(error) });
  }
}
