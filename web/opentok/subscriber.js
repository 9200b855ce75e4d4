// OpenTok's subscriber: the SDK's with the default interface and style.

import { subscribers } from '../lib/session/registry.js';
import { sinkOf, Subscriber } from '../lib/session/subscriber.js';
import { Look } from './look.js';
import { addPlayer, removePlayer } from './outputs.js';
import { targetOf } from './target.js';
import { unsupported } from './unsupported.js';

/** @typedef {import('./interface.js').Style} Style */
/** @typedef {import('../lib/session/subscriber-types.js').SubscriberOptions & import('./look.js').LookOptions} SubscriberOptions */

/** The notices that the interface shows for these events, by type and reason. */
const notices = {
  warning: 'The network is slow. The video may stop.',
  quality: 'The video has stopped: the network is slow.',
  codecNotSupported: 'This browser cannot play this video.',
  disconnected: 'Connection lost. Reconnecting…',
};

export class OpenTokSubscriber extends Subscriber {
  /** @type {Look} */
  #look;
  /** @type {any} */
  #player = null;

  /**
   * @param {import('../lib/session/roster.js').Stream} stream
   * @param {import('../lib/media/widget.js').Target} target
   * @param {SubscriberOptions} options
   * @param {import('../lib/session/subscriber-types.js').SubscriberHost} host
   */
  constructor(stream, target, options, host) {
    super(stream, targetOf(target), { ...options, label: options.label ?? (stream.name || 'Video') }, host);
    this.#look = new Look(this.element, options, {
      kind: 'subscriber', name: stream.name ?? '', initials: stream.initials, fitMode: options.fitMode ?? 'cover',
      mute: (muted) => this.subscribeToAudio(!muted),
      // The press allows the page to play all sound.
      unblock: () => subscribers.forEach((subscriber) => sinkOf(subscriber).unblock()),
    }, () => this._handlersChanged('audioLevelUpdated'));
    this.#look.show({ muted: options.subscribeToAudio === false });
  }

  // ---- Public API

  /** @param {boolean} on @returns {this} */
  subscribeToAudio(on) {
    this.#look.show({ muted: !on });
    return super.subscribeToAudio(on);
  }

  /**
   * Fails for true, because the server has no captions.
   * @param {boolean} on
   * @returns {Promise<void>}
   */
  async subscribeToCaptions(on) {
    if (on) throw unsupported('Captions are');
  }

  isSubscribedToCaptions() {
    return false;
  }

  /** @param {string} [name] the name of one member @returns {any} */
  getStyle(name) {
    return this.#look.style(name);
  }

  /** @param {string | Style} name a name, or an object of several members @param {unknown} [value] @returns {this} */
  setStyle(name, value) {
    this.#look.setStyle(name, value);
    return this;
  }

  /** @param {any} connector @returns {Promise<void>} */
  async setVideoMediaProcessorConnector(connector) {
    if (connector !== null) throw unsupported('Processing received media is');
  }

  /** @param {any} connector @returns {Promise<void>} */
  async setAudioMediaProcessorConnector(connector) {
    if (connector !== null) throw unsupported('Processing received media is');
  }

  // ---- Overrides of the SDK

  /** @param {string} name */
  hasHandlers(name) {
    return super.hasHandlers(name) || (name === 'audioLevelUpdated' && this.#look.isMetering);
  }

  /**
   * @param {import('../lib/events.js').OTEvent} event
   * @param {() => void} [defaultAction]
   * @param {string} [as]
   */
  dispatch(event, defaultAction, as) {
    this.#show(event);
    return super.dispatch(event, defaultAction, as);
  }

  // ----

  /** @param {any} event */
  #show({ type, reason, audioLevel, element }) {
    if (type === 'videoElementCreated') addPlayer(this.#player = element);
    if (type === 'destroyed') removePlayer(this.#player);
    const look = this.#look;
    if (type === 'audioLevelUpdated') look.show({ level: audioLevel });
    else if (type === 'audioBlocked' || type === 'audioUnblocked') look.show({ blocked: type === 'audioBlocked' });
    else if (type === 'videoDisableWarning') look.show({ notice: notices.warning });
    else if (type === 'videoDisabled') look.show({ notice: Object.hasOwn(notices, reason) ? notices[/** @type {'quality'} */ (reason)] : '' });
    else if (type === 'disconnected') look.show({ notice: notices.disconnected });
    else if (type === 'videoEnabled' || type === 'videoDisableWarningLifted' || type === 'connected') look.show({ notice: '' });
    if (type === 'videoEnabled' || type === 'videoDisabled' || type === 'connected') look.check();
  }
}
