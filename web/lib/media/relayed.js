// Relayed media (protocol §4): one peer connection with each other member of the session that subscribes to our
// streams, or to whose streams we subscribe.

import { codecOf, withCodecsFirst } from './codecs.js';
import { isChosen, withChosen } from './ice.js';
import { Peer } from './peer.js';
import { opusParameters, tune, withOpusParameters } from './sending.js';

/**
 * Maximum number of subscribers to keep for a stream that this client has not published. Subscribers of our own stream
 * can be announced before we know its id, while the answer with the id is on its way.
 */
export const maxEarlySubscribers = 64;

/** @typedef {import('./outgoing.js').Wanted} Wanted */
/** @typedef {import('./transport.js').Sink} Sink */
/** @typedef {import('./transport.js').Source} Source */
/** @typedef {import('../signaling/messages.js').Message} Message */

/** The transport for relayed media. */
export class RelayedTransport {
  #options;
  /** @type {Map<string, Peer>} by connection id */
  #peers = new Map();
  /** @type {Map<string, Source>} by stream id */
  #published = new Map();
  /** @type {Map<string, Map<string, Wanted>>} the wanted media, by stream id and the subscriber's connection id */
  #subscribers = new Map();
  /** @type {Map<string, {connectionId: string, sinks: Set<Sink>, media: MediaStream | null}>} by stream id */
  #subscriptions = new Map();
  /** @type {Set<string>} ids of the connections for which we have reported to the server that media works */
  #reported = new Set();

  /** @param {import('./transport.js').TransportOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** @param {string} streamId @param {Source} source */
  publish(streamId, source) {
    this.#published.set(streamId, source);
    for (const [connectionId, wanted] of this.#subscribers.get(streamId) ?? []) {
      this.#peer(connectionId).send(streamId, source.tracks(), wanted, source.sending);
    }
  }

  /** @param {string} streamId */
  unpublish(streamId) {
    this.#published.delete(streamId);
    const subscribers = this.#subscribers.get(streamId);
    this.#subscribers.delete(streamId);
    for (const connectionId of subscribers?.keys() ?? []) {
      this.#peers.get(connectionId)?.stopSending(streamId);
      this.#release(connectionId);
    }
  }

  /**
   * @param {string} streamId
   * @param {string} kind
   * @param {MediaStreamTrack | null} track
   */
  replaceTrack(streamId, kind, track) {
    for (const peer of this.#peers.values()) peer.replaceTrack(streamId, kind, track);
  }

  /** @param {string} streamId the stream whose sending options have changed */
  tune(streamId) {
    for (const connectionId of this.#subscribers.get(streamId)?.keys() ?? []) this.#tune(connectionId, streamId);
  }

  /**
   * @param {string} streamId
   * @param {string} connectionId the publisher's connection id
   * @param {Sink} sink
   */
  subscribe(streamId, connectionId, sink) {
    const known = this.#subscriptions.get(streamId);
    const subscription = known ?? { connectionId, sinks: new Set(), media: null };
    this.#subscriptions.set(streamId, subscription);
    subscription.sinks.add(sink);
    if (subscription.media) sink.mediaArrived(subscription.media);
    const peer = this.#peer(connectionId);
    peer.expect();
    sink.mediaChanged(peer.state);
  }

  /** @param {string} streamId @param {Sink} sink */
  unsubscribe(streamId, sink) {
    const subscription = this.#subscriptions.get(streamId);
    subscription?.sinks.delete(sink);
    if (!subscription || subscription.sinks.size > 0) return;
    this.#subscriptions.delete(streamId);
    this.#release(subscription.connectionId);
  }

  /** @param {Message} message */
  receive(message) {
    const { streamId, connectionId, from } = message;
    if (message.type === 'session.subscribed') this.#subscribed(streamId, connectionId, message);
    if (message.type === 'session.unsubscribed') this.#unsubscribed(streamId, connectionId);
    // Ignore late messages from a member with whom no stream is exchanged now.
    if (message.type !== 'session.negotiate' || !this.#isRelated(from)) return;
    if (isChosen(message.candidate?.candidate ?? '', this.#options.iceConfig)) this.#peer(from).receive(this.#read(message));
  }

  /** @param {string} connectionId */
  connectionDestroyed(connectionId) {
    for (const subscribers of this.#subscribers.values()) subscribers.delete(connectionId);
    for (const [streamId, subscription] of this.#subscriptions) {
      if (subscription.connectionId === connectionId) this.#subscriptions.delete(streamId);
    }
    this.#reported.delete(connectionId);
    this.#release(connectionId);
  }

  resumed() {
    for (const peer of this.#peers.values()) peer.resumed();
  }

  /** @param {string} streamId */
  senderReports(streamId) {
    const peers = [...this.#peers].filter(([connectionId]) => this.#subscribers.get(streamId)?.has(connectionId));
    return Promise.all(peers.map(async ([connectionId, peer]) => {
      const reports = await Promise.all(peer.senders(streamId).map(([, sender]) => sender.getStats()));
      return { connectionId, reports };
    }));
  }

  /** @param {string} streamId @returns {RTCRtpReceiver[]} */
  receivers(streamId) {
    const subscription = this.#subscriptions.get(streamId);
    if (!subscription?.media) return [];
    return this.#peers.get(subscription.connectionId)?.receivers(subscription.media) ?? [];
  }

  close() {
    for (const peer of this.#peers.values()) peer.close();
    this.#peers.clear();
    this.#published.clear();
    this.#subscribers.clear();
    this.#subscriptions.clear();
  }

  /** @param {string} streamId @param {string} connectionId @param {Message} wanted */
  #subscribed(streamId, connectionId, { audio, video }) {
    const subscribers = this.#subscribers.get(streamId) ?? new Map();
    if (!this.#published.has(streamId) && subscribers.size >= maxEarlySubscribers) return;
    subscribers.set(connectionId, { audio, video });
    this.#subscribers.set(streamId, subscribers);
    const source = this.#published.get(streamId);
    if (source) this.#peer(connectionId).send(streamId, source.tracks(), { audio, video }, source.sending);
  }

  /** @param {string} streamId @param {string} connectionId */
  #unsubscribed(streamId, connectionId) {
    this.#subscribers.get(streamId)?.delete(connectionId);
    this.#peers.get(connectionId)?.stopSending(streamId);
    this.#release(connectionId);
  }

  /**
   * Returns the message with the parameters for the local encoders in the other peer's description, and without the
   * candidates that the settings exclude.
   * @param {Message} message
   */
  #read(message) {
    const { description, from } = message;
    if (!description) return message;
    const published = [...this.#published].filter(([streamId]) => this.#subscribers.get(streamId)?.has(from));
    const parameters = Object.assign({}, ...published.map(([, { sending = {} }]) => opusParameters(sending)));
    const reachable = withChosen(description.sdp, this.#options.iceConfig);
    const sdp = withCodecsFirst(withOpusParameters(reachable, () => parameters), (kind) => (
      published.map(([, { sending = {} }]) => codecOf(kind, sending)).find((codec) => codec !== undefined)));
    return { ...message, description: { ...description, sdp } };
  }

  /** @param {string} connectionId @param {string} streamId */
  #tune(connectionId, streamId) {
    const { sending = {} } = this.#published.get(streamId) ?? {};
    for (const [kind, sender] of this.#peers.get(connectionId)?.senders(streamId) ?? []) {
      tune(sender, /** @type {'audio' | 'video'} */ (kind), sending).catch(this.#options.failed);
    }
  }

  /** @param {string} connectionId */
  #isRelated(connectionId) {
    return [...this.#subscriptions.values()].some((subscription) => subscription.connectionId === connectionId)
      || [...this.#subscribers.values()].some((subscribers) => subscribers.has(connectionId));
  }

  /**
   * Closes the peer connection with another member, unless a stream is still exchanged with that member.
   * @param {string} connectionId
   */
  #release(connectionId) {
    if (this.#isRelated(connectionId)) return;
    this.#peers.get(connectionId)?.close();
    this.#peers.delete(connectionId);
  }

  /** @param {string} connectionId @returns {Peer} */
  #peer(connectionId) {
    const known = this.#peers.get(connectionId);
    if (known) return known;
    const { configuration, request, clock, rtc, failed } = this.#options;
    const peer = new Peer({
      // Protocol §4: the peer with the lower id, compared as text, is polite.
      polite: this.#options.connectionId < connectionId,
      configuration, clock, rtc, failed,
      send: (payload) => request('session.negotiate', { to: connectionId, ...payload }),
      arrived: (streamId, media) => this.#arrived(connectionId, streamId, media),
      changed: (state) => this.#changed(connectionId, state),
    });
    this.#peers.set(connectionId, peer);
    return peer;
  }

  /** @param {string} connectionId @param {string} streamId @param {MediaStream} media */
  #arrived(connectionId, streamId, media) {
    const subscription = this.#subscriptions.get(streamId);
    // A peer may only send media for its own streams.
    if (subscription?.connectionId !== connectionId) return;
    subscription.media = media;
    for (const sink of subscription.sinks) sink.mediaArrived(media);
  }

  /** @param {string} connectionId @param {import('./peer.js').PeerState} state */
  #changed(connectionId, state) {
    if (state === 'connected' && !this.#reported.has(connectionId)) {
      this.#reported.add(connectionId);
      this.#options.request('session.connected', { connectionId, connected: true }).catch(() => {});
    }
    if (state === 'connected') for (const streamId of this.#published.keys()) this.#tune(connectionId, streamId);
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.connectionId !== connectionId) continue;
      for (const sink of subscription.sinks) sink.mediaChanged(state);
    }
  }
}
