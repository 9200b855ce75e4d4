// OpenTok's subscriber: the SDK's with the default interface and style.

import { sinkOf, Subscriber } from '../lib/session/subscriber.js';
import { Interface, styleOf, validStyle } from './interface.js';
import { addPlayer, removePlayer } from './outputs.js';
import { targetOf } from './target.js';
import { unsupported } from './unsupported.js';

/** @typedef {import('./interface.js').Style} Style */
/** @typedef {import('../lib/session/subscriber-types.js').SubscriberOptions & import('./publisher.js').InterfaceOptions} SubscriberOptions */

/** The notices that the interface shows for these events, by type and reason. */
const notices = {
  warning: 'The network is slow. The video may stop.',
  quality: 'The video has stopped: the network is slow.',
  codecNotSupported: 'This browser cannot play the video.',
  disconnected: 'Connection lost. Reconnecting…',
};

export class OpenTokSubscriber extends Subscriber {
  /** @type {Interface | null} null if the program shows the video itself */
  #interface = null;
  #style;
  #isMetering = false;
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
    this.#style = styleOf(options);
    if (!this.element) return;
    this.#interface = new Interface(this.element, {
      kind: 'subscriber', name: stream.name ?? '', fitMode: options.fitMode ?? 'cover', style: this.#style,
      mute: (muted) => this.subscribeToAudio(!muted),
      unblock: () => sinkOf(this).unblock(),
    });
    this.#interface.muted = options.subscribeToAudio === false;
  }

  // ---- Public API

  /** @param {boolean} on @returns {this} */
  subscribeToAudio(on) {
    if (this.#interface) this.#interface.muted = !on;
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
    const style = this.#interface?.style ?? this.#style;
    return name === undefined ? style : style[/** @type {keyof Style} */ (name)];
  }

  /** @param {string | Style} name a name, or an object of several members @param {unknown} [value] @returns {this} */
  setStyle(name, value) {
    const changes = validStyle(typeof name === 'string' ? { [name]: value } : name);
    this.#style = { ...this.#style, ...changes };
    this.#interface?.change(changes);
    this.#checkMeter();
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
    return super.hasHandlers(name) || (name === 'audioLevelUpdated' && this.#isMetering);
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
    if (!this.#interface) return;
    if (type === 'audioLevelUpdated') this.#interface.level = audioLevel;
    else if (type === 'audioBlocked' || type === 'audioUnblocked') this.#interface.blocked = type === 'audioBlocked';
    else if (type === 'videoDisableWarning') this.#interface.notice = notices.warning;
    else if (type === 'videoDisabled') this.#interface.notice = reason === 'quality' || reason === 'codecNotSupported' ? notices[/** @type {'quality'} */ (reason)] : '';
    else if (type === 'disconnected') this.#interface.notice = notices.disconnected;
    else if (type === 'videoEnabled' || type === 'videoDisableWarningLifted' || type === 'connected') this.#interface.notice = '';
    if (type === 'videoEnabled' || type === 'videoDisabled' || type === 'connected') this.#checkMeter();
  }

  #checkMeter() {
    const isMetering = this.#interface?.isMetering ?? false;
    if (isMetering === this.#isMetering) return;
    this.#isMetering = isMetering;
    this._handlersChanged('audioLevelUpdated');
  }
}
