// OpenTok's publisher: the SDK's with the default interface, filters and style.

import { Publisher } from '../lib/session/publisher.js';
import { prefer, processorOf, setFilter } from './filters.js';
import { Look } from './look.js';
import { targetOf } from './target.js';

/** @typedef {import('./filters.js').Filter} Filter */
/** @typedef {import('./filters.js').Kind} Kind */
/** @typedef {import('./interface.js').Style} Style */
/**
 * @typedef {import('../lib/session/publisher-types.js').PublisherOptions & import('./look.js').LookOptions
 *   & {videoFilter?: Filter, audioFilter?: Filter}} PublisherOptions
 */

const notices = {
  warning: 'The network is slow. Your video may stop.',
  quality: 'Your video has stopped: the network is slow.',
};

export class OpenTokPublisher extends Publisher {
  /**
   * Declared again for its type.
   * @type {import('./session.js').OpenTokSession | null}
   */
  session = null;
  /** @type {Look} */
  #look;
  /** @type {Record<Kind, Filter | null>} */
  #filters;
  /** @type {Parameters<typeof prefer>[1]} what the program prefers of every camera */
  #preferred = {};

  /**
   * @param {import('../lib/media/widget.js').Target} target
   * @param {PublisherOptions} options
   * @param {import('../lib/session/arguments.js').Callback} [callback]
   */
  constructor(target, options, callback) {
    super(targetOf(target), { ...options, label: options.label ?? (options.name || 'Your video') }, callback);
    const { name = '', initials = '', fitMode = 'cover', publishAudio = true, audioSource, audioFilter = null, videoFilter = null } = options;
    this.#filters = { audio: audioFilter, video: videoFilter };
    this.#look = new Look(this.element, options, {
      kind: 'publisher', name, initials, fitMode, mute: (muted) => this.publishAudio(!muted),
    }, () => this._handlersChanged('audioLevelUpdated'));
    this.#look.show({ muted: !publishAudio, hasAudio: audioSource !== null && audioSource !== false });
  }

  // ---- Public API

  /** @param {boolean} on @returns {this} */
  publishAudio(on) {
    this.#look.show({ muted: !on });
    return super.publishAudio(on);
  }

  /** @param {boolean} on @returns {this} */
  publishVideo(on) {
    super.publishVideo(on);
    this.#look.check();
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

  /** @param {import('../lib/media/constraints.js').MediaSource} source @returns {Promise<void>} */
  async setAudioSource(source) {
    await super.setAudioSource(source);
    this.#look.show({ hasAudio: this.getAudioSource() !== null });
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

  /** @param {{width: number, height: number}} size the preferred size of the captured video, in pixels */
  async setPreferredResolution({ width, height }) {
    await this.#prefer({ width, height });
  }

  /** @param {number} frameRate the preferred frames per second of the video */
  async setPreferredFrameRate(frameRate) {
    this.setMaxFrameRate(frameRate);
    await this.#prefer({ frameRate });
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
    return super.hasHandlers(name) || (name === 'audioLevelUpdated' && this.#look.isMetering);
  }

  /** @param {MediaStreamTrack} track */
  async _prepareTrack(track) {
    const kind = /** @type {Kind} */ (track.kind);
    if (kind === 'video' && Object.keys(this.#preferred).length > 0) await prefer(track, this.#preferred);
    const filter = this.#filters[kind];
    if (!filter) return;
    try {
      await setFilter(track, kind, filter, true);
    } catch (error) {
      // A person who wants a blurred background must not be shown without it. But the microphone that replaces an unplugged one is
      // used even if it cannot suppress noise.
      if (kind === 'video' || !this.accessAllowed) throw error;
      this.#filters.audio = null;
    }
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

  /** Shows whether the session is recorded, if the publisher is in one. */
  _showRecording() {
    this.#look.show({ recorded: this.session?.isRecorded ?? false });
  }

  /** @param {any} event */
  #show({ type, audioLevel, reason }) {
    const look = this.#look;
    if (type === 'streamCreated' || type === 'streamDestroyed') look.show({ recorded: type === 'streamCreated' && this.session?.isRecorded === true });
    if (type === 'audioLevelUpdated') look.show({ level: audioLevel });
    else if (type === 'videoDisableWarning') look.show({ notice: notices.warning });
    else if (type === 'videoDisabled' && reason === 'quality') look.show({ notice: notices.quality });
    else if (type === 'videoEnabled' || type === 'videoDisableWarningLifted' || type === 'streamDestroyed') look.show({ notice: '' });
    if (type !== 'accessAllowed') return;
    look.show({ hasAudio: this.getAudioSource() !== null });
    look.check();
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

  /** @param {Parameters<typeof prefer>[1]} preferred */
  async #prefer(preferred) {
    Object.assign(this.#preferred, preferred);
    const { track } = this.getVideoSource();
    if (track) await prefer(track, preferred);
  }
}
