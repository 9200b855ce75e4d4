// Opens the camera and the microphone for a check, and finds out whether they deliver something. Sends nothing. Invariant: after
// `finish`, no device is open.
import { OT } from '../../lib/index.js';
import { listenTo, meter } from '../../lib/media/audio-level.js';
import { mediaTrouble } from '../shared/media-trouble.js';
import { pageIsSecure } from '../shared/preview.js';

/** @typedef {import('../../lib/check/verdicts.js').DeviceTrouble} DeviceTrouble */
/** @typedef {import('../../lib/check/verdicts.js').Measurements} Measurements */
/** @typedef {'camera' | 'microphone'} Kind */
/**
 * @typedef {object} DeviceTools
 * @property {HTMLVideoElement} video shows the camera
 * @property {(known: Partial<Measurements>) => void} report called with each result
 * @property {(level: number) => void} heard called with the level of the microphone, 0 to 1
 */

/** How long the person may take to answer the browser's question, in milliseconds. */
const answerMs = 60_000;
/** How long the camera may take to show something, in milliseconds. Cameras need about a second, and more to adjust to the light. */
const firstFrameMs = 8000;
/** The pause between two looks at the camera, in milliseconds. */
const lookMs = 250;
/** The minimum level of the microphone that counts as sound. The noise of a quiet room is lower, speech is higher. */
const leastLevel = 0.008;
/** The mean brightness (0 to 255) of a picture below which it counts as black. */
const darkness = 10;
/** The size at which the brightness is measured, in pixels. */
const [sampleWidth, sampleHeight] = [32, 24];

export class Devices {
  #tools;
  #isFinished = false;
  /** @type {MediaStream[]} */
  #opened = [];
  /** @type {(() => void)[]} */
  #stops = [];
  /** @type {MediaStreamTrack | null} */
  #microphone = null;
  #wasHeard = false;
  #isListening = () => false;

  /** @param {DeviceTools} tools */
  constructor(tools) {
    this.#tools = tools;
  }

  /**
   * Opens both devices and looks at the camera. The microphone is listened to until `finish`.
   * @returns {Promise<void>} settles when the result of the camera is known
   */
  async open() {
    const { report } = this.#tools;
    if (!pageIsSecure()) {
      report({ camera: 'insecure', microphone: 'insecure' });
      return;
    }
    let timer;
    const late = new Promise((/** @type {(value: 'late') => void} */ resolve) => { timer = setTimeout(() => resolve('late'), answerMs); });
    const found = await Promise.race([this.#ask(), late]);
    clearTimeout(timer);
    if (this.#isFinished) return;
    if (found === 'late') {
      // Devices that are opened later are closed at once.
      this.finish();
      report({ camera: 'unanswered', microphone: 'unanswered' });
      return;
    }
    if (typeof found.microphone === 'string') report({ microphone: found.microphone });
    else this.#listen(found.microphone);
    if (typeof found.camera === 'string') report({ camera: found.camera });
    else await this.#look(found.camera);
  }

  /** Reports the result of the microphone, and closes the devices. */
  finish() {
    if (this.#isFinished) return;
    this.#isFinished = true;
    if (this.#microphone && !this.#wasHeard) {
      const isMuted = this.#microphone.muted;
      this.#tools.report({ microphone: isMuted ? 'muted' : this.#isListening() ? 'silent' : 'unmeasured' });
    }
    for (const stop of this.#stops) stop();
    for (const media of this.#opened) for (const track of media.getTracks()) track.stop();
    this.#tools.video.srcObject = null;
    this.#tools.heard(0);
  }

  /** @returns {Promise<Record<Kind, MediaStreamTrack | DeviceTrouble>>} */
  async #ask() {
    try {
      const media = await this.#openDevices({});
      return { camera: media.getVideoTracks()[0] ?? 'missing', microphone: media.getAudioTracks()[0] ?? 'missing' };
    } catch (error) {
      const trouble = troubleOf(error);
      const blocked = { camera: await isBlocked('camera'), microphone: await isBlocked('microphone') };
      // If the person has refused, do not ask again. If only one device is blocked, the other can be opened.
      if (trouble === 'refused' && blocked.camera === blocked.microphone) return { camera: trouble, microphone: trouble };
      const one = async (/** @type {Kind} */ kind) => (trouble === 'refused' && blocked[kind] ? trouble : this.#askFor(kind));
      return { camera: await one('camera'), microphone: await one('microphone') };
    }
  }

  /** @param {Kind} kind @returns {Promise<MediaStreamTrack | DeviceTrouble>} */
  async #askFor(kind) {
    try {
      const [track] = (await this.#openDevices(kind === 'camera' ? { audioSource: null } : { videoSource: null })).getTracks();
      return track;
    } catch (error) {
      return troubleOf(error);
    }
  }

  /** @param {import('../../lib/media/constraints.js').SourceOptions} options */
  async #openDevices(options) {
    const media = await OT.getUserMedia(options);
    if (this.#isFinished) for (const track of media.getTracks()) track.stop();
    this.#opened.push(media);
    return media;
  }

  /** @param {MediaStreamTrack} track */
  #listen(track) {
    this.#microphone = track;
    const { measure, isListening, stop } = listenTo(track);
    this.#isListening = isListening;
    const stopMeter = meter(measure, (level) => {
      this.#tools.heard(level);
      if (level < leastLevel || this.#wasHeard) return;
      this.#wasHeard = true;
      this.#tools.report({ microphone: 'works' });
    });
    this.#stops.push(stopMeter, stop);
  }

  /** @param {MediaStreamTrack} track */
  async #look(track) {
    const { video, report } = this.#tools;
    video.srcObject = new MediaStream([track]);
    video.play().catch(() => {}); // It is muted, so browsers allow it.
    const canvas = Object.assign(document.createElement('canvas'), { width: sampleWidth, height: sampleHeight });
    const context = canvas.getContext('2d', { willReadFrequently: true });
    let brightest = -1;
    for (let waited = 0; waited < firstFrameMs && !this.#isFinished; waited += lookMs) {
      await new Promise((resolve) => { setTimeout(resolve, lookMs); });
      if (!context || video.videoWidth === 0) continue;
      context.drawImage(video, 0, 0, sampleWidth, sampleHeight);
      brightest = Math.max(brightest, brightnessOf(context.getImageData(0, 0, sampleWidth, sampleHeight).data));
      if (brightest >= darkness) break;
    }
    // Without a single picture, another program has probably taken the camera.
    report({ camera: brightest >= darkness ? 'works' : brightest >= 0 ? 'dark' : 'busy' });
  }
}

/** @param {unknown} error @returns {DeviceTrouble} */
function troubleOf(error) {
  const trouble = mediaTrouble(error);
  return trouble === 'lost' ? 'unknown' : trouble;
}

/** @param {Kind} kind @returns {Promise<boolean>} whether the person or a policy has blocked the device for this page */
async function isBlocked(kind) {
  try {
    return (await navigator.permissions.query({ name: /** @type {PermissionName} */ (/** @type {string} */ (kind)) })).state === 'denied';
  } catch {
    return false; // Not every browser knows these permission names.
  }
}

/** @param {Uint8ClampedArray} pixels red, green, blue and opacity of each pixel @returns {number} the mean brightness, 0 to 255 */
export function brightnessOf(pixels) {
  let sum = 0;
  for (let index = 0; index < pixels.length; index += 4) sum += Math.max(pixels[index], pixels[index + 1], pixels[index + 2]);
  return pixels.length === 0 ? 0 : sum / (pixels.length / 4);
}
