// `Publisher`: a camera, a microphone or a screen, shown on the page and sent to a session while published. It outlives
// sessions: prevent the default action of `streamDestroyed` and publish it again elsewhere.

import { Emitter, OTEvent } from '../events.js';
import { SentLevel } from '../media/audio-level.js';
import { Capture } from '../media/capture.js';
import { good } from '../media/condition.js';
import { deviceError } from '../media/devices.js';
import { layersOf } from '../media/layers.js';
import { publisherStats } from '../media/stats.js';
import { Widget } from '../media/widget.js';
import { AccessDialog } from './access-dialog.js';
import { DeviceLoss } from './device-loss.js';
import { PublisherFallback } from './publisher-fallback.js';
import { SentQuality } from './quality.js';
import { publishers, settle } from './registry.js';

/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {import('./core.js').SessionCore} SessionCore */
/** @typedef {import('../media/constraints.js').MediaSource} MediaSource */
/** @typedef {import('../media/capture.js').Kind} Kind */
/** @typedef {import('./publisher-types.js').PublisherSource} PublisherSource */

/** @type {WeakMap<Publisher, PublisherSource>} */
const sources = new WeakMap();

/** @param {Publisher} publisher @returns {PublisherSource} its internals; the same object on every call */
export function sourceOf(publisher) {
  return /** @type {PublisherSource} */ (sources.get(publisher));
}

/** The maximum number of characters of a stream's initials. */
const longestInitials = 8;

export class Publisher extends Emitter {
  #options;
  #widget;
  #capture;
  #dialog = new AccessDialog((type) => this.dispatch(new OTEvent(type, {}, true)));
  /** @type {Record<Kind, boolean>} */
  #sends;
  #destroyed = false;
  #level = new SentLevel((audioLevel) => this.dispatch(new OTEvent('audioLevelUpdated', { audioLevel })));
  #fallback;
  /** @type {SentQuality} */
  #quality;
  /** @type {DeviceLoss} */
  #loss;
  /** @type {import('../media/sending.js').SendingOptions} */
  #sending;
  /** Settles when the publisher has something to send, or has failed to get it. */
  #ready;
  /** @type {import('./publications.js').Publications | null} those of its session; null while not published */
  #publications = null;
  /** @type {Stream | null} */
  stream = null;
  /** @type {import('./session.js').Session | null} */
  session = null;
  /** @type {boolean | undefined} whether the media could be opened; undefined until the browser has answered */
  accessAllowed = undefined;

  /**
   * @param {import('../media/widget.js').Target} target
   * @param {import('./publisher-types.js').PublisherOptions} options
   * @param {import('./arguments.js').Callback} [callback]
   */
  constructor(target, options, callback) {
    super();
    this.#options = options;
    this.#sends = { audio: options.publishAudio ?? true, video: options.publishVideo ?? true };
    this.#sending = { ...options };
    this.#capture = new Capture(options, (track) => this.#loss.stopped(track));
    this.#widget = new Widget('publisher', target, options, {
      loaded: () => {},
      resized: (dimensions) => this.#resized(dimensions),
    });
    this.#widget.video.muted = true;
    this.#mirror();
    this.element = this.#widget.element;
    this.id = this.#widget.id;
    this.#fallback = new PublisherFallback({
      isTooSlow: () => this.#has('video') && this.#quality.isTooSlow,
      changed: () => this.#videoChanged(),
      tell: (type, attributes) => this.dispatch(new OTEvent(type, attributes)),
    });
    this.#quality = new SentQuality({
      reports: () => this.#reports(),
      stream: () => this.stream,
      isVideoStopped: () => this.#fallback.isStopped,
      judged: () => this.#fallback.check(),
      changed: (condition) => this.dispatch(new OTEvent('networkConditionChanged', condition)),
    });
    this.#loss = new DeviceLoss({
      capture: this.#capture,
      replace: () => this.#replace('audio', true),
      dispatch: (event, whenAllowed) => this.dispatch(event, whenAllowed),
      over: () => this.#stopped(),
    });
    publishers.add(this);
    this.#ready = this.#start();
    sources.set(this, this.#source());
    settle(this.#ready, callback, this, deviceError);
  }

  // ---- Public API

  /** @param {boolean} on @returns {this} */
  publishAudio(on) {
    return this.#send('audio', on);
  }

  /** @param {boolean} on @returns {this} */
  publishVideo(on) {
    return this.#send('video', on);
  }

  /**
   * @param {MediaSource} source a device id, a track, true for the default microphone, or null for none
   * @returns {Promise<void>}
   */
  async setAudioSource(source) {
    this.#loss.end();
    await this.#replace('audio', source);
  }

  /** @param {MediaSource} source @returns {Promise<void>} */
  async setVideoSource(source) {
    await this.#replace('video', source);
  }

  /** @returns {import('../media/sending.js').ContentHint} */
  getVideoContentHint() {
    return this.#sending.videoContentHint ?? '';
  }

  /** @param {import('../media/sending.js').ContentHint} hint '' lets the browser choose */
  setVideoContentHint(hint) {
    this.#sending.videoContentHint = hint;
    this.#apply('video');
  }

  /** @param {number | undefined} bitrate maximum bitrate of the largest layer, in bit/s; undefined for the default */
  setMaxVideoBitrate(bitrate) {
    this.#tune({ maxVideoBitrate: bitrate });
  }

  /** @param {number | undefined} frameRate maximum frames per second to send; undefined for no limit */
  setMaxFrameRate(frameRate) {
    this.#tune({ frameRate });
  }

  /**
   * Switches to the next camera.
   * @returns {Promise<{deviceId: string}>}
   */
  async cycleVideo() {
    const deviceId = await this.#capture.nextCamera();
    await this.#replace('video', deviceId);
    return { deviceId };
  }

  /**
   * Sends what `processor` makes of the tracks of this kind, or the tracks themselves if it is null.
   * @param {Kind} kind
   * @param {import('../media/capture.js').Processor | null} processor
   */
  async process(kind, processor) {
    await this.#ready;
    await this.#replaced(kind, () => this.#capture.process(kind, processor));
  }

  /**
   * Called with each track of a source before it is shown or sent. Override this to prepare tracks. If it fails, the track is not used.
   * @param {MediaStreamTrack} _track
   * @returns {Promise<void>}
   */
  async _prepareTrack(_track) {}

  get isDestroyed() {
    return this.#destroyed;
  }

  getAudioSource() {
    return this.#capture.source('audio');
  }

  getVideoSource() {
    const track = this.#capture.source('video');
    return { deviceId: track?.getSettings().deviceId ?? null, type: this.#capture.videoType ?? null, track };
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

  /** @param {(error: Error | null, stats?: {connectionId: string, stats: ReturnType<typeof publisherStats>}[]) => void} callback */
  getStats(callback) {
    this.#reports().then(
      (all) => callback(null, all.map(({ connectionId, reports }) => ({ connectionId, stats: publisherStats(reports, this.networkCondition) }))),
      (error) => callback(error),
    );
  }

  /**
   * The condition of the network over which the stream is sent. This client measures it only while the stream is
   * published, and only if `networkConditionChanged` has a handler or the audio fallback is on. Otherwise only the
   * server's judgment counts.
   */
  get networkCondition() {
    return this.#quality.condition;
  }

  /**
   * @returns {Promise<{connectionId: string, rtcStatsReport: RTCStatsReport}[]>} one report for each track and, in
   *   relayed sessions, each subscriber
   */
  async getRtcStatsReport() {
    const all = await this.#reports();
    return all.flatMap(({ connectionId, reports }) => reports.map((rtcStatsReport) => ({ connectionId, rtcStatsReport })));
  }

  /**
   * Ends the publisher for good: unpublishes it, removes it from the page and turns the camera off.
   * @returns {this}
   */
  destroy() {
    this.session?.unpublish(this);
    this.#dispose();
    return this;
  }

  /** @param {string} name */
  _handlersChanged(name) {
    if (name === 'audioLevelUpdated') this.#meter();
    if (name === 'networkConditionChanged') this.#judge();
  }

  // ---- Used by the session

  /** @returns {PublisherSource} */
  #source() {
    return {
      ready: this.#ready,
      tracks: () => this.#capture.tracks().filter(({ kind }) => !this.#isStopped(kind)),
      sending: this.#sending,
      layers: () => layersOf(this.#options, this.#capture.track('video')),
      announcement: () => this.#announcement(),
      published: (core, stream) => this.#published(core, stream),
      unpublished: (reason) => this.#unpublished(reason),
      uplinkChanged: () => this.#quality.check(),
      frame: async (width, quality) => (this.#sendsNow('video') ? this.#widget.jpeg(width, quality) : null),
      muteForced: () => {
        this.publishAudio(false);
        this.dispatch(new OTEvent('muteForced'));
      },
    };
  }

  /** @returns {import('./publisher-types.js').Announcement} */
  #announcement() {
    const { width, height } = this.#capture.track('video')?.getSettings() ?? {};
    return {
      ...described(this.#options), hasAudio: this.#sendsNow('audio'), hasVideo: this.#sendsNow('video'), videoType: this.#capture.videoType,
      ...(width && height ? { width: Math.round(width), height: Math.round(height) } : {}),
    };
  }

  /** @param {SessionCore} core @param {Stream} stream */
  #published({ session, publications }, stream) {
    this.session = session;
    this.#publications = publications;
    this.stream = stream;
    if (this.#options.audioFallback?.publisher) this.#fallback.run(publications.clock);
    this.#judge();
    this.dispatch(new OTEvent('streamCreated', { stream }));
  }

  /** @param {string} reason */
  #unpublished(reason) {
    const { stream } = this;
    this.session = null;
    this.#publications = null;
    this.stream = null;
    this.#fallback.run(null);
    this.#judge();
    if (stream) this.dispatch(new OTEvent('streamDestroyed', { stream, reason }, true), () => this.#dispose());
  }

  // ----

  async #start() {
    this.#dialog.begin();
    try {
      const media = await this.#capture.start();
      for (const track of this.#capture.tracks()) await this._prepareTrack(track);
      this.accessAllowed = true;
      for (const kind of /** @type {const} */ (['audio', 'video'])) this.#apply(kind);
      this.#mirror();
      this.#widget.show(media);
      this.#dialog.end();
      this.dispatch(new OTEvent('videoElementCreated', { element: this.#widget.video }));
      this.dispatch(new OTEvent('accessAllowed'));
      this.#meter();
    } catch (error) {
      const known = deviceError(error);
      this.accessAllowed = false;
      this.#dialog.end();
      const { name, message } = known;
      if (name === 'OT_USER_MEDIA_ACCESS_DENIED') this.dispatch(new OTEvent('accessDenied', { message }, true));
      this.#dispose();
      throw known;
    }
  }

  /** @param {Kind} kind */
  #has(kind) {
    return this.#sends[kind] && this.#capture.track(kind) !== null;
  }

  /** @param {string} kind */
  #isStopped(kind) {
    return kind === 'video' && this.#fallback.isStopped;
  }

  /** @param {Kind} kind */
  #sendsNow(kind) {
    return this.#has(kind) && !this.#isStopped(kind);
  }

  /** Handles the fallback stopping or resuming the video. The preview continues. */
  #videoChanged() {
    // The server's last judgment is about the media that was sent before this change.
    if (this.stream) this.stream.uplink = good;
    this.#quality.skip();
    this.#publications?.replaceTrack(this, 'video', this.#isStopped('video') ? null : this.#capture.track('video'));
    this.#tell('video');
    this.#quality.check();
  }

  /** @param {Kind} kind @param {boolean} on @returns {this} */
  #send(kind, on) {
    this.#sends[kind] = Boolean(on);
    if (kind === 'video') this.#fallback.videoTurned(this.#sends.video);
    this.#apply(kind);
    this.#tell(kind);
    return this;
  }

  /** @param {Kind} kind */
  #apply(kind) {
    const track = this.#capture.track(kind);
    if (track) track.enabled = this.#sends[kind];
    if (kind === 'audio') return;
    this.#widget.audioOnly = !this.#has('video');
    // Without this option, keep the browser's hint: browsers set one for screens.
    if (track && this.#sending.videoContentHint !== undefined) track.contentHint = this.#sending.videoContentHint;
  }

  /**
   * Notifies the other members whether this publisher sends audio or video.
   * @param {Kind} kind
   */
  #tell(kind) {
    const has = this.#sendsNow(kind);
    this.#publications?.update(this, kind === 'audio' ? { hasAudio: has } : { hasVideo: has });
    // If video was turned on, the network may be too slow for it.
    this.#fallback.check();
  }

  /** @param {Kind} kind @param {MediaSource} source @returns {Promise<MediaStreamTrack | null>} the new track */
  async #replace(kind, source) {
    await this.#ready;
    const prepare = (/** @type {MediaStreamTrack} */ track) => this._prepareTrack(track);
    return this.#replaced(kind, () => this.#capture.replace(kind, source, prepare).catch((error) => { throw deviceError(error); }));
  }

  /**
   * @param {Kind} kind
   * @param {() => Promise<MediaStreamTrack | null>} replace
   * @returns {Promise<MediaStreamTrack | null>} the new track
   */
  async #replaced(kind, replace) {
    const had = this.#has(kind);
    const track = await replace();
    this.#apply(kind);
    this.#mirror();
    if (kind === 'audio') this.#meter();
    this.#publications?.replaceTrack(this, kind, this.#isStopped(kind) ? null : track);
    if (had !== this.#has(kind)) this.#tell(kind);
    return track;
  }

  /**
   * Mirrors the preview, because people expect to see themselves mirrored. By default, screens and back cameras are
   * not mirrored.
   */
  #mirror() {
    const { facingMode } = this.#capture.source('video')?.getSettings() ?? {};
    this.#widget.mirrored = this.#options.mirror ?? (facingMode !== 'environment' && this.#capture.videoType !== 'screen');
  }

  /** @param {{width: number, height: number}} dimensions */
  #resized({ width, height }) {
    const old = this.stream?.videoDimensions;
    this.dispatch(new OTEvent('videoDimensionsChanged', { oldValue: old, newValue: { width, height } }));
    const isNews = old && width > 0 && (old.width !== width || old.height !== height);
    if (isNews) this.#publications?.update(this, { width, height });
  }

  /** @param {import('../media/sending.js').SendingOptions} changes */
  #tune(changes) {
    Object.assign(this.#sending, changes);
    if (this.stream) this.#publications?.tune(this.stream.streamId);
  }

  #stopped() {
    this.session?.unpublish(this, 'mediaStopped');
    this.#dispose();
  }

  #judge() {
    const isWanted = this.hasHandlers('networkConditionChanged') || this.#options.audioFallback?.publisher;
    this.#quality.judge(isWanted ? this.#publications?.clock ?? null : null);
  }

  #reports() {
    return this.#publications?.reports(this) ?? Promise.resolve([]);
  }

  #meter() {
    this.#level.listen(this.#destroyed || !this.hasHandlers('audioLevelUpdated') ? null : this.#capture.track('audio'));
  }

  #dispose() {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#level.listen(null);
    this.#dialog.cancel();
    this.#loss.stop();
    this.#capture.stop();
    this.#widget.destroy();
    publishers.delete(this);
    this.dispatch(new OTEvent('destroyed'));
  }
}

/**
 * Returns the options that describe a stream to others, within the limits of the protocol (§4).
 * @param {import('./publisher-types.js').PublisherOptions} options
 */
function described({ name, initials, frameRate }) {
  return {
    name,
    initials: typeof initials === 'string' ? [...initials].slice(0, longestInitials).join('') : undefined,
    frameRate: Number.isFinite(frameRate) ? Math.min(240, Math.max(1, Math.round(Number(frameRate)))) : undefined,
  };
}
