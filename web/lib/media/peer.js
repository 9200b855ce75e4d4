// Media with one other connection of a session: one `RTCPeerConnection`, perfect negotiation, candidates as they come, and
// ICE restarts or a new connection until it works again. It knows streams by their ids; who wants which is for the transport.
//
// Perfect negotiation: https://www.w3.org/TR/webrtc/#perfect-negotiation-example

import { Timers } from '../clock.js';
import { isMozilla, keepRole, nameStreams, originOf, roleOf } from './sdp.js';

/** A browser that says `disconnected` often recovers by itself within seconds; a hole of 25 s it never survives. */
const disconnectedMs = 3000;
const failedMs = 250;
/** Between restarts that did not help. */
const restartAgainMs = 10_000;
/**
 * The impolite end makes the first offer. Two first offers that cross make the polite one take its own back, after which
 * Chromium sometimes gathers for ever and never connects; so it gives the other this long before it begins itself.
 */
const firstOfferMs = 3000;
/** Both ends see the same trouble; when the polite one waits longer, only one of them usually acts. */
const politePatience = 2;
/** More than any browser gathers; they wait only until the description they belong to is in place. */
const mostEarlyCandidates = 100;

/** @typedef {{audio: boolean, video: boolean}} Wanted */
/** @typedef {{description: RTCSessionDescriptionInit} | {candidate: RTCIceCandidateInit | null}} Payload */
/** @typedef {{RTCPeerConnection: typeof RTCPeerConnection, MediaStream: typeof MediaStream}} Rtc */
/** @typedef {'connecting' | 'connected' | 'disconnected' | 'failed'} PeerState */
/**
 * A stream sent, its tracks and senders by kind.
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
 * @property {() => Promise<RTCConfiguration>} configuration with credentials that are good now
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
  /** @type {Promise<void>} everything received is handled one after the other */
  #incoming;
  /** @type {Map<string, Outgoing>} by stream id */
  #outgoing = new Map();
  /** @type {(RTCIceCandidateInit | null)[]} */
  #earlyCandidates = [];
  /** @type {Map<string, string>} what a peer that cannot rename calls its streams */
  #aliases = new Map();
  /** @type {string | undefined} */
  #origin;
  /** @type {boolean | undefined} as they wrote it: Chromium's `remoteDescription` is its own wording */
  #isTheirsMozilla;
  /** @type {'active' | 'passive' | undefined} our part in the DTLS handshake, since the first answer */
  #role;
  #makingOffer = false;
  #ignoringOffer = false;
  #posts = 0;
  #restartedAt = -Infinity;
  /** How many times since it last worked. */
  #restarts = 0;
  /** Whether media of the other end is expected. */
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
   * Sends a stream, or sends it otherwise than before.
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
      // Only its id is used, and no two peers share one: renaming stays unambiguous.
      container: new this.#options.rtc.MediaStream(), wanted,
      tracks: new Map(tracks.map((track) => [track.kind, /** @type {MediaStreamTrack | null} */ (track)])),
      senders: new Map(),
    };
    this.#outgoing.set(streamId, outgoing);
    this.#addTracks(outgoing);
  }

  /** Media of the other end is wanted: it is asked for in our first offer, should that come before there is anything to send. */
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

  /** @param {import('../line/messages.js').Message} message what the other end sent through the server */
  receive({ description, candidate, streams }) {
    for (const [id, name] of Object.entries(streams ?? {})) this.#aliases.set(id, String(name));
    this.#incoming = this.#incoming.then(async () => {
      if (this.#closed) return;
      if (description) await this.#describe(description);
      else if (candidate !== undefined) await this.#candidate(candidate);
    }).catch((error) => this.#failed(error));
  }

  /** Signalling is back after a gap: media may have died unnoticed. */
  resumed() {
    if (this.state !== 'connected') this.#restartIn(0);
  }

  /** @param {string} streamId @returns {Promise<RTCStatsReport[]>} one for each track sent */
  senderReports(streamId) {
    const senders = [...this.#outgoing.get(streamId)?.senders.values() ?? []];
    return Promise.all(senders.map((sender) => sender.getStats()));
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
   * Tracks sent later take these places: `addTrack` uses what only receives so far.
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

  /** The other end began with a new connection, or ours cannot follow its description: begin anew as well. */
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

  /** @param {Outgoing} outgoing @param {string} kind what this peer is to get */
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
    // What flickers between bad states must not restart at every flicker: a restart needs time to help.
    const earliest = this.#restartedAt + restartAgainMs - clock.now();
    this.#timers.set('restart', Math.max(polite ? ms * politePatience : ms, earliest), async () => {
      const connection = this.#connection;
      this.#restartedAt = clock.now();
      // Otherwise every credential in use may have run out meanwhile.
      const fresh = await configuration().catch(() => null);
      if (!connection || connection !== this.#connection || this.state === 'connected') return;
      this.#restarts += 1;
      this.#restartIn(restartAgainMs);
      // Who has nothing to offer cannot begin anew; the other end will.
      const canOffer = this.isSending || (this.#expecting && !polite);
      if (canOffer && (this.#restarts > 1 || this.#isMixed(connection))) return this.#renew().catch(() => {});
      if (fresh) connection.setConfiguration?.(fresh);
      connection.restartIce();
    });
  }

  /**
   * Between Firefox 153 and Chromium 156 an ICE restart that Chromium offers leaves Firefox without media although both call
   * themselves connected, and one that Firefox offers then never connects. Within one engine it works.
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
      // Otherwise the browser says again what is needed, once the other's offer is answered.
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
    // An answer to an offer that was withdrawn meanwhile, or made by a connection that is gone.
    const late = !isOffer && connection.signalingState !== 'have-local-offer';
    if (this.#ignoringOffer || late) return;
    await this.#accept(description);
    this.#origin = origin;
    this.#isTheirsMozilla = isMozilla(description.sdp);
    this.#timers.clear('first offer');
    // The other end is at it already.
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
      if (this.#earlyCandidates.length < mostEarlyCandidates) this.#earlyCandidates.push(candidate);
      return;
    }
    try {
      await this.#connection.addIceCandidate(/** @type {any} */ (candidate));
    } catch (error) {
      // Those of an offer we did not take, and leftovers of a connection that was replaced, belong to nothing.
      const fragment = candidate?.usernameFragment;
      const isForeign = fragment && !this.#connection?.remoteDescription?.sdp.includes(fragment);
      if (!this.#ignoringOffer && !isForeign && candidate) this.#failed(error);
    }
  }

  /**
   * What is interrupted by the end is no failure.
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
      // Anything else means that the other end, or we, left: that is told elsewhere.
      if (this.#closed || error?.code !== 'rate_limited') return;
      this.#timers.set(`post ${this.#posts += 1}`, error.retryAfterMs ?? 1000, () => this.#post(payload));
    });
  }
}
