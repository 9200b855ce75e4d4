// The global `OT` of OpenTok's SDK for browsers.

import { otFailure } from '../lib/errors.js';
import { OT as sdk } from '../lib/ot.js';
import { sortArguments } from '../lib/session/arguments.js';
import { exceptions, reportException, withExceptionHandlers } from '../lib/session/registry.js';
import { serverOf, socketOf } from './address.js';
import { hasMediaProcessorSupport } from './filters.js';
import { getActiveAudioOutputDevice, getAudioOutputDevices, setAudioOutputDevice } from './outputs.js';
import { OpenTokPublisher } from './publisher.js';
import { OpenTokSession } from './session.js';
import { addStyle } from './style.js';

/**
 * @param {string | undefined} script the address of this script, by which it finds its server
 */
export function makeOT(script) {
  const server = serverOf(script);
  const OT = withExceptionHandlers({
    /** Set `apiURL` before `initSession` to use another server than the one that this script was loaded from. */
    properties: { version: sdk.properties.version, apiURL: server, loggingURL: server },
    publishers: /** @type {import('../lib/session/registry.js').Registry<OpenTokPublisher>} */ (sdk.publishers),
    subscribers: /** @type {import('../lib/session/registry.js').Registry<import('./subscriber.js').OpenTokSubscriber>} */ (sdk.subscribers),
    NONE: sdk.NONE, ERROR: sdk.ERROR, WARN: sdk.WARN, INFO: sdk.INFO, LOG: sdk.LOG, DEBUG: sdk.DEBUG,
    HAS_REQUIREMENTS: 1,
    NOT_HAS_REQUIREMENTS: 0,

    setLogLevel: sdk.setLogLevel,
    error: sdk.error,
    warn: sdk.warn,
    info: sdk.info,
    log: sdk.log,
    debug: sdk.debug,

    /**
     * @param {string | number} apiKey
     * @param {string} sessionId
     * @param {import('./session.js').OpenTokOptions} [options]
     */
    initSession(apiKey, sessionId, options) {
      return OpenTokSession.make(String(apiKey), sessionId, { url: socketOf(OT.properties.apiURL), ...options });
    },

    /** @param {...any} given a target, properties and a callback, each of which may be missing */
    initPublisher(...given) {
      const { target, properties, callback } = sortArguments(given);
      return new OpenTokPublisher(target, properties, callback);
    },

    checkSystemRequirements: sdk.checkSystemRequirements,
    upgradeSystemRequirements,
    getDevices: sdk.getDevices,
    getUserMedia: sdk.getUserMedia,
    getAudioOutputDevices,
    getActiveAudioOutputDevice,
    setAudioOutputDevice,
    checkScreenSharingCapability: sdk.checkScreenSharingCapability,
    /** Does nothing: browsers share screens without an extension. */
    registerScreenSharingExtension() {},
    getSupportedCodecs: sdk.getSupportedCodecs,
    hasMediaProcessorSupport,
    hasEndToEndEncryptionSupport: () => false,
    unblockAudio: sdk.unblockAudio,

    /**
     * Connects through a proxy that passes requests on to the server.
     * @param {string} url the address at which the proxy has the server
     */
    setProxyUrl(url) {
      socketOf(url);
      OT.properties.apiURL = url;
    },

    /**
     * Fails, because the server collects no reports.
     * @param {(error: import('../lib/errors.js').ConfabError, id?: string) => void} [callback]
     */
    reportIssue(callback) {
      const error = otFailure('OT_REPORT_ISSUE_FAILED', 2010, 'The server does not accept reports. Use its logs.');
      queueMicrotask(() => {
        callback?.(error);
        reportException(error, OT);
      });
    },

    /** @param {any} names @param {any} handler @param {unknown} [context] */
    addEventListener: (names, handler, context) => { exceptions.on(names, handler, context); },
    /** @param {any} names @param {any} [handler] @param {unknown} [context] */
    removeEventListener: (names, handler, context) => { exceptions.off(names, handler, context); },
  });
  return OT;
}

/** Shows on the page that the browser is too old. */
function upgradeSystemRequirements() {
  addStyle();
  const notice = document.createElement('div');
  notice.className = 'OT_upgrade';
  notice.setAttribute('role', 'alert');
  notice.textContent = 'This browser does not support video calls. Use a current version of Chrome, Edge, Firefox or Safari.';
  document.body.append(notice);
}
