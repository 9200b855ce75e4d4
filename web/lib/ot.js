// `OT`, with OpenTok's names. What is not here is not there: a program that asks for more fails at once and can tell.

import { sortArguments } from './arguments.js';
import { sdkVersion } from './client.js';
import { getDevices, getUserMedia } from './devices.js';
import * as logging from './log.js';
import { Publisher } from './publisher.js';
import { exceptions, publishers, subscribers } from './registry.js';
import { Session } from './session.js';

/** @param {'getCapabilities'} ask @param {any} side @returns {string[]} */
function codecs(ask, side) {
  const all = side?.[ask]?.('video')?.codecs ?? [];
  const names = all.map((/** @type {{mimeType: string}} */ { mimeType }) => mimeType.replace('video/', ''));
  return [...new Set(/** @type {string[]} */ (names))].filter((name) => !/^(rtx|red|ulpfec|flexfec)/i.test(name));
}

export const OT = {
  /**
   * `url` may be set to the socket of another server before `initSession`.
   * @type {{version: string, url: string | undefined}}
   */
  properties: { version: sdkVersion, url: undefined },
  publishers,
  subscribers,
  ...logging.logLevels,
  setLogLevel: logging.setLogLevel,
  error: logging.error,
  warn: logging.warn,
  info: logging.info,
  log: logging.log,
  debug: logging.debug,

  /**
   * @param {string} apiKey
   * @param {string} sessionId
   * @param {import('./session.js').SessionOptions} [options]
   */
  initSession(apiKey, sessionId, options = {}) {
    return new Session(apiKey, sessionId, { url: OT.properties.url, ...options });
  },

  /**
   * `initPublisher(target?, properties?, callback?)`
   * @param {...any} given
   */
  initPublisher(...given) {
    const { target, properties, callback } = sortArguments(given);
    return new Publisher(target, properties, callback);
  },

  /** 1 when this browser, on this page, can do everything; 0 otherwise. */
  checkSystemRequirements() {
    const has = [globalThis.RTCPeerConnection, globalThis.WebSocket, globalThis.navigator?.mediaDevices];
    return has.every(Boolean) ? 1 : 0;
  },

  getDevices,
  getUserMedia,

  /** @param {(support: {supported: boolean, supportedSources: Record<string, boolean>}) => void} callback */
  checkScreenSharingCapability(callback) {
    const supported = typeof globalThis.navigator?.mediaDevices?.getDisplayMedia === 'function';
    // The browser's own dialog offers all three, whichever was asked for.
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

  /** Call it in a click's handler: subscribers whose sound the browser held back may play it then. */
  async unblockAudio() {
    subscribers.forEach((subscriber) => subscriber._unblock());
  },

  /** @param {any} names @param {any} [handler] @param {unknown} [context] */
  on(names, handler, context) {
    exceptions.on(names, handler, context);
    return OT;
  },

  /** @param {any} names @param {any} [handler] @param {unknown} [context] */
  once(names, handler, context) {
    exceptions.once(names, handler, context);
    return OT;
  },

  /** @param {any} [names] @param {any} [handler] @param {unknown} [context] */
  off(names, handler, context) {
    exceptions.off(names, handler, context);
    return OT;
  },
};
