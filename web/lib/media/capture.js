// The tracks a publisher sends: one audio and one video track, either of which may be missing or replaced. Tracks passed in by
// the program belong to the program; only tracks that this file created are stopped.

import { otFailure } from '../errors.js';
import { isScreen, isTrack } from './constraints.js';
import { getUserMedia, listDevices } from './devices.js';

/** @typedef {import('./constraints.js').SourceOptions} SourceOptions */
/** @typedef {import('./constraints.js').MediaSource} MediaSource */
/** @typedef {'audio' | 'video'} Kind */
/**
 * A program's processing of a track, such as a blurred background, with OpenTok's names.
 * @typedef {object} Processor
 * @property {(track: MediaStreamTrack) => Promise<MediaStreamTrack>} setTrack starts to process another track, and returns the
 *   result, which may be the same track each time
 * @property {() => unknown} [destroy] ends the processing
 */

export class Capture {
  #options;
  #ended;
  /** @type {Set<MediaStreamTrack>} */
  #owned = new Set();
  #stopped = false;
  /** @type {Partial<Record<Kind, Processor>>} */
  #processors = {};
  /** @type {Map<Kind, MediaStreamTrack>} the tracks of the sources, without processing */
  #sources = new Map();
  /**
   * The stream of all current tracks, which the preview shows; null until `start` has opened them.
   * @type {MediaStream | null}
   */
  media = null;

  /**
   * @param {SourceOptions} options
   * @param {(track: MediaStreamTrack) => void} ended called when a current track has ended without being stopped by
   *   this object
   */
  constructor(options, ended) {
    this.#options = options;
    this.#ended = ended;
  }

  /** @returns {Promise<MediaStream>} */
  async start() {
    const { audioSource, videoSource } = this.#options;
    const given = [audioSource, videoSource].filter(isTrack);
    const asks = [audioSource, videoSource].some((source) => !isTrack(source) && source !== null && source !== false);
    const made = asks || given.length === 0 ? await this.#own(await getUserMedia(this.#options)) : [];
    this.media = new MediaStream();
    for (const track of [...given, ...made]) this.#add(track, track);
    return this.media;
  }

  /** @param {Kind} kind @returns {MediaStreamTrack | null} */
  track(kind) {
    return this.media?.getTracks().find((track) => track.kind === kind) ?? null;
  }

  /** @param {Kind} kind @returns {MediaStreamTrack | null} the track of the source, without processing */
  source(kind) {
    return this.#sources.get(kind) ?? null;
  }

  /** @returns {MediaStreamTrack[]} */
  tracks() {
    return this.media?.getTracks() ?? [];
  }

  /** @param {MediaStreamTrack | null} track @returns {boolean} whether this object opened the track */
  owns(track) {
    return track !== null && this.#owned.has(track);
  }

  /**
   * @returns {boolean} whether the audio source is a screen's audio, which a microphone must not replace if it ends
   */
  get hasScreenSound() {
    return isScreen(this.#options.audioSource);
  }

  /** @returns {'camera' | 'screen' | 'custom' | undefined} undefined if there is no video track */
  get videoType() {
    const { videoSource } = this.#options;
    if (!this.track('video')) return undefined;
    if (isScreen(videoSource)) return 'screen';
    return isTrack(videoSource) ? 'custom' : 'camera';
  }

  /**
   * Replaces the audio source or the video source, and stops the old track if this object opened it.
   * @param {Kind} kind
   * @param {MediaSource} source
   * @param {(track: MediaStreamTrack) => Promise<void>} prepare called with the new track before it is used. If it fails, the old
   *   track stays
   * @returns {Promise<MediaStreamTrack | null>} the new track; null if the source is none
   */
  async replace(kind, source, prepare) {
    const old = this.source(kind);
    const track = isTrack(source) ? source : await this.#request(kind, source, old);
    try {
      if (track) await prepare(track);
    } catch (error) {
      if (track && this.#owned.delete(track)) track.stop();
      throw error;
    }
    const shown = track && await this.#processed(kind, track);
    if (this.#stopped || !this.media) throw gone();
    this.#options = { ...this.#options, [`${kind}Source`]: source };
    this.#swap(kind, track, shown);
    return shown;
  }

  /**
   * Sets the processor for the current and all later tracks of this kind; null removes it.
   * @param {Kind} kind
   * @param {Processor | null} processor
   * @returns {Promise<MediaStreamTrack | null>} the track to send; null if there is none
   */
  async process(kind, processor) {
    const source = this.source(kind);
    const before = this.#processors[kind];
    const shown = source && processor ? await processor.setTrack(source) : source;
    if (this.#stopped || !this.media) throw gone();
    if (processor) this.#processors[kind] = processor;
    else delete this.#processors[kind];
    this.#swap(kind, source, shown);
    if (before && before !== processor) await before.destroy?.();
    return shown;
  }

  /** @param {Kind} kind @param {MediaStreamTrack} track */
  async #processed(kind, track) {
    return this.#processors[kind]?.setTrack(track) ?? track;
  }

  /** @param {Kind} kind @param {MediaStreamTrack | null} source @param {MediaStreamTrack | null} shown */
  #swap(kind, source, shown) {
    const [oldSource, oldShown] = [this.source(kind), this.track(kind)];
    if (oldShown && oldShown !== shown) this.media?.removeTrack(oldShown);
    this.#sources.delete(kind);
    if (oldSource && oldSource !== source && this.#owned.delete(oldSource)) oldSource.stop();
    if (!source || !shown) return;
    if (oldShown && oldShown !== shown) shown.enabled = oldShown.enabled;
    if (source === oldSource) {
      this.#sources.set(kind, source);
      if (oldShown !== shown) this.media?.addTrack(shown);
    } else {
      this.#add(source, shown);
    }
  }

  /** @returns {Promise<string>} the device id of the camera after the current one; after the last one, the first */
  async nextCamera() {
    const cameras = (await listDevices()).filter(({ kind }) => kind === 'videoInput');
    if (cameras.length === 0) throw otFailure('OT_NO_DEVICES_FOUND', 1500, 'No camera was found. Plug one in and try again.');
    const present = this.source('video')?.getSettings().deviceId;
    const index = cameras.findIndex(({ deviceId }) => deviceId === present);
    return cameras[(index + 1) % cameras.length].deviceId;
  }

  stop() {
    this.#stopped = true;
    for (const track of this.#owned) track.stop();
    this.#owned.clear();
    for (const processor of Object.values(this.#processors)) processor.destroy?.();
    this.#processors = {};
  }

  /**
   * @param {Kind} kind
   * @param {MediaSource} source
   * @param {MediaStreamTrack | null} old
   * @returns {Promise<MediaStreamTrack | null>}
   */
  async #request(kind, source, old) {
    if (source === null || source === false) return null;
    const options = { ...this.#options, audioSource: null, videoSource: null, [`${kind}Source`]: source };
    const ask = async () => (await this.#own(await getUserMedia(options)))[0] ?? null;
    try {
      return await ask();
    } catch (error) {
      // Many phones can open only one camera at a time, so stop the old camera and try again.
      if (!(error instanceof Error) || error.name !== 'OT_HARDWARE_UNAVAILABLE' || !old || !this.#owned.has(old)) throw error;
      old.stop();
      return ask();
    }
  }

  /** @param {MediaStream} media @returns {Promise<MediaStreamTrack[]>} */
  async #own(media) {
    const tracks = media.getTracks();
    if (this.#stopped) {
      // The publisher was destroyed while the browser was opening the devices: turn them off.
      for (const track of tracks) track.stop();
      throw gone();
    }
    for (const track of tracks) this.#owned.add(track);
    return tracks;
  }

  /** @param {MediaStreamTrack} source @param {MediaStreamTrack} shown */
  #add(source, shown) {
    const kind = /** @type {Kind} */ (source.kind);
    this.#sources.set(kind, source);
    source.addEventListener('ended', () => { if (this.source(kind) === source) this.#ended(source); });
    if (!this.tracks().includes(shown)) this.media?.addTrack(shown);
  }
}

function gone() {
  return otFailure('OT_MEDIA_ERR_ABORTED', 1500, 'The publisher was destroyed before its camera started. Create a new one.');
}
