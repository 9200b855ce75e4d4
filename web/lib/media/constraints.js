// Converts OpenTok's publisher options into constraints for `getUserMedia`.

/** @typedef {string | boolean | null | undefined | MediaStreamTrack} MediaSource */
/**
 * @typedef {object} SourceOptions
 * @property {MediaSource} [audioSource] a microphone's device id, a track, or null for none; default: the browser's
 *   choice. If the video source is a screen, also 'screen': the screen's audio, where the browser supports it
 * @property {MediaSource} [videoSource] a camera's device id, a track, or null for none; default: the browser's
 *   choice. To share a screen: 'screen', 'window' or 'application'
 * @property {string} [resolution] the preferred size of a camera's video, such as '640x480' (the default)
 * @property {{width: number, height: number}} [maxResolution] the maximum size, in pixels
 * @property {number} [frameRate] frames per second: 30, 15, 7 or 1
 * @property {boolean} [enableStereo]
 * @property {'user' | 'environment' | string} [facingMode] the camera to prefer: 'user' is a phone's front camera,
 *   'environment' the back camera
 * @property {boolean} [disableAudioProcessing] turns off the three options below, unless they are set
 * @property {boolean} [echoCancellation]
 * @property {boolean} [noiseSuppression]
 * @property {boolean} [autoGainControl]
 */

const defaultResolution = '640x480';
const screenSources = ['screen', 'window', 'application'];

/** @param {MediaSource} source */
export function isScreen(source) {
  return typeof source === 'string' && screenSources.includes(source);
}

/**
 * Returns true if the source is a track, for which no device is requested.
 * @param {MediaSource} source
 * @returns {source is MediaStreamTrack}
 */
export function isTrack(source) {
  return typeof source === 'object' && source !== null;
}

/** @param {SourceOptions} options @returns {MediaTrackConstraints | false} false if no microphone is to be opened */
export function audioConstraints({ audioSource, disableAudioProcessing, enableStereo, ...options }) {
  if (audioSource === null || audioSource === false || isTrack(audioSource) || isScreen(audioSource)) return false;
  const processing = disableAudioProcessing ? false : undefined;
  /** @type {MediaTrackConstraints} */
  const constraints = {};
  for (const name of /** @type {const} */ (['echoCancellation', 'noiseSuppression', 'autoGainControl'])) {
    const value = options[name] ?? processing;
    if (value !== undefined) constraints[name] = value;
  }
  if (enableStereo) constraints.channelCount = { ideal: 2 };
  if (typeof audioSource === 'string') constraints.deviceId = { exact: audioSource };
  return constraints;
}

/**
 * @param {SourceOptions} options
 * @returns {MediaTrackConstraints | false} false if no camera or screen is to be opened
 */
export function videoConstraints({ videoSource, resolution = defaultResolution, maxResolution, frameRate, facingMode }) {
  if (videoSource === null || videoSource === false || isTrack(videoSource)) return false;
  const [width, height] = resolution.split('x').map(Number);
  const limits = maxResolution ? { width: { max: maxResolution.width }, height: { max: maxResolution.height } } : {};
  if (isScreen(videoSource)) return { ...limits, ...frameRate === undefined ? {} : { frameRate: { max: frameRate } } };
  /** @type {MediaTrackConstraints} */
  const constraints = { width: { ideal: width, ...limits.width }, height: { ideal: height, ...limits.height } };
  if (frameRate !== undefined) constraints.frameRate = { ideal: frameRate };
  if (typeof videoSource === 'string') constraints.deviceId = { exact: videoSource };
  else if (facingMode !== undefined) constraints.facingMode = facingMode;
  return constraints;
}
