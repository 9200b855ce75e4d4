// OpenTok's session: the SDK's, with OpenTok's publishers and subscribers, and the members that only OpenTok has.

import { otFailure } from '../lib/errors.js';
import { settle } from '../lib/session/registry.js';
import { Session } from '../lib/session/session.js';
import { SessionCore } from '../lib/session/core.js';
import { OpenTokPublisher } from './publisher.js';
import { OpenTokSubscriber } from './subscriber.js';
import { unsupported } from './unsupported.js';

/** @typedef {import('../lib/session/arguments.js').Callback} Callback */
/** @typedef {import('../lib/session/core.js').SessionOptions & {encryptionSecret?: string, ipWhitelist?: boolean}} OpenTokOptions */

/** @param {any} error */
const same = (error) => error;

export class OpenTokSession extends Session {
  #core;

  /** @param {string} apiKey @param {string} sessionId @param {SessionCore} core */
  constructor(apiKey, sessionId, core) {
    super(apiKey, sessionId, core);
    this.#core = core;
  }

  /**
   * @param {string} token
   * @param {Callback} [callback]
   * @returns {this}
   */
  connect(token, callback) {
    if (typeof this.sessionId === 'string' && this.sessionId !== '') return super.connect(token, callback);
    const refusal = otFailure('OT_INVALID_SESSION_ID', 1005, 'Pass the id of a session to OT.initSession().');
    settle(Promise.reject(refusal), callback, this, same);
    return this;
  }

  /** @param {...any} given @returns {OpenTokPublisher} */
  publish(...given) {
    return /** @type {OpenTokPublisher} */ (super.publish(...given));
  }

  /**
   * @param {import('../lib/events.js').OTEvent} event
   * @param {() => void} [defaultAction]
   * @param {string} [as]
   */
  dispatch(event, defaultAction, as) {
    super.dispatch(event, defaultAction, as);
    // Not a handler, because programs can remove all handlers of an event.
    if (event.type === 'archiveStarted' || event.type === 'archiveStopped') {
      for (const publisher of this.#core.publications.all) /** @type {OpenTokPublisher} */ (publisher)._showRecording();
    }
    return this;
  }

  // The next methods only narrow or widen types, so that the object fits the declarations in `web/v2/js`.

  /** @param {any} publisher @param {string} [reason] */
  unpublish(publisher, reason) {
    super.unpublish(publisher, reason);
  }

  /** @param {any} subscriber @param {string} [reason] */
  unsubscribe(subscriber, reason) {
    super.unsubscribe(subscriber, reason);
  }

  /** @param {any} stream @returns {OpenTokPublisher | undefined} */
  getPublisherForStream(stream) {
    return /** @type {OpenTokPublisher | undefined} */ (super.getPublisherForStream(stream));
  }

  /** @param {any} stream @returns {OpenTokSubscriber[]} */
  getSubscribersForStream(stream) {
    return /** @type {OpenTokSubscriber[]} */ (super.getSubscribersForStream(stream));
  }

  /**
   * @param {any} stream
   * @param {...any} given
   * @returns {any} the subscriber; undefined if `stream` is no stream
   */
  subscribe(stream, ...given) {
    if (typeof stream?.streamId === 'string') return super.subscribe(stream, ...given);
    const refusal = otFailure('OT_INVALID_PARAMETER', 1011, 'Pass a stream of this session to subscribe().');
    settle(Promise.reject(refusal), given.find((value) => typeof value === 'function'), this, same);
    return undefined;
  }

  /**
   * Fails, because end-to-end encryption does not exist yet. After this, the session cannot connect, publish or subscribe, so that no
   * media is sent without encryption.
   * @param {string} _secret
   * @returns {Promise<void>}
   */
  async setEncryptionSecret(_secret) {
    throw (this.#core.refusal = unsupported('End-to-end encryption is'));
  }

  /**
   * Sets the ICE configuration. Fails while the session is connected.
   * @param {import('../lib/media/ice.js').IceConfig} config
   */
  async setIceConfig(config) {
    if (this.isConnected()) throw unsupported('Changing the ICE configuration of a connected session is');
    this.#core.configure(config);
  }

  /** @param {import('../lib/media/widget.js').Target} target @param {any} properties */
  _makePublisher(target, properties) {
    return new OpenTokPublisher(target, properties);
  }

  /**
   * @param {import('../lib/session/roster.js').Stream} stream
   * @param {import('../lib/media/widget.js').Target} target
   * @param {any} properties
   * @param {import('../lib/session/subscriber-types.js').SubscriberHost} host
   */
  _makeSubscriber(stream, target, properties, host) {
    return new OpenTokSubscriber(stream, target, properties, host);
  }

  /**
   * @param {string} apiKey
   * @param {string} sessionId
   * @param {OpenTokOptions} options
   */
  static make(apiKey, sessionId, { encryptionSecret, ...options }) {
    const session = /** @type {OpenTokSession} */ (new SessionCore(apiKey, sessionId, options, OpenTokSession).session);
    if (encryptionSecret !== undefined) session.setEncryptionSecret(encryptionSecret).catch(() => {});
    return session;
  }
}
