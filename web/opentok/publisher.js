// OpenTok's publisher: the SDK's with the default interface, filters and style.

import { Publisher } from '../lib/session/publisher.js';
import { processorOf, setFilter } from './filters.js';
import { Interface, styleOf, validStyle } from './interface.js';
import { targetOf } from './target.js';

/** @typedef {import('./filters.js').Filter} Filter */
/** @typedef {import('./filters.js').Kind} Kind */
/** @typedef {import('./interface.js').Style} Style */
/**
 * @typedef {object} InterfaceOptions
 * @property {Style} [style]
 * @property {boolean} [showControls]
 */
/**
 * @typedef {import('../lib/session/publisher-types.js').PublisherOptions & InterfaceOptions & {videoFilter?: Filter, audioFilter?: Filter}} PublisherOptions
 */

export class OpenTokPublisher extends Publisher {
  /**
   * Declared again for its type.
   * @type {import('./session.js').OpenTokSession | null}
   */
  session = null;
  #options;
  /** @type {Interface | null} null if the program shows the video itself */
  #interface = null;
  #style;
  #isMetering = false;
  #sendsAudio;
  /** @type {Record<Kind, Filter | null>} */
  #filters = { audio: null, video: null };

  /**
   * @param {import('../lib/media/widget.js').Target} target
   * @param {PublisherOptions} options
   * @param {import('../lib/session/arguments.js').Callback} [callback]
   */
  constructor(target, options, callback) {
    super(targetOf(target), { ...options, label: options.label ?? (options.name || 'Your video') }, callback);
    this.#options = options;
    this.#style = styleOf(options);
    this.#sendsAudio = options.publishAudio ?? true;
    if (!this.element) return;
    this.#interface = new Interface(this.element, {
      kind: 'publisher', name: options.name ?? '', fitMode: options.fitMode ?? 'cover', style: this.#style,
      mute: (muted) => this.publishAudio(!muted),
    });
    this.#interface.muted = !this.#sendsAudio;
  }

  // ---- Public API

  /** @param {boolean} on @returns {this} */
  publishAudio(on) {
    this.#sendsAudio = Boolean(on);
    if (this.#interface) this.#interface.muted = !this.#sendsAudio;
    return super.publishAudio(on);
  }

  /** @param {boolean} on @returns {this} */
  publishVideo(on) {
    super.publishVideo(on);
    this.#checkMeter();
    return this;
  }

  /**
   * Has no effect, because the server has no captions.
   * @param {boolean} _on
   * @returns {this}
   */
  publishCaptions(_on) {
    return this;
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

  /** @param {{width: number, height: number}} size the preferred size of the captured video, in pixels */
  async setPreferredResolution({ width, height }) {
    await this.#constrain({ width: { ideal: width }, height: { ideal: height } });
  }

  /** @param {number} frameRate the preferred frames per second of the captured video */
  async setPreferredFrameRate(frameRate) {
    await this.#constrain({ frameRate: { ideal: frameRate } });
  }

  /** @param {Filter} filter */
  applyVideoFilter(filter) {
    return this.#apply('video', filter);
  }

  clearVideoFilter() {
    return this.#clear('video');
  }

  getVideoFilter() {
    return this.#filters.video;
  }

  /** @param {Filter} filter */
  applyAudioFilter(filter) {
    return this.#apply('audio', filter);
  }

  clearAudioFilter() {
    return this.#clear('audio');
  }

  getAudioFilter() {
    return this.#filters.audio;
  }

  /** @param {any} connector a MediaProcessorConnector; null for none */
  async setVideoMediaProcessorConnector(connector) {
    await this.process('video', processorOf(connector));
  }

  /** @param {any} connector a MediaProcessorConnector; null for none */
  async setAudioMediaProcessorConnector(connector) {
    await this.process('audio', processorOf(connector));
  }

  // ---- Overrides of the SDK

  /** @param {string} name */
  hasHandlers(name) {
    return super.hasHandlers(name) || (name === 'audioLevelUpdated' && this.#isMetering);
  }

  async _prepareMedia() {
    const { audioFilter, videoFilter } = this.#options;
    // A person who wants a blurred background must not be shown without it, so a filter that fails ends the publisher.
    if (videoFilter) await this.#apply('video', videoFilter);
    if (audioFilter) await this.#apply('audio', audioFilter);
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
  #show({ type, audioLevel, reason }) {
    if (!this.#interface) return;
    if (type === 'audioLevelUpdated') this.#interface.level = audioLevel;
    else if (type === 'videoDisabled' && reason === 'quality') this.#interface.notice = 'Video is off: the network is slow.';
    else if (type === 'videoEnabled') this.#interface.notice = '';
    if (type === 'accessAllowed') this.#checkMeter();
  }

  #checkMeter() {
    const isMetering = this.#interface?.isMetering ?? false;
    if (isMetering === this.#isMetering) return;
    this.#isMetering = isMetering;
    this._handlersChanged('audioLevelUpdated');
  }

  /** @param {Kind} kind */
  #track(kind) {
    return kind === 'audio' ? this.getAudioSource() : this.getVideoSource().track;
  }

  /** @param {Kind} kind @param {Filter} filter */
  async #apply(kind, filter) {
    await setFilter(this.#track(kind), kind, filter, true);
    this.#filters[kind] = filter;
  }

  /** @param {Kind} kind */
  async #clear(kind) {
    const filter = this.#filters[kind];
    if (filter) await setFilter(this.#track(kind), kind, filter, false);
    this.#filters[kind] = null;
  }

  /** @param {MediaTrackConstraints} constraints */
  async #constrain(constraints) {
    const { track } = this.getVideoSource();
    await track?.applyConstraints({ ...track.getConstraints(), ...constraints });
  }
}
