// The `OT` object, with OpenTok's names. OpenTok's functions that Confab does not support are absent, so a program
// that calls one fails immediately.

import { sdkVersion } from './signaling/client.js';
import { getDevices, getUserMedia } from './media/devices.js';
import { sortArguments } from './session/arguments.js';
import { SessionCore } from './session/core.js';
import { Publisher } from './session/publisher.js';
import { publishers, subscribers, withExceptionHandlers } from './session/registry.js';
import { sinkOf } from './session/subscriber.js';

const logLevels = { NONE: 0, ERROR: 1, WARN: 2, INFO: 3, LOG: 4, DEBUG: 5 };
/** One of `logLevels`: the SDK writes messages up to this level to the console. */
let logLevel = logLevels.ERROR;

/** @param {'error' | 'warn' | 'info' | 'log' | 'debug'} method @param {any[]} words */
function say(method, words) {
  if (logLevel >= logLevels[/** @type {'ERROR'} */ (method.toUpperCase())]) console[method]('Confab:', ...words);
}

/** @param {'getCapabilities'} ask @param {any} side @returns {string[]} */
function codecs(ask, side) {
  const all = side?.[ask]?.('video')?.codecs ?? [];
  const names = all.map((/** @type {{mimeType: string}} */ { mimeType }) => mimeType.replace('video/', ''));
  return [...new Set(/** @type {string[]} */ (names))].filter((name) => !/^(rtx|red|ulpfec|flexfec)/i.test(name));
}

export const OT = withExceptionHandlers({
  /**
   * The SDK's version, and the URL of the server's WebSocket for sessions. To use another server than the one that
   * this module was loaded from, set `url` before calling `initSession`.
   * @type {{version: string, url: string | undefined}}
   */
  properties: { version: sdkVersion, url: undefined },
  publishers,
  subscribers,
  ...logLevels,

  /** @param {number} wanted one of `logLevels` */
  setLogLevel(wanted) {
    logLevel = wanted;
  },
  /** @param {...any} words */
  error: (...words) => say('error', words),
  /** @param {...any} words */
  warn: (...words) => say('warn', words),
  /** @param {...any} words */
  info: (...words) => say('info', words),
  /** @param {...any} words */
  log: (...words) => say('log', words),
  /** @param {...any} words */
  debug: (...words) => say('debug', words),

  /**
   * @param {string} apiKey
   * @param {string} sessionId
   * @param {import('./session/core.js').SessionOptions} [options]
   */
  initSession(apiKey, sessionId, options = {}) {
    return new SessionCore(apiKey, sessionId, { url: OT.properties.url, ...options }).session;
  },

  /**
   * Creates a publisher: `initPublisher(target?, properties?, callback?)`.
   * @param {...any} given
   */
  initPublisher(...given) {
    const { target, properties, callback } = sortArguments(given);
    return new Publisher(target, properties, callback);
  },

  /** Returns 1 if this browser supports all APIs that the SDK needs, otherwise 0. */
  checkSystemRequirements() {
    const has = [globalThis.RTCPeerConnection, globalThis.WebSocket, globalThis.navigator?.mediaDevices];
    return has.every(Boolean) ? 1 : 0;
  },

  getDevices,
  getUserMedia,

  /** @param {(support: {supported: boolean, supportedSources: Record<string, boolean>}) => void} callback */
  checkScreenSharingCapability(callback) {
    const supported = typeof globalThis.navigator?.mediaDevices?.getDisplayMedia === 'function';
    // The browser's dialog always offers screens, windows and applications, regardless of the requested source.
    callback({ supported, supportedSources: { screen: supported, window: supported, application: supported } });
  },

  /** @returns {Promise<{videoEncoders: string[], videoDecoders: string[]}>} */
  async getSupportedCodecs() {
    return {
      videoEncoders: codecs('getCapabilities', globalThis.RTCRtpSender),
      videoDecoders: codecs('getCapabilities', globalThis.RTCRtpReceiver),
    };
  },

  hasMediaProcessorSupport: () => false,
  hasEndToEndEncryptionSupport: () => false,

  /** Plays the audio of subscribers whose audio the browser has blocked. Call this in a click handler. */
  async unblockAudio() {
    subscribers.forEach((subscriber) => sinkOf(subscriber).unblock());
  },
});
