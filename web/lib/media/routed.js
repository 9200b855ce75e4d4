// Routed media travels through the server, over the client connection's two peer connections. A session only decides which of
// their transceivers carry its streams.

import { Arrival } from './arrival.js';

/** @typedef {import('./transport.js').Sink} Sink */
/** @typedef {import('./transport.js').Source} Source */
/** @typedef {import('./transport.js').Mids} Mids */
/** @typedef {import('./media-link.js').Outgoing} Outgoing */
/** @typedef {import('./media-link.js').Slot} Slot */
/** @typedef {{slot: Slot, sinks: Set<Sink>, arrival: Arrival, media: MediaStream | null}} Subscription */

/** The transport for routed media. */
export class RoutedTransport {
  #options;
  #link;
  /**
   * @type {Map<Source, {outgoing: Outgoing, reported: Mids | null}>} sources that are not published yet; `reported`: the mids
   *   returned for them
   */
  #reserved = new Map();
  /** @type {Map<string, Outgoing>} by stream id */
  #published = new Map();
  /** @type {Map<string, Subscription>} by stream id */
  #subscriptions = new Map();
  #user;

  /** @param {import('./transport.js').TransportOptions & import('./transport.js').RoutedOptions} options */
  constructor(options) {
    this.#options = options;
    this.#link = options.link();
    this.#user = {
      changed: () => this.#subscriptions.forEach((subscription) => this.#tell(subscription)),
      renewed: (/** @type {import('./media-link.js').Side} */ side) => this.#renewed(side),
      failed: options.failed,
    };
    this.#link.attach(this.#user);
  }

  // ---- Publishing

  /**
   * Starts sending the source's tracks, if they are not sent yet, and returns their mids. The server forwards the
   * media as soon as it belongs to a stream.
   * @param {Source} source
   * @returns {Promise<Mids>}
   */
  async mids(source) {
    const published = [...this.#published.values()].find((outgoing) => outgoing.source === source);
    if (published) return this.#link.mids('send', published);
    const reserved = this.#reserved.get(source) ?? { outgoing: this.#link.hold(source), reported: null };
    this.#reserved.set(source, reserved);
    reserved.reported = await this.#link.mids('send', reserved.outgoing);
    return reserved.reported;
  }

  /** @param {Source} source a source to stop sending; no effect if it was published */
  cancel(source) {
    const reserved = this.#reserved.get(source);
    this.#reserved.delete(source);
    if (reserved) this.#link.release(reserved.outgoing);
  }

  /** @param {string} streamId @param {Source} source */
  publish(streamId, source) {
    const { outgoing, reported } = this.#reserved.get(source) ?? { outgoing: this.#link.hold(source), reported: null };
    this.#reserved.delete(source);
    this.#published.set(streamId, outgoing);
    // Send the mids again if the connection was replaced since they were sent, or if none were sent because the
    // session was relayed.
    if (reported === null || reported !== outgoing.mids) this.#options.publishAgain(streamId);
  }

  /** @param {string} streamId */
  unpublish(streamId) {
    const outgoing = this.#published.get(streamId);
    this.#published.delete(streamId);
    if (outgoing) this.#link.release(outgoing);
  }

  /** @param {string} streamId */
  replaceTrack(streamId) {
    const outgoing = this.#published.get(streamId);
    if (outgoing) this.#link.refresh(outgoing);
  }

  /** @param {string} streamId the stream whose sending options have changed */
  tune(streamId) {
    this.replaceTrack(streamId);
  }

  /** @param {string} streamId @param {import('./layers.js').Wanted} wanted */
  layersWanted(streamId, wanted) {
    const outgoing = this.#published.get(streamId);
    if (outgoing) this.#link.want(outgoing, wanted);
  }

  // ---- Subscribing

  /** @param {string} streamId @param {string} _connectionId @param {Sink} sink */
  subscribe(streamId, _connectionId, sink) {
    const subscription = this.#subscriptions.get(streamId) ?? this.#begin(streamId, sink);
    subscription.sinks.add(sink);
    if (subscription.media) sink.mediaArrived(subscription.media);
    sink.mediaChanged(this.#stateOf(subscription));
  }

  /**
   * @param {string} streamId
   * @returns {Promise<Mids | null>} the mids of the stream's slot; null if the stream is no longer wanted
   */
  async slot(streamId) {
    const subscription = this.#subscriptions.get(streamId);
    if (!subscription) return null;
    const mids = await this.#link.mids('receive', subscription.slot);
    return this.#subscriptions.get(streamId) === subscription ? mids : null;
  }

  /** @param {string} streamId @param {Sink} sink */
  unsubscribe(streamId, sink) {
    const subscription = this.#subscriptions.get(streamId);
    if (!subscription?.sinks.delete(sink) || subscription.sinks.size > 0) return;
    this.#subscriptions.delete(streamId);
    this.#end(subscription);
  }

  /** @param {string} streamId the stream whose available or wanted media have changed */
  expectationChanged(streamId) {
    const { arrival, sinks } = this.#subscriptions.get(streamId) ?? {};
    if (!arrival || !sinks) return;
    // A video that is only hidden keeps its last frame, so that it is not blank when it is shown again.
    if (expectation(sinks).keepsVideo) arrival.expectSoon();
    else arrival.withdraw();
  }

  // ---- Other members of a transport

  /** Does nothing, because the server manages the subscribers of our streams. */
  receive() {}

  /** Does nothing, because the streams of the connection end one by one. */
  connectionDestroyed() {}

  /** Does nothing, because `SFUConnections` handles this. */
  resumed() {}

  /**
   * Returns at most one entry, under our own connection id, no matter how many subscribers there are: all media goes
   * to the server.
   * @param {string} streamId
   */
  async senderReports(streamId) {
    const { transceivers } = this.#published.get(streamId) ?? {};
    if (!transceivers) return [];
    const reports = await Promise.all(Object.values(transceivers).map(({ sender }) => sender.getStats()));
    return [{ connectionId: this.#options.connectionId, reports }];
  }

  /**
   * Returns the receivers of the stream's slot. Their counters include the slot's earlier streams.
   * @param {string} streamId
   * @returns {RTCRtpReceiver[]}
   */
  receivers(streamId) {
    const { slot, media } = this.#subscriptions.get(streamId) ?? {};
    return media && slot?.transceivers ? Object.values(slot.transceivers).map(({ receiver }) => receiver) : [];
  }

  estimate() {
    return this.#link.estimate.read();
  }

  close() {
    this.#link.detach(this.#user);
    for (const subscription of this.#subscriptions.values()) this.#end(subscription);
    for (const outgoing of this.#published.values()) this.#link.release(outgoing);
    for (const { outgoing } of this.#reserved.values()) this.#link.release(outgoing);
    this.#subscriptions.clear();
    this.#published.clear();
    this.#reserved.clear();
  }

  // ----

  /** @param {string} streamId @param {Sink} sink @returns {Subscription} */
  #begin(streamId, sink) {
    const sinks = new Set([sink]);
    /** @type {any} */
    const subscription = { slot: this.#link.takeSlot(), sinks, media: null };
    this.#await(subscription);
    this.#subscriptions.set(streamId, subscription);
    return subscription;
  }

  /** @param {Subscription} subscription */
  #end({ arrival, slot }) {
    arrival.stop();
    this.#link.freeSlot(slot);
  }

  /** @param {Subscription} subscription */
  #await(subscription) {
    const { clock, rtc } = this.#options;
    const { slot, sinks } = subscription;
    subscription.media = null;
    subscription.arrival = new Arrival({
      slot, clock, MediaStream: rtc.MediaStream,
      expected: () => expectation(sinks),
      arrived: (media) => {
        subscription.media = media;
        for (const sink of sinks) sink.mediaArrived(media);
        this.#tell(subscription);
      },
    });
  }

  /** @param {Subscription} subscription @returns {import('./peer.js').PeerState} */
  #stateOf({ media }) {
    const { state } = this.#link;
    return state === 'connected' && !media ? 'connecting' : state;
  }

  /** @param {Subscription} subscription */
  #tell(subscription) {
    for (const sink of subscription.sinks) sink.mediaChanged(this.#stateOf(subscription));
  }

  /** @param {import('./media-link.js').Side} side */
  #renewed(side) {
    if (side === 'send') {
      for (const streamId of this.#published.keys()) this.#options.publishAgain(streamId);
      return;
    }
    for (const [streamId, subscription] of this.#subscriptions) {
      subscription.arrival.stop();
      this.#await(subscription);
      this.#options.subscribeAgain(streamId);
    }
  }
}

/**
 * Combines what all sinks of a stream expect.
 * @param {Set<Sink>} sinks
 */
function expectation(sinks) {
  const all = [...sinks].map((sink) => sink.expected?.() ?? { audio: true, video: true, keepsVideo: true });
  return {
    audio: all.some(({ audio }) => audio), video: all.some(({ video }) => video), keepsVideo: all.some(({ keepsVideo }) => keepsVideo),
  };
}
