// `Subscriber`: shows another connection's stream on the page.

import { otFailure } from '../errors.js';
import { Emitter, OTEvent } from '../events.js';
import { meter, receivedLevel } from '../media/audio-level.js';
import { AutoResolution } from '../media/auto-resolution.js';
import { preferredFrameRate, preferredResolution, priorityOf } from '../media/preference.js';
import { subscriberStats } from '../media/stats.js';
import { Widget } from '../media/widget.js';
import { ReceivedQuality } from './quality.js';
import { subscribers } from './registry.js';

/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {import('./subscriber-types.js').SubscriberSink} SubscriberSink */

/** @type {WeakMap<Subscriber, SubscriberSink>} */
const sinks = new WeakMap();

/** @param {Subscriber} subscriber @returns {SubscriberSink} its internals; the same object on every call */
export function sinkOf(subscriber) {
  return /** @type {SubscriberSink} */ (sinks.get(subscriber));
}

export class Subscriber extends Emitter {
  #host;
  #widget;
  /** @type {'waiting' | 'connected' | 'disconnected' | 'destroyed'} `waiting` → `connected` ⇄ `disconnected`; all → `destroyed` */
  #state = 'waiting';
  /** @type {MediaStream | null} */
  #media = null;
  /** @type {import('../media/peer.js').PeerState} */
  #peerState = 'connecting';
  #options;
  #wants;
  /** @type {AutoResolution | null} chooses the resolution; null if the program has set one */
  #auto = null;
  /** @type {import('../media/preference.js').Preference} the resolution that the program has set */
  #resolution = {};
  #frameRate;
  #priority;
  #restricted = false;
  #blocked = false;
  /** @type {string | null} why the server has paused the video; null if it has not */
  #pause = null;
  #quality;
  #stopMeter = () => {};
  /** @type {(error?: Error) => void} */
  #settle = () => {};

  /**
   * @param {Stream} stream
   * @param {import('../media/widget.js').Target} target
   * @param {import('./subscriber-types.js').SubscriberOptions} options
   * @param {import('./subscriber-types.js').SubscriberHost} host
   */
  constructor(stream, target, options, host) {
    super();
    this.stream = stream;
    this.#host = host;
    this.#options = options;
    this.#wants = { audio: options.subscribeToAudio ?? true, video: options.subscribeToVideo ?? true };
    this.#frameRate = preferredFrameRate(options.preferredFrameRate);
    this.#priority = priorityOf(options.priority);
    this.#widget = new Widget('subscriber', target, options, {
      loaded: () => {},
      resized: (dimensions) => {
        this.#auto?.look();
        this.dispatch(new OTEvent('videoDimensionsChanged', { newValue: dimensions }));
      },
      blocked: () => this.#block(true),
    });
    this.element = this.#widget.element;
    this.id = this.#widget.id;
    this.#widget.mirrored = options.mirror ?? false;
    this.setAudioVolume(options.audioVolume ?? 100);
    this.#setResolution(options.preferredResolution === undefined ? 'auto' : options.preferredResolution);
    this.#apply();
    this.#quality = new ReceivedQuality({
      clock: host.clock,
      reports: () => this.#reports(),
      state: () => ({ stream, pause: this.#pause, isLost: this.#state === 'disconnected' }),
      changed: (condition) => this.dispatch(new OTEvent('networkConditionChanged', condition)),
    });
    subscribers.add(this);
    /** @type {Promise<void>} */
    const connected = new Promise((resolve, reject) => {
      this.#settle = (error) => (error ? reject(error) : resolve());
    });
    connected.catch(() => {});
    sinks.set(this, this.#sink(connected));
    queueMicrotask(() => this.dispatch(new OTEvent('videoElementCreated', { element: this.#widget.video })));
  }

  // ---- Public API

  /** @param {boolean} on @returns {this} */
  subscribeToAudio(on) {
    this.#wants.audio = Boolean(on);
    this.#apply();
    this.#host.changed(this.stream.streamId);
    return this;
  }

  /** @param {boolean} on @returns {this} */
  subscribeToVideo(on) {
    const changed = this.#wants.video !== Boolean(on);
    this.#wants.video = Boolean(on);
    this.#quality.meter.skip();
    this.#apply();
    this.#host.changed(this.stream.streamId);
    if (changed && this.stream.hasVideo) this.#tellVideo(this.#wants.video, 'subscribeToVideo');
    return this;
  }

  /**
   * In a routed session with simulcast: requests the smallest layer that fills a box of this size. With 'auto', the
   * box is the size at which the video is shown, and no video is requested while it is hidden or the page is in the
   * background.
   * @param {import('../media/preference.js').Size | 'auto' | null} size null for the largest layer
   * @returns {this}
   */
  setPreferredResolution(size) {
    this.#setResolution(size);
    this.#host.changed(this.stream.streamId);
    return this;
  }

  /**
   * Limits the frame rate, if the publisher's encoding allows it.
   * @param {number | null} frameRate null for no limit
   * @returns {this}
   */
  setPreferredFrameRate(frameRate) {
    this.#frameRate = preferredFrameRate(frameRate);
    this.#host.changed(this.stream.streamId);
    return this;
  }

  /** @param {boolean} restricted true for the lowest possible frame rate @returns {this} */
  restrictFrameRate(restricted) {
    this.#restricted = Boolean(restricted);
    this.#host.changed(this.stream.streamId);
    return this;
  }

  /**
   * Pins this video in a routed session: if the network cannot carry all videos, those of a higher priority become sharp first and
   * pause last. OpenTok does not have this method.
   * @param {number | null} priority 0 to 100. Above 0, this video has precedence over that of the active speaker; at 0
   *   or null, it does not
   * @returns {this}
   */
  setPriority(priority) {
    this.#priority = priorityOf(priority);
    this.#host.changed(this.stream.streamId);
    return this;
  }

  /** @param {number} volume 0 to 100 @returns {this} */
  setAudioVolume(volume) {
    this.#widget.video.volume = Math.min(100, Math.max(0, volume)) / 100;
    return this;
  }

  getAudioVolume() {
    return Math.round(this.#widget.video.volume * 100);
  }

  /** Returns whether the browser requires a click before it plays sound. If so, call `OT.unblockAudio` on a click. */
  isAudioBlocked() {
    return this.#blocked;
  }

  videoWidth() {
    return this.#widget.video.videoWidth || undefined;
  }

  videoHeight() {
    return this.#widget.video.videoHeight || undefined;
  }

  getImgData() {
    return this.#widget.snapshot();
  }

  /** @param {(error: Error | null, stats?: ReturnType<typeof subscriberStats>) => void} callback */
  getStats(callback) {
    Promise.all([this.#reports(), this.#host.estimate()]).then(
      ([reports, estimate]) => callback(null, subscriberStats(reports, this.networkCondition, this.#quality.limitation, estimate)),
      (error) => callback(error),
    );
  }

  /**
   * The network condition of the stream, and whose network causes it. The received media is measured only while the event
   * `networkConditionChanged` has a handler.
   */
  get networkCondition() {
    return this.#quality.condition;
  }

  /** @returns {Promise<RTCStatsReport>} one report for all tracks of the subscriber */
  async getRtcStatsReport() {
    const reports = await this.#reports();
    /** @type {Map<string, unknown>} */
    const merged = new Map();
    for (const report of reports) report.forEach((entry, id) => merged.set(id, entry));
    return /** @type {any} */ (merged);
  }

  /** @param {string} name */
  _handlersChanged(name) {
    if (name === 'networkConditionChanged') {
      if (this.hasHandlers(name) && this.#state !== 'destroyed') this.#quality.meter.start();
      else this.#quality.meter.stop();
    }
    if (name !== 'audioLevelUpdated') return;
    this.#stopMeter();
    this.#stopMeter = () => {};
    if (!this.hasHandlers(name) || this.#state === 'destroyed') return;
    this.#stopMeter = meter(
      () => receivedLevel(this.#host.receivers(this.stream.streamId)),
      (audioLevel) => this.dispatch(new OTEvent('audioLevelUpdated', { audioLevel })),
    );
  }

  // ---- Used by the transport and the session

  /** @param {Promise<void>} connected @returns {SubscriberSink} */
  #sink(connected) {
    const wants = () => ({ audio: this.#wants.audio, video: this.#wants.video && !this.#isHidden });
    const preference = () => ({
      ...this.#auto?.preference ?? this.#resolution, ...this.#restricted ? preferredFrameRate(1) : this.#frameRate, ...this.#priority,
    });
    return {
      connected,
      get wants() { return wants(); },
      get preference() { return preference(); },
      mediaArrived: (media) => this.#mediaArrived(media),
      mediaChanged: (state) => {
        this.#peerState = state;
        this.#advance();
      },
      expected: () => ({
        audio: this.stream.hasAudio && this.#wants.audio, video: this.#awaitsVideo && !this.#isHidden, keepsVideo: this.#awaitsVideo,
      }),
      videoPaused: (isPaused, reason) => this.#videoPaused(isPaused, reason),
      warned: (isWarned) => this.#warned(isWarned),
      limited: (change) => this.#quality.limited(change),
      uplinkChanged: () => this.#quality.check(),
      setUpAgain: () => {
        this.#warned(false);
        this.#quality.unlimited();
        if (this.#pause !== null) this.#videoPaused(false, this.#pause);
      },
      streamChanged: (change) => this.#streamChanged(change),
      unblock: () => this.#unblock(),
      destroy: (reason) => this.#destroy(reason),
    };
  }

  get #awaitsVideo() {
    return this.stream.hasVideo && this.#wants.video && this.#pause === null;
  }

  /** Whether the user currently cannot see the video. */
  get #isHidden() {
    return this.#auto?.isHidden ?? false;
  }

  /** @param {import('../media/preference.js').Size | 'auto' | null} size */
  #setResolution(size) {
    const isAuto = size === 'auto';
    if (!isAuto) this.#resolution = preferredResolution(size);
    if (isAuto === (this.#auto !== null) || this.#state === 'destroyed') return;
    this.#auto?.stop();
    this.#auto = !isAuto ? null : new AutoResolution({
      video: this.#widget.video,
      clock: this.#host.clock,
      picture: () => this.stream.videoDimensions,
      fitMode: this.#options.fitMode ?? 'cover',
      changed: () => {
        this.#quality.meter.skip();
        this.#host.viewChanged(this.stream.streamId);
      },
    });
  }

  /** @param {MediaStream} media */
  #mediaArrived(media) {
    if (this.#state === 'destroyed') return;
    this.#media = media;
    this.#widget.show(media);
    this.#advance();
  }

  /** @param {boolean} isPaused @param {string} reason */
  #videoPaused(isPaused, reason) {
    if (isPaused === (this.#pause !== null)) return;
    const pause = this.#pause ?? reason;
    this.#pause = isPaused ? reason : null;
    this.#quality.isWarned = false;
    this.#quality.meter.skip();
    this.#apply();
    // Report the reason for the pause, regardless of what ended it.
    if (this.stream.hasVideo && this.#wants.video) this.#tellVideo(!isPaused, pause);
    this.#quality.check();
  }

  /** @param {boolean} isWarned */
  #warned(isWarned) {
    if (isWarned === this.#quality.isWarned || this.#pause !== null) return;
    this.#quality.isWarned = isWarned;
    if (this.stream.hasVideo && this.#wants.video) this.dispatch(new OTEvent(isWarned ? 'videoDisableWarning' : 'videoDisableWarningLifted'));
    this.#quality.check();
  }

  #reports() {
    return Promise.all(this.#host.receivers(this.stream.streamId).map((receiver) => receiver.getStats()));
  }

  /** @param {import('./roster.js').Change} change */
  #streamChanged({ changedProperty, newValue }) {
    this.#quality.meter.skip();
    this.#apply();
    if (changedProperty === 'videoDimensions') this.#auto?.look();
    if (changedProperty === 'hasVideo' && this.#wants.video) this.#tellVideo(newValue, 'publishVideo');
  }

  #unblock() {
    if (!this.#blocked) return;
    this.#block(false);
    this.#widget.play();
  }

  /** @param {string} reason */
  #destroy(reason) {
    if (this.#state === 'destroyed') return;
    this.#state = 'destroyed';
    this.#stopMeter();
    this.#quality.meter.stop();
    this.#auto?.stop();
    this.#widget.destroy();
    subscribers.delete(this);
    this.#settle(otFailure('OT_STREAM_DESTROYED', 1604, 'The stream ended before its media arrived.'));
    this.dispatch(new OTEvent('destroyed', { reason }));
  }

  // ----

  /** Updates the state, and emits `connected` or `disconnected` if it changed. */
  #advance() {
    const isConnected = this.#media !== null && this.#peerState === 'connected';
    const isLost = this.#peerState === 'disconnected' || this.#peerState === 'failed';
    if (isConnected && (this.#state === 'waiting' || this.#state === 'disconnected')) {
      this.#state = 'connected';
      this.#settle();
      this.dispatch(new OTEvent('connected'));
      this.#quality.check();
    } else if (isLost && this.#state === 'connected') {
      this.#state = 'disconnected';
      this.dispatch(new OTEvent('disconnected'));
      this.#quality.check();
    }
  }

  #apply() {
    // Mute the element, not the track: another subscriber may show the same stream.
    this.#widget.video.muted = this.#blocked || !this.#wants.audio;
    this.#widget.audioOnly = !this.#awaitsVideo;
  }

  /** @param {boolean} blocked */
  #block(blocked) {
    if (this.#blocked === blocked || this.#state === 'destroyed') return;
    this.#blocked = blocked;
    this.#apply();
    this.dispatch(new OTEvent(blocked ? 'audioBlocked' : 'audioUnblocked'));
    // Now that the element is muted, the browser may play it without a click.
    if (blocked) this.#widget.play();
  }

  /** @param {boolean} enabled @param {string} reason */
  #tellVideo(enabled, reason) {
    this.dispatch(new OTEvent(enabled ? 'videoEnabled' : 'videoDisabled', { reason }));
  }
}
