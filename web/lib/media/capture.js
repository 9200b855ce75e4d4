// The tracks a publisher sends: one audio and one video track, either of which may be missing or replaced. Tracks passed in by
// the program belong to the program; only tracks that this file created are stopped.

import { otFailure } from '../errors.js';
import { isScreen, isTrack } from './constraints.js';
import { getUserMedia, listDevices } from './devices.js';

/** @typedef {import('./constraints.js').SourceOptions} SourceOptions */
/** @typedef {import('./constraints.js').MediaSource} MediaSource */
/** @typedef {'audio' | 'video'} Kind */

export class Capture {
  #options;
  #ended;
  /** @type {Set<MediaStreamTrack>} */
  #owned = new Set();
  #stopped = false;
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
    for (const track of [...given, ...made]) this.#add(track);
    return this.media;
  }

  /** @param {Kind} kind @returns {MediaStreamTrack | null} */
  track(kind) {
    return this.media?.getTracks().find((track) => track.kind === kind) ?? null;
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
   * @returns {Promise<MediaStreamTrack | null>} the new track; null if the source is none
   */
  async replace(kind, source) {
    const old = this.track(kind);
    const track = isTrack(source) ? source : await this.#request(kind, source, old);
    if (this.#stopped || !this.media) throw gone();
    this.#options = { ...this.#options, [`${kind}Source`]: source };
    if (old && old !== track) this.#remove(old);
    if (track && old !== track) {
      if (old) track.enabled = old.enabled;
      this.#add(track);
    }
    return track;
  }

  /** @returns {Promise<string>} the device id of the camera after the current one; after the last one, the first */
  async nextCamera() {
    const cameras = (await listDevices()).filter(({ kind }) => kind === 'videoInput');
    if (cameras.length === 0) throw otFailure('OT_NO_DEVICES_FOUND', 1500, 'No camera was found. Plug one in and try again.');
    const present = this.track('video')?.getSettings().deviceId;
    const index = cameras.findIndex(({ deviceId }) => deviceId === present);
    return cameras[(index + 1) % cameras.length].deviceId;
  }

  stop() {
    this.#stopped = true;
    for (const track of this.#owned) track.stop();
    this.#owned.clear();
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

  /** @param {MediaStreamTrack} track */
  #add(track) {
    track.addEventListener('ended', () => { if (this.tracks().includes(track)) this.#ended(track); });
    this.media?.addTrack(track);
  }

  /** @param {MediaStreamTrack} track */
  #remove(track) {
    this.media?.removeTrack(track);
    if (this.#owned.delete(track)) track.stop();
  }
}

function gone() {
  return otFailure('OT_MEDIA_ERR_ABORTED', 1500, 'The publisher was destroyed before its camera started. Create a new one.');
}
