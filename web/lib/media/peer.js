// Media with one other member of a session: one `RTCPeerConnection`, perfect negotiation, trickle ICE, and ICE
// restarts or a new connection until media works again. Streams are identified by their ids. The transport decides
// which streams are wanted.
//
// Perfect negotiation: https://www.w3.org/TR/webrtc/#perfect-negotiation-example

import { Timers } from '../clock.js';
import { answerDelay, EarlyCandidates, Negotiation } from './negotiation.js';
import { Outbox } from './outbox.js';
import { OutgoingStreams } from './outgoing.js';
import { areMixed, isMozilla, keepRole, nameStreams, originOf, roleOf } from './sdp.js';

/**
 * How long to wait in the state `disconnected` before a restart. Browsers often recover within seconds, but never
 * after a gap of 25 s.
 */
export const disconnectedMs = 3000;
export const failedMs = 250;
/** How long to wait for a restart to succeed before the next one. */
export const restartAgainMs = 10_000;
/**
 * The impolite peer makes the first offer. If two first offers cross, the polite peer rolls its own offer back, after
 * which Chromium sometimes gathers candidates forever and never connects. So the polite peer waits this long before
 * its first offer.
 */
export const firstOfferMs = 3000;
/**
 * Both peers notice the same failure. The polite peer waits longer by this factor, so that usually only one peer
 * restarts.
 */
const politeFactor = 2;
/**
 * How long to wait, after the descriptions were exchanged, for media to connect before a restart. A limit is needed,
 * because ICE never reports a failure if there are no candidates.
 */
export const connectMs = 15_000;

/** @typedef {import('./negotiation.js').Label} Label */
/** @typedef {Label & ({description: RTCSessionDescriptionInit} | {candidate: RTCIceCandidateInit | null})} Payload */
/** @typedef {{RTCPeerConnection: typeof RTCPeerConnection, MediaStream: typeof MediaStream}} Rtc */
/** @typedef {'connecting' | 'connected' | 'disconnected' | 'failed'} PeerState */
/**
 * @typedef {object} PeerOptions
 * @property {boolean} polite whether this peer is the polite one in perfect negotiation
 * @property {Rtc} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {() => Promise<RTCConfiguration>} configuration returns a configuration with valid credentials
 * @property {(payload: Payload) => Promise<unknown>} send sends a payload to the other peer
 * @property {(streamId: string, media: MediaStream) => void} arrived called when the other peer has added a stream
 * @property {(state: PeerState) => void} changed called when the state may have changed
 * @property {(error: unknown) => void} failed called with each error
 */

export class Peer {
  #options;
  #timers;
  /** @type {RTCPeerConnection | null} */
  #connection = null;
  /** @type {Promise<void>} settles when the messages received so far were handled, one after the other */
  #incoming;
  #outgoing;
  #negotiation;
  #earlyCandidates = new EarlyCandidates();
  /** @type {Map<string, string>} maps `MediaStream` ids to stream ids, for a peer that cannot rename them in its descriptions */
  #aliases = new Map();
  /** @type {string | undefined} identifies the peer connection that created the remote description (`originOf`) */
  #origin;
  /**
   * @type {boolean | undefined} whether the other peer is Firefox; undefined before its first description. Taken from
   *   the description as received, because Chromium rewrites `remoteDescription`
   */
  #isTheirsMozilla;
  /** @type {'active' | 'passive' | undefined} our DTLS role since the first answer */
  #role;
  #makingOffer = false;
  #ignoringOffer = false;
  #outbox;
  #restartedAt = -Infinity;
  /** Number of restarts since media last worked. */
  #restarts = 0;
  /** Whether media from the other peer is expected. */
  #expecting = false;
  #closed = false;

  /** @param {PeerOptions} options */
  constructor(options) {
    this.#options = options;
    this.#timers = new Timers(options.clock);
    this.#negotiation = new Negotiation(options.polite);
    this.#outbox = new Outbox(options.send, this.#timers, this.#negotiation);
    this.#outgoing = new OutgoingStreams(options.rtc, (error) => this.#failed(error));
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
   * @param {Parameters<OutgoingStreams['send']>} stream
   */
  send(...stream) {
    this.#outgoing.send(...stream);
  }

  /**
   * If this peer makes the first offer, makes that offer request media from the other peer. Call this when
   * subscribing, because the offer may be made before there is anything to send.
   */
  expect() {
    if (this.#expecting) return;
    this.#expecting = true;
    if (this.#connection) this.#expectMedia(this.#connection);
  }

  /** @param {string} streamId */
  stopSending(streamId) {
    this.#outgoing.stop(streamId);
  }

  /**
   * @param {string} streamId
   * @param {string} kind
   * @param {MediaStreamTrack | null} track
   */
  replaceTrack(streamId, kind, track) {
    this.#outgoing.replaceTrack(streamId, kind, track);
  }

  /**
   * Handles a message from the other peer, after those that arrived before it.
   * @param {import('../signaling/messages.js').Message} message a `session.negotiate` message, which the server has
   *   forwarded
   */
  receive({ description, candidate, streams, negotiationId, offerNumber }) {
    for (const [id, name] of Object.entries(streams ?? {})) this.#aliases.set(id, String(name));
    const label = { negotiationId, offerNumber };
    this.#inTurn(async () => {
      if (description) await this.#describe(description, label);
      else if (candidate !== undefined) await this.#candidate(candidate, label);
    });
  }

  /** @param {() => Promise<void>} work work that must not run concurrently with other work passed here */
  #inTurn(work) {
    this.#incoming = this.#incoming.then(() => (this.#closed ? undefined : work())).catch((error) => this.#failed(error));
  }

  /** Restarts ICE unless media is connected, because media may have failed while signaling was interrupted. */
  resumed() {
    if (this.state !== 'connected') this.#restartIn(0);
  }

  /** @param {string} streamId @returns {[string, RTCRtpSender][]} pairs of a kind and its sender */
  senders(streamId) {
    return this.#outgoing.senders(streamId);
  }

  /** @param {MediaStream} media @returns {RTCRtpReceiver[]} */
  receivers(media) {
    const tracks = media.getTracks();
    return (this.#connection?.getReceivers() ?? []).filter(({ track }) => tracks.includes(track));
  }

  close() {
    this.#closed = true;
    this.#outbox.close();
    this.#timers.clearAll();
    this.#shut();
  }

  // ---- The connection

  /** @param {RTCConfiguration} configuration */
  #open(configuration) {
    const connection = new this.#options.rtc.RTCPeerConnection(configuration);
    this.#connection = connection;
    connection.onnegotiationneeded = () => this.#negotiationNeeded(connection);
    connection.onicecandidate = ({ candidate }) => {
      this.#outbox.post({ candidate: candidate?.toJSON() ?? null, ...this.#negotiation.label });
    };
    connection.onconnectionstatechange = () => this.#changed();
    connection.ontrack = ({ streams }) => {
      for (const media of streams) this.#options.arrived(this.#aliases.get(media.id) ?? media.id, media);
    };
    this.#outgoing.move(connection);
    if (this.#expecting) this.#expectMedia(connection);
  }

  /**
   * Adds receive-only transceivers, if this peer makes the first offer and has not yet received a description. Tracks
   * sent later use them too, because `addTrack` reuses receive-only transceivers.
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
    this.#timers.clear('first offer', 'answer', 'connect');
    if (!connection) return;
    connection.onnegotiationneeded = connection.onicecandidate = null;
    connection.onconnectionstatechange = connection.ontrack = null;
    connection.close();
  }

  /**
   * Replaces the connection with a new one: because the other peer did so, because ours cannot apply the other peer's
   * description, or because ICE restarts have failed or are known to fail.
   */
  async #renew() {
    this.#shut();
    this.#origin = undefined;
    this.#role = undefined;
    this.#makingOffer = false;
    this.#negotiation.reset();
    this.#outgoing.move(null);
    const configuration = await this.#options.configuration();
    if (!this.#closed) this.#open(configuration);
  }

  #changed() {
    const { state } = this;
    if (state === 'connected') {
      this.#timers.clear('restart', 'connect');
      this.#restarts = 0;
    }
    if (state === 'disconnected') this.#restartIn(disconnectedMs);
    if (state === 'failed') this.#restartIn(failedMs);
    this.#options.changed(state);
  }

  /** @param {number} ms */
  #restartIn(ms) {
    const { clock, polite, configuration } = this.#options;
    // A flapping connection must not restart on every state change, because a restart needs time to succeed.
    const earliest = this.#restartedAt + restartAgainMs - clock.now();
    this.#timers.set('restart', Math.max(polite ? ms * politeFactor : ms, earliest), async () => {
      const connection = this.#connection;
      this.#restartedAt = clock.now();
      // Fetch new credentials, because those in use may have expired.
      const fresh = await configuration().catch(() => null);
      if (!connection || connection !== this.#connection || this.state === 'connected') return;
      this.#restarts += 1;
      this.#restartIn(restartAgainMs);
      if (this.#canOffer && (this.#restarts > 1 || areMixed(connection.localDescription?.sdp, this.#isTheirsMozilla))) return this.#inTurn(() => this.#renew());
      if (fresh) connection.setConfiguration?.(fresh);
      connection.restartIce();
    });
  }

  /**
   * Whether this peer has media to send or, if it makes the first offer, media to request. Otherwise it cannot start a
   * new connection.
   */
  get #canOffer() {
    return !this.#outgoing.isEmpty || (this.#expecting && !this.#options.polite);
  }

  // ---- Negotiation

  /** @param {RTCPeerConnection} connection */
  #negotiationNeeded(connection) {
    if (!this.#options.polite || this.#origin !== undefined) return this.#offer(connection);
    this.#timers.set('first offer', firstOfferMs, () => {
      // If the other peer's offer has arrived first, make none: the browser fires `negotiationneeded` again after that
      // offer is answered.
      if (connection === this.#connection && this.#origin === undefined) this.#offer(connection);
    });
  }

  /** @param {RTCPeerConnection} connection */
  async #offer(connection) {
    const label = this.#negotiation.offer();
    this.#makingOffer = true;
    try {
      await connection.setLocalDescription();
      // This offer may have been withdrawn in favor of the other peer's.
      if (connection !== this.#connection || !this.#negotiation.isPending(label)) return;
      this.#postDescription(connection, label);
      this.#awaitAnswer(label);
    } catch (error) {
      if (connection !== this.#connection) return;
      this.#negotiation.withdraw(label);
      this.#failed(error);
    } finally {
      if (connection === this.#connection) this.#makingOffer = false;
    }
  }

  /** @param {Label} label @param {number} [repeated] how often the offer was sent again */
  #awaitAnswer(label, repeated = 0) {
    this.#timers.set('answer', answerDelay(repeated), () => {
      const connection = this.#connection;
      if (!connection || !this.#negotiation.isPending(label)) return;
      // The offer continues a connection and was not answered even when repeated: the other peer may have lost the
      // connection.
      const isRefused = (label.offerNumber ?? 1) > 1 && repeated > 0;
      if (isRefused && this.#canOffer) return this.#inTurn(() => this.#renew());
      this.#postDescription(connection, label);
      this.#awaitAnswer(label, repeated + 1);
    });
  }

  /** @param {RTCSessionDescriptionInit} description @param {Label} label */
  async #describe(description, label) {
    await (description.type === 'offer' ? this.#describeOffer(description, label) : this.#describeAnswer(description, label));
    // If the connection works, the descriptions only change it, so there is nothing to wait for.
    if (this.state === 'connected' || !this.#connection || this.#connection.signalingState !== 'stable') return;
    const { polite } = this.#options;
    this.#timers.set('connect', polite ? connectMs * politeFactor : connectMs, () => {
      if (this.state === 'connecting' && !this.#timers.has('restart')) this.#restartIn(0);
    });
  }

  /** @param {RTCSessionDescriptionInit} description @param {Label} label */
  async #describeOffer(description, label) {
    const isOther = this.#origin !== undefined && originOf(description.sdp ?? '') !== this.#origin;
    if (isOther && label.negotiationId === undefined) await this.#renew();
    const isBusy = () => this.#makingOffer || this.#connection?.signalingState !== 'stable';
    let decision = this.#negotiation.decide(label, isBusy());
    if (decision === 'renew') {
      await this.#renew();
      decision = 'accept';
    }
    const connection = this.#connection;
    if (!connection) return;
    this.#ignoringOffer = decision === 'ignore';
    if (decision === 'repeat') return this.#postDescription(connection, this.#negotiation.answer);
    // This side no longer has the offer's peer connection. Offer the current one, which the other peer accepts as a
    // new one.
    if (decision === 'refuse' && !isBusy() && this.#canOffer) return this.#offer(connection);
    if (decision !== 'accept') return;
    await this.#accept(description);
    this.#negotiation.accepted(label);
    this.#timers.clear('answer');
    // The other peer is already restarting, so postpone our own restart.
    if (this.#timers.has('restart')) this.#restartIn(restartAgainMs);
    await this.#learn(description);
    if (!this.#connection) return;
    await this.#connection.setLocalDescription();
    if (this.#connection) this.#postDescription(this.#connection, this.#negotiation.answer);
  }

  /** @param {RTCSessionDescriptionInit} description @param {Label} label */
  async #describeAnswer(description, label) {
    // Ignore an answer whose offer was withdrawn, or whose connection is gone.
    if (this.#connection?.signalingState !== 'have-local-offer' || !this.#negotiation.isAnswer(label)) return;
    this.#ignoringOffer = false;
    // Do this before applying the answer, because the browser may start the next offer as soon as it is applied.
    this.#negotiation.completed();
    this.#timers.clear('answer');
    await this.#accept(description);
    this.#role = roleOf(description.sdp ?? '') === 'active' ? 'passive' : 'active';
    await this.#learn(description);
  }

  /**
   * Notes which peer connection and engine wrote the description that was applied, and adds the candidates that
   * arrived before it.
   * @param {RTCSessionDescriptionInit} description
   */
  async #learn({ sdp }) {
    this.#origin = originOf(sdp ?? '');
    this.#isTheirsMozilla = isMozilla(sdp);
    this.#timers.clear('first offer');
    for (const { candidate, label } of this.#earlyCandidates.take(this.#negotiation)) await this.#candidate(candidate, label);
  }

  /**
   * Applies the other peer's description. If an offer cannot be applied, applies it to a new connection. If an answer
   * cannot be applied, plans a restart and throws.
   * @param {RTCSessionDescriptionInit} description
   */
  async #accept(description) {
    try {
      await this.#connection?.setRemoteDescription(description);
    } catch (error) {
      if (description.type !== 'offer' && !this.#closed) this.#restartIn(failedMs);
      if (description.type !== 'offer' || this.#closed) throw error;
      await this.#renew();
      await this.#connection?.setRemoteDescription(description);
    }
  }

  /** @param {RTCIceCandidateInit | null} candidate @param {Label} label */
  async #candidate(candidate, label) {
    if (!this.#connection?.remoteDescription || !this.#negotiation.concerns(label)) {
      return this.#earlyCandidates.hold(candidate, label);
    }
    try {
      await this.#connection.addIceCandidate(/** @type {any} */ (candidate));
    } catch (error) {
      // Report no errors for candidates of an offer that we ignored, late candidates of a connection that was
      // replaced, or the end of the candidates (null).
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

  /** @param {RTCPeerConnection} connection @param {Label} label */
  #postDescription({ localDescription }, label) {
    if (!localDescription) return;
    const { type, sdp } = localDescription;
    if (type === 'answer') this.#role = roleOf(sdp);
    const named = nameStreams(type === 'offer' ? keepRole(sdp, this.#role) : sdp, this.#outgoing.names);
    this.#outbox.post({ description: { type, sdp: named }, ...label });
  }
}
