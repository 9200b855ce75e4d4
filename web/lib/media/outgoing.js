// The streams that are sent to one other member of a session, with their tracks and senders.

import { preferCodec } from './codecs.js';

/** @typedef {{audio: boolean, video: boolean}} Wanted */
/**
 * A stream being sent. `wanted` says which kinds of media the subscriber wants; `tracks` and `senders` are keyed by
 * kind.
 * @typedef {object} Outgoing
 * @property {MediaStream} container
 * @property {Wanted} wanted
 * @property {import('./codecs.js').CodecOptions} codecs
 * @property {Map<string, MediaStreamTrack | null>} tracks
 * @property {Map<string, RTCRtpSender>} senders
 */

export class OutgoingStreams {
  #rtc;
  #failed;
  /** @type {RTCPeerConnection | null} */
  #connection = null;
  /** @type {Map<string, Outgoing>} by stream id */
  #streams = new Map();

  /** @param {import('./peer.js').Rtc} rtc @param {(error: unknown) => void} failed */
  constructor(rtc, failed) {
    this.#rtc = rtc;
    this.#failed = failed;
  }

  get isEmpty() {
    return this.#streams.size === 0;
  }

  /**
   * Maps the `MediaStream` ids in our descriptions to stream ids.
   * @returns {Map<string, string>}
   */
  get names() {
    return new Map([...this.#streams].map(([streamId, { container }]) => [container.id, streamId]));
  }

  /** @param {string} streamId @returns {[string, RTCRtpSender][]} pairs of a kind and its sender */
  senders(streamId) {
    return [...this.#streams.get(streamId)?.senders ?? []];
  }

  /**
   * Sends the streams on this connection instead of the previous one. If `connection` is null, sends nothing.
   * @param {RTCPeerConnection | null} connection
   */
  move(connection) {
    this.#connection = connection;
    for (const outgoing of this.#streams.values()) {
      outgoing.senders.clear();
      this.#addTracks(outgoing);
    }
  }

  /**
   * @param {string} streamId
   * @param {MediaStreamTrack[]} tracks
   * @param {Wanted} wanted
   * @param {import('./codecs.js').CodecOptions} [codecs]
   */
  send(streamId, tracks, wanted, codecs = {}) {
    const known = this.#streams.get(streamId);
    if (known) {
      known.wanted = wanted;
      for (const [kind, sender] of known.senders) this.#swap(sender, this.#effective(known, kind));
      return;
    }
    const outgoing = {
      // Each peer has a separate container. Only its id is used, which `nameStreams` replaces with the stream's id in
      // the descriptions for this peer.
      container: new this.#rtc.MediaStream(), wanted, codecs,
      tracks: new Map(tracks.map((track) => [track.kind, /** @type {MediaStreamTrack | null} */ (track)])),
      senders: new Map(),
    };
    this.#streams.set(streamId, outgoing);
    this.#addTracks(outgoing);
  }

  /** @param {string} streamId */
  stop(streamId) {
    const outgoing = this.#streams.get(streamId);
    this.#streams.delete(streamId);
    for (const sender of outgoing?.senders.values() ?? []) this.#connection?.removeTrack(sender);
  }

  /**
   * @param {string} streamId
   * @param {string} kind
   * @param {MediaStreamTrack | null} track
   */
  replaceTrack(streamId, kind, track) {
    const outgoing = this.#streams.get(streamId);
    if (!outgoing) return;
    outgoing.tracks.set(kind, track);
    const sender = outgoing.senders.get(kind);
    if (sender) this.#swap(sender, this.#effective(outgoing, kind));
    else this.#addTracks(outgoing);
  }

  /** @param {Outgoing} outgoing */
  #addTracks(outgoing) {
    for (const [kind, track] of this.#connection ? outgoing.tracks : []) {
      if (track === null || outgoing.senders.has(kind)) continue;
      const connection = /** @type {RTCPeerConnection} */ (this.#connection);
      const sender = connection.addTrack(track, outgoing.container);
      outgoing.senders.set(kind, sender);
      const transceiver = connection.getTransceivers().find((one) => one.sender === sender);
      preferCodec(transceiver, /** @type {import('./codecs.js').Kind} */ (kind), outgoing.codecs);
      if (this.#effective(outgoing, kind) === null) this.#swap(sender, null);
    }
  }

  /** @param {Outgoing} outgoing @param {string} kind @returns the track to send; null for none */
  #effective({ tracks, wanted }, kind) {
    return wanted[/** @type {'audio' | 'video'} */ (kind)] ? tracks.get(kind) ?? null : null;
  }

  /** @param {RTCRtpSender} sender @param {MediaStreamTrack | null} track */
  #swap(sender, track) {
    if (sender.track !== track) sender.replaceTrack(track).catch((error) => this.#failed(error));
  }
}
