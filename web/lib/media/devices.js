// Lists and opens cameras and microphones, and captures screens. Browser errors get OpenTok's names, and messages
// that say what to do.

import { ConfabError, otFailure } from '../errors.js';
import { audioConstraints, isScreen, videoConstraints } from './constraints.js';

/** @typedef {{kind: 'audioInput' | 'videoInput', deviceId: string, label: string}} Device */

/** @type {Record<string, [string, string]>} maps the browser's error name to OpenTok's name and the message */
const refusals = {
  NotAllowedError: ['OT_USER_MEDIA_ACCESS_DENIED', 'Access to the camera or microphone was denied. Allow it in the address bar.'],
  SecurityError: ['OT_USER_MEDIA_ACCESS_DENIED', 'The browser blocks the camera and microphone on this page. Check its settings.'],
  NotFoundError: ['OT_NO_DEVICES_FOUND', 'No camera or microphone was found. Plug one in and try again.'],
  NotReadableError: ['OT_HARDWARE_UNAVAILABLE', 'Another program is using the camera or microphone. Close it and try again.'],
  AbortError: ['OT_HARDWARE_UNAVAILABLE', 'The camera or microphone could not be started. Unplug it, plug it in again, and retry.'],
  OverconstrainedError: ['OT_CONSTRAINTS_NOT_SATISFIED', 'No device meets the constraints. Choose another device or resolution.'],
  TypeError: ['OT_NO_VALID_CONSTRAINTS', 'Neither audio nor video was requested. Choose at least one source.'],
};

/**
 * @param {unknown} error the browser's error, or a `ConfabError`, which is returned unchanged
 * @returns {ConfabError}
 */
export function deviceError(error) {
  if (error instanceof ConfabError) return error;
  const [name, message] = refusals[error instanceof Error ? error.name : ''] ?? ['OT_UNEXPECTED_SERVER_RESPONSE', `${error}`];
  return otFailure(name, name === 'OT_NO_VALID_CONSTRAINTS' ? 1011 : 1500, message, error);
}

/** @returns {MediaDevices} */
function mediaDevices() {
  const devices = globalThis.navigator?.mediaDevices;
  if (devices) return devices;
  throw otFailure('OT_NOT_SUPPORTED', 1013, globalThis.isSecureContext === false
    ? 'Browsers allow cameras and microphones only on pages from https:// or localhost. Open this page over HTTPS.'
    : 'This browser does not support camera and microphone access. Use a current browser.');
}

/** @returns {Promise<Device[]>} the cameras and microphones. Their labels are empty until access was granted once */
export async function listDevices() {
  const kinds = /** @type {const} */ ({ audioinput: 'audioInput', videoinput: 'videoInput' });
  const all = await mediaDevices().enumerateDevices();
  return all.flatMap(({ kind, deviceId, label }) => (kind === 'audiooutput' ? [] : [{ kind: kinds[kind], deviceId, label }]));
}

/**
 * `OT.getDevices`: calls `callback` with the error or the devices, and also returns a promise of the devices.
 * @param {(error: ConfabError | null, devices: Device[]) => void} [callback]
 * @returns {Promise<Device[]>}
 */
export function getDevices(callback) {
  const devices = listDevices().catch((error) => { throw deviceError(error); });
  if (callback) devices.then((found) => callback(null, found), (error) => callback(error, []));
  return devices;
}

/**
 * Opens the devices that a publisher's options request, or the default ones. If there is only a camera or only a
 * microphone, opens that one. The result does not include tracks passed in the options.
 * @param {import('./constraints.js').SourceOptions} [options]
 * @returns {Promise<MediaStream>}
 */
export async function getUserMedia(options = {}) {
  const audio = audioConstraints(options);
  const video = videoConstraints(options);
  try {
    if (video && isScreen(options.videoSource)) return await captureScreen(video, audio, isScreen(options.audioSource));
    if (!audio && !video) throw new TypeError('Request audio, video or both.');
    return await request({ audio, video });
  } catch (error) {
    throw deviceError(error);
  }
}

/** @param {MediaStreamConstraints} constraints */
async function request(constraints) {
  const devices = mediaDevices();
  try {
    return await devices.getUserMedia(constraints);
  } catch (error) {
    // Many devices lack either a camera or a microphone. Audio or video alone is better than nothing.
    if (!(error instanceof Error) || error.name !== 'NotFoundError') throw error;
    const kinds = new Set((await devices.enumerateDevices()).map(({ kind }) => kind));
    const audio = kinds.has('audioinput') && constraints.audio;
    const video = kinds.has('videoinput') && constraints.video;
    const lacksOne = Boolean(audio) !== Boolean(video) && constraints.audio && constraints.video;
    if (!lacksOne) throw error;
    return devices.getUserMedia({ audio, video });
  }
}

/**
 * @param {MediaTrackConstraints} video
 * @param {MediaTrackConstraints | false} audio the constraints of a microphone to open too; false for none
 * @param {boolean} wantsSound whether to capture the screen's audio, which not every browser and screen supports
 */
async function captureScreen(video, audio, wantsSound) {
  const devices = mediaDevices();
  if (!devices.getDisplayMedia) {
    throw otFailure('OT_SCREEN_SHARING_NOT_SUPPORTED', 1500, 'This browser does not support screen sharing. Use a browser on a computer.');
  }
  const screen = await devices.getDisplayMedia(wantsSound ? { video, audio: true } : { video });
  if (!audio) return screen;
  try {
    for (const track of (await devices.getUserMedia({ audio })).getTracks()) screen.addTrack(track);
    return screen;
  } catch (error) {
    for (const track of screen.getTracks()) track.stop();
    throw error;
  }
}
