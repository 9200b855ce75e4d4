// Media with one other connection of a session: one `RTCPeerConnection`, perfect negotiation, trickle ICE, and ICE restarts or
// a new connection until media works again. Streams are identified by their ids. The transport decides which streams are
// wanted.
//
// Perfect negotiation: https://www.w3.org/TR/webrtc/#perfect-negotiation-example

import { Timers } from '../clock.js';
import { isMozilla, keepRole, nameStreams, originOf, roleOf } from './sdp.js';

/** How long to wait in state `disconnected`. Browsers often recover within seconds, but never after a gap of 25 s. */
const disconnectedMs = 3000;
const failedMs = 250;
/** Pause between failed restarts. */
const restartAgainMs = 10_000;
/**
 * The impolite end makes the first offer. If two first offers cross, the polite end rolls its own offer back, after which
 * Chromium sometimes gathers candidates forever and never connects. So the polite end waits this long before its first offer.
 */
const firstOfferMs = 3000;
/** Both ends notice the same failure. The polite end waits longer by this factor, so that usually only one end restarts. */
const politeFactor = 2;
/** Maximum candidates that wait for their description to be set. No browser gathers this many. */
const maxEarlyCandidates = 100;

/** @typedef {{audio: boolean, video: boolean}} Wanted */
/** @typedef {{description: RTCSessionDescriptionInit} | {candidate: RTCIceCandidateInit | null}} Payload */
/** @typedef {{RTCPeerConnection: typeof RTCPeerConnection, MediaStream: typeof MediaStream}} Rtc */
/** @typedef {'connecting' | 'connected' | 'disconnected' | 'failed'} PeerState */
/**
 * A stream being sent, with its tracks and senders by kind.
 * @typedef {object} Outgoing
 * @property {MediaStream} container
 * @property {Wanted} wanted
 * @property {Map<string, MediaStreamTrack | null>} tracks
 * @property {Map<string, RTCRtpSender>} senders
 */

/**
 * @typedef {object} PeerOptions
 * @property {boolean} polite
 * @property {Rtc} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {() => Promise<RTCConfiguration>} configuration with valid credentials
 * @property {(payload: Payload) => Promise<unknown>} send
 * @property {(streamId: string, media: MediaStream) => void} arrived
 * @property {(state: PeerState) => void} changed
 * @property {(error: unknown) => void} failed
 */

export class Peer {
  #options;
  #timers;
  /** @type {RTCPeerConnection | null} */
  #connection = null;
  /** @type {Promise<void>} received messages are handled one after the other */
  #incoming;
  /** @type {Map<string, Outgoing>} by stream id */
  #outgoing = new Map();
  /** @type {(RTCIceCandidateInit | null)[]} */
  #earlyCandidates = [];
  /** @type {Map<string, string>} the stream ids by the `MediaStream` ids of a peer that cannot rename them */
  #aliases = new Map();
  /** @type {string | undefined} */
  #origin;
  /** @type {boolean | undefined} from the description as received: Chromium rewrites `remoteDescription` */
  #isTheirsMozilla;
  /** @type {'active' | 'passive' | undefined} our DTLS role since the first answer */
  #role;
  #makingOffer = false;
  #ignoringOffer = false;
  #posts = 0;
  #restartedAt = -Infinity;
  /** Number of restarts since media last worked. */
  #restarts = 0;
  /** Whether media from the other end is expected. */
  #expecting = false;
  #closed = false;

  /** @param {PeerOptions} options */
  constructor(options) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
    this.#incoming = options.configuration().then((configuration) => {
      if (!this.#closed) this.#open(configuration);
    }).catch((error) => this.#failed(error));
  }

  /** @returns {PeerState} */
  get state() {
    const state = this.#connection?.connectionState;
    return state === 'connected' || state === 'disconnected' || state === 'failed' ? state : 'connecting';
  }

  /**
   * Starts sending a stream, or updates which of its tracks are sent.
   * @param {string} streamId
   * @param {MediaStreamTrack[]} tracks
   * @param {Wanted} wanted
   */
  send(streamId, tracks, wanted) {
    const known = this.#outgoing.get(streamId);
    if (known) {
      known.wanted = wanted;
      for (const [kind, sender] of known.senders) this.#swap(sender, this.#effective(known, kind));
      return;
    }
    const outgoing = {
      // Only the id of this container is used. Each peer has a separate container, so renaming is unambiguous.
      container: new this.#options.rtc.MediaStream(), wanted,
      tracks: new Map(tracks.map((track) => [track.kind, /** @type {MediaStreamTrack | null} */ (track)])),
      senders: new Map(),
    };
    this.#outgoing.set(streamId, outgoing);
    this.#addTracks(outgoing);
  }

  /**
   * Our first offer will request media from the other end. Call this in case that offer is made before we have anything to
   * send.
   */
  expect() {
    if (this.#expecting) return;
    this.#expecting = true;
    if (this.#connection) this.#expectMedia(this.#connection);
  }

  /** @param {string} streamId */
  stopSending(streamId) {
    const outgoing = this.#outgoing.get(streamId);
    this.#outgoing.delete(streamId);
    for (const sender of outgoing?.senders.values() ?? []) this.#connection?.removeTrack(sender);
  }

  /**
   * @param {string} streamId
   * @param {string} kind
   * @param {MediaStreamTrack | null} track
   */
  replaceTrack(streamId, kind, track) {
    const outgoing = this.#outgoing.get(streamId);
    if (!outgoing) return;
    outgoing.tracks.set(kind, track);
    const sender = outgoing.senders.get(kind);
    if (sender) this.#swap(sender, this.#effective(outgoing, kind));
    else this.#addTracks(outgoing);
  }

  get isSending() {
    return this.#outgoing.size > 0;
  }

  /** @param {import('../line/messages.js').Message} message a message of the other end, through the server */
  receive({ description, candidate, streams }) {
    for (const [id, name] of Object.entries(streams ?? {})) this.#aliases.set(id, String(name));
    this.#incoming = this.#incoming.then(async () => {
      if (this.#closed) return;
      if (description) await this.#describe(description);
      else if (candidate !== undefined) await this.#candidate(candidate);
    }).catch((error) => this.#failed(error));
  }

  /** Checks the connection, because media may have failed unnoticed while signaling was interrupted. */
  resumed() {
    if (this.state !== 'connected') this.#restartIn(0);
  }

  /** @param {string} streamId @returns {[string, RTCRtpSender][]} by kind */
  senders(streamId) {
    return [...this.#outgoing.get(streamId)?.senders ?? []];
  }

  /** @param {MediaStream} media @returns {RTCRtpReceiver[]} */
  receivers(media) {
    const tracks = media.getTracks();
    return (this.#connection?.getReceivers() ?? []).filter(({ track }) => tracks.includes(track));
  }

  close() {
    this.#closed = true;
    this.#timers.clearAll();
    this.#shut();
  }

  // ---- The connection

  /** @param {RTCConfiguration} configuration */
  #open(configuration) {
    const connection = new this.#options.rtc.RTCPeerConnection(configuration);
    this.#connection = connection;
    connection.onnegotiationneeded = () => this.#negotiationNeeded(connection);
    connection.onicecandidate = ({ candidate }) => this.#post({ candidate: candidate?.toJSON() ?? null });
    connection.onconnectionstatechange = () => this.#changed();
    connection.ontrack = ({ streams }) => {
      for (const media of streams) this.#options.arrived(this.#aliases.get(media.id) ?? media.id, media);
    };
    for (const outgoing of this.#outgoing.values()) this.#addTracks(outgoing);
    if (this.#expecting) this.#expectMedia(connection);
  }

  /**
   * Adds receive-only transceivers. Tracks sent later use them too, because `addTrack` reuses receive-only transceivers.
   * @param {RTCPeerConnection} connection
   */
  #expectMedia(connection) {
    if (this.#options.polite || this.#origin !== undefined) return;
    const kinds = connection.getTransceivers().map(({ receiver }) => receiver.track.kind);
    for (const kind of ['audio', 'video']) {
      if (!kinds.includes(kind)) connection.addTransceiver(kind, { direction: 'recvonly' });
    }
  }

  #shut() {
    const connection = this.#connection;
    this.#connection = null;
    if (!connection) return;
    connection.onnegotiationneeded = connection.onicecandidate = null;
    connection.onconnectionstatechange = connection.ontrack = null;
    connection.close();
  }

  /**
   * Starts a new connection, because the other end replaced its connection or ours cannot apply the other end's description.
   */
  async #renew() {
    this.#shut();
    this.#origin = undefined;
    this.#role = undefined;
    this.#makingOffer = false;
    this.#earlyCandidates = [];
    for (const outgoing of this.#outgoing.values()) outgoing.senders.clear();
    const configuration = await this.#options.configuration();
    if (!this.#closed) this.#open(configuration);
  }

  /** @param {Outgoing} outgoing */
  #addTracks(outgoing) {
    for (const [kind, track] of this.#connection ? outgoing.tracks : []) {
      if (track === null || outgoing.senders.has(kind)) continue;
      const sender = /** @type {RTCPeerConnection} */ (this.#connection).addTrack(track, outgoing.container);
      outgoing.senders.set(kind, sender);
      if (this.#effective(outgoing, kind) === null) this.#swap(sender, null);
    }
  }

  /** @param {Outgoing} outgoing @param {string} kind the media kind */
  #effective({ tracks, wanted }, kind) {
    return wanted[/** @type {'audio' | 'video'} */ (kind)] ? tracks.get(kind) ?? null : null;
  }

  /** @param {RTCRtpSender} sender @param {MediaStreamTrack | null} track */
  #swap(sender, track) {
    if (sender.track !== track) sender.replaceTrack(track).catch((error) => this.#failed(error));
  }

  #changed() {
    const { state } = this;
    if (state === 'connected') {
      this.#timers.clear('restart');
      this.#restarts = 0;
    }
    if (state === 'disconnected') this.#restartIn(disconnectedMs);
    if (state === 'failed') this.#restartIn(failedMs);
    this.#options.changed(state);
  }

  /** @param {number} ms */
  #restartIn(ms) {
    const { clock, polite, configuration } = this.#options;
    // A connection whose state alternates quickly must not restart each time, because a restart needs time to succeed.
    const earliest = this.#restartedAt + restartAgainMs - clock.now();
    this.#timers.set('restart', Math.max(polite ? ms * politeFactor : ms, earliest), async () => {
      const connection = this.#connection;
      this.#restartedAt = clock.now();
      // Fetch new credentials, because those in use may have expired.
      const fresh = await configuration().catch(() => null);
      if (!connection || connection !== this.#connection || this.state === 'connected') return;
      this.#restarts += 1;
      this.#restartIn(restartAgainMs);
      // This end has nothing to offer, so it cannot start a new connection; the other end will.
      const canOffer = this.isSending || (this.#expecting && !polite);
      if (canOffer && (this.#restarts > 1 || this.#isMixed(connection))) return this.#renew().catch(() => {});
      if (fresh) connection.setConfiguration?.(fresh);
      connection.restartIce();
    });
  }

  /**
   * True if one end is Firefox and the other Chromium. Between Firefox 153 and Chromium 156, an ICE restart offered by Chromium
   * leaves Firefox without media although both report connected, and a restart offered by Firefox never connects. Between
   * browsers with the same engine, restarts work.
   * @param {RTCPeerConnection} connection
   */
  #isMixed({ localDescription }) {
    return this.#isTheirsMozilla !== undefined && this.#isTheirsMozilla !== isMozilla(localDescription?.sdp);
  }

  // ---- Negotiation

  /** @param {RTCPeerConnection} connection */
  #negotiationNeeded(connection) {
    if (!this.#options.polite || this.#origin !== undefined) return this.#offer(connection);
    this.#timers.set('first offer', firstOfferMs, () => {
      // The browser fires `negotiationneeded` again after the other end's offer is answered.
      if (connection === this.#connection && this.#origin === undefined) this.#offer(connection);
    });
  }

  /** @param {RTCPeerConnection} connection */
  async #offer(connection) {
    this.#makingOffer = true;
    try {
      await connection.setLocalDescription();
      if (connection === this.#connection) this.#postDescription(connection);
    } catch (error) {
      if (connection === this.#connection) this.#failed(error);
    } finally {
      if (connection === this.#connection) this.#makingOffer = false;
    }
  }

  /** @param {RTCSessionDescriptionInit} description */
  async #describe(description) {
    const isOffer = description.type === 'offer';
    const origin = originOf(description.sdp ?? '');
    const isNewcomer = this.#origin !== undefined && origin !== this.#origin;
    if (isOffer && isNewcomer) await this.#renew();
    const connection = this.#connection;
    if (!connection) return;
    const collision = isOffer && (this.#makingOffer || connection.signalingState !== 'stable');
    this.#ignoringOffer = collision && !this.#options.polite;
    // The offer was withdrawn meanwhile, or its connection is gone: ignore the answer.
    const late = !isOffer && connection.signalingState !== 'have-local-offer';
    if (this.#ignoringOffer || late) return;
    await this.#accept(description);
    this.#origin = origin;
    this.#isTheirsMozilla = isMozilla(description.sdp);
    this.#timers.clear('first offer');
    // The other end is already restarting, so postpone our own restart.
    if (isOffer && this.#timers.has('restart')) this.#restartIn(restartAgainMs);
    if (!isOffer) this.#role = roleOf(description.sdp ?? '') === 'active' ? 'passive' : 'active';
    for (const candidate of this.#earlyCandidates.splice(0)) await this.#candidate(candidate);
    if (!isOffer || !this.#connection) return;
    await this.#connection.setLocalDescription();
    if (this.#connection) this.#postDescription(this.#connection);
  }

  /** @param {RTCSessionDescriptionInit} description */
  async #accept(description) {
    try {
      await this.#connection?.setRemoteDescription(description);
    } catch (error) {
      if (description.type !== 'offer' || this.#closed) throw error;
      await this.#renew();
      await this.#connection?.setRemoteDescription(description);
    }
  }

  /** @param {RTCIceCandidateInit | null} candidate */
  async #candidate(candidate) {
    if (!this.#connection?.remoteDescription) {
      if (this.#earlyCandidates.length < maxEarlyCandidates) this.#earlyCandidates.push(candidate);
      return;
    }
    try {
      await this.#connection.addIceCandidate(/** @type {any} */ (candidate));
    } catch (error) {
      // Ignore candidates of an offer that we ignored, and late candidates of a connection that was replaced.
      const fragment = candidate?.usernameFragment;
      const isForeign = fragment && !this.#connection?.remoteDescription?.sdp.includes(fragment);
      if (!this.#ignoringOffer && !isForeign && candidate) this.#failed(error);
    }
  }

  /**
   * Reports an error, unless this peer was closed, which can cause errors itself.
   * @param {unknown} error
   */
  #failed(error) {
    if (!this.#closed) this.#options.failed(error);
  }

  /** @param {RTCPeerConnection} connection */
  #postDescription({ localDescription }) {
    if (!localDescription) return;
    const { type, sdp } = localDescription;
    if (type === 'answer') this.#role = roleOf(sdp);
    const names = new Map([...this.#outgoing].map(([streamId, { container }]) => [container.id, streamId]));
    this.#post({ description: { type, sdp: nameStreams(type === 'offer' ? keepRole(sdp, this.#role) : sdp, names) } });
  }

  /** @param {Payload} payload */
  #post(payload) {
    this.#options.send(payload).catch((error) => {
      // Any other error means that one of the two ends left, which is reported elsewhere.
      if (this.#closed || error?.code !== 'rate_limited') return;
      this.#timers.set(`post ${this.#posts += 1}`, error.retryAfterMs ?? 1000, () => this.#post(payload));
    });
  }
}
