// A client connection's routed media: one peer connection to send, one to receive, shared by all sessions and matches. Pairs of
// transceivers are kept and reused, so that the next partner needs no negotiation. Invariant: a pair carries at most one stream
// at a time.

import { Timers } from '../clock.js';
import { ConfabError } from '../errors.js';
import { codecOf, preferCodec, withCodecsFirst } from './codecs.js';
import { DownlinkEstimate } from './estimate.js';
import { mediaConfiguration, relaysOf, withProtocol } from './ice.js';
import { activate, encodingsOf, single, wantedAtFirst } from './layers.js';
import { MediaSide } from './media-side.js';
import { opusParameters, tune, withOpusParameters } from './sending.js';

/** @typedef {import('./transport.js').Source} Source */
/** @typedef {import('./transport.js').Mids} Mids */
/** @typedef {'send' | 'receive'} Side */
/** @typedef {{audio: RTCRtpTransceiver, video: RTCRtpTransceiver}} Transceivers */
/**
 * A pair of transceivers that is kept and reused.
 * @typedef {object} Place
 * @property {Transceivers | null} transceivers null while there is no peer connection
 * @property {Mids | null} mids null until requests may use them; a new object on each connection
 */
/**
 * The transceivers for a publisher's tracks.
 * - `name`: the name of the timer that stops the encoder.
 * - `holders`: the number of `hold` calls that were not released yet.
 * - `encoding`: the result of `encodingOf` for the most recent answer.
 * - `activated`: settles when the latest changes to the senders were applied.
 * - `tracks`: the track last passed to `replaceTrack`, by kind.
 * @typedef {Place & {name: string, source: Source, holders: number, isSending: boolean,
 *   layers: import('./layers.js').Layers, wanted: import('./layers.js').Wanted, encoding: string, activated: Promise<void>, tracks: Record<string, MediaStreamTrack | null>}} Outgoing
 */
/**
 * The transceivers for a stream that the server forwards. `freedAt` is when the previous stream ended (milliseconds);
 * -Infinity if the transceivers have carried no earlier stream.
 * @typedef {Place & {isTaken: boolean, freedAt: number}} Slot
 */
/**
 * @typedef {object} LinkUser
 * @property {() => void} changed called when the state of the receiving side has changed
 * @property {(side: Side) => void} renewed called when a side's connection was replaced, so that its mids must be sent
 *   to the server again
 * @property {(error: unknown) => void} failed called with each error of the two connections
 */
/**
 * The members of a `Client` that `SFUConnections` uses.
 * @typedef {Pick<import('../signaling/client.js').Client, 'request' | 'state' | 'ice' | 'on'>} Line
 */
/**
 * @typedef {object} LinkOptions
 * @property {import('./peer.js').Rtc} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {import('./ice.js').IceConfig} [iceConfig]
 */

/** How long to keep an unused encoder running. After the roulette's "Next", a user usually publishes again soon. */
const parkMs = 3000;
/**
 * Number of slots to prepare. While one slot still receives packets of the previous partner, the next partner uses the other.
 */
const preparedSlots = 2;
/**
 * Maximum number of places in each direction. Each place needs two media sections, and the server accepts at most 256
 * in a description.
 */
const maxPlaces = 100;

/**
 * Returns the parameters that encoders read from the answer, as text, so that they can be compared.
 * @param {{source: Pick<Source, 'sending'>, wanted: import('./layers.js').Wanted}} outgoing
 */
const encodingOf = ({ source: { sending = {} }, wanted }) =>
  JSON.stringify([opusParameters(sending), codecOf('audio', sending), wanted.codec ?? codecOf('video', sending)]);

export class SFUConnections {
  #client;
  #clock;
  #timers;
  #sides;
  /** @type {Outgoing[]} */
  #outgoing = [];
  /** @type {Slot[]} */
  #slots = [];
  /** @type {Set<LinkUser>} */
  #users = new Set();
  #made = 0;
  /** Reads the server's estimate of the bandwidth from the server to this client. */
  estimate;

  /** @param {Line} client @param {LinkOptions} options */
  constructor(client, { rtc, clock, iceConfig }) {
    this.#client = client;
    this.#clock = clock;
    this.#timers = new Timers(clock);
    this.estimate = new DownlinkEstimate(client, clock);
    // Networks that allow only TLS on port 443 need TURN. After one connection has failed, all connections use TURN
    // as well as direct candidates.
    let needsRelay = false;
    const configuration = () => mediaConfiguration(client.ice, iceConfig, needsRelay);
    /** @param {Side} side */
    const make = (side) => new MediaSide({
      rtc, clock, configuration,
      offer: (sdp) => client.request('media.offer', { side, sdp }),
      isOnline: () => client.state === 'connected',
      hasMoreFeatures: () => !needsRelay && iceConfig?.candidates === undefined && relaysOf(client.ice.info).length > 0,
      unreachable: () => { needsRelay = true; },
      receives: side === 'receive',
      opened: (connection) => this.#opened(side, connection),
      offered: (isRenewed) => this.#offered(side, isRenewed),
      // Chromium plays only one audio channel, unless its own offer requests stereo.
      write: side === 'receive' ? (sdp) => withOpusParameters(sdp, () => ({ stereo: 1 })) : undefined,
      read: (sdp) => withProtocol(side === 'send' ? this.#withEncoding(sdp) : sdp, iceConfig?.protocol),
      answered: () => { if (side === 'send') this.#outgoing.forEach((outgoing) => this.#activate(outgoing)); },
      closed: () => this.#closed(side),
      changed: () => { if (side === 'receive') this.#users.forEach((user) => user.changed()); },
      failed: (error) => this.#users.forEach((user) => user.failed(error)),
    });
    this.#sides = { send: make('send'), receive: make('receive') };
    client.on({
      'message:media.closed': ({ side, code, message }) => {
        this.#sides[/** @type {Side} */ (side)].endedByServer(new ConfabError({ code, message, retryable: true }));
      },
      connected: ({ resumed }) => {
        if (resumed) for (const side of Object.values(this.#sides)) side.networkChanged();
      },
      online: () => { for (const side of Object.values(this.#sides)) side.networkChanged(); },
      expired: () => this.#reset(),
      closed: () => this.#reset(),
    });
  }

  /** The state of the receiving side. */
  get state() {
    return this.#sides.receive.state;
  }

  /** Whether any session uses routed media. */
  get isUsed() {
    return this.#users.size > 0;
  }

  /** @param {LinkUser} user */
  attach(user) {
    this.#users.add(user);
  }

  /** @param {LinkUser} user */
  detach(user) {
    this.#users.delete(user);
  }

  /**
   * Opens both connections in advance, for a publisher that will be published. Sends nothing yet.
   * @param {Source} source
   */
  prepare(source) {
    this.#outgoingOf(source);
    while (this.#slots.length < preparedSlots) this.#addSlot();
    for (const side of /** @type {const} */ (['send', 'receive'])) {
      if (this.#places(side).some(({ mids }) => mids === null)) this.#sides[side].negotiate();
    }
  }

  /** Ends both connections, here and on the server. The next publish or subscribe opens them again. */
  close() {
    for (const side of /** @type {const} */ (['send', 'receive'])) {
      if (this.#sides[side].connection) this.#client.request('media.close', { side }).catch(() => {});
    }
    this.#reset();
  }

  // ---- Sending

  /**
   * Sends the source's tracks to the server, until `release` was called as often as `hold`, and for `parkMs` after
   * that.
   * @param {Source} source
   * @returns {Outgoing}
   */
  hold(source) {
    const outgoing = this.#outgoingOf(source);
    // Start with the default layers, because the previous stream may have had others.
    if (outgoing.holders === 0) outgoing.wanted = wantedAtFirst;
    outgoing.holders += 1;
    outgoing.isSending = true;
    this.#timers.clear(outgoing.name);
    this.refresh(outgoing);
    return outgoing;
  }

  /** @param {Outgoing} outgoing */
  release(outgoing) {
    outgoing.holders -= 1;
    if (outgoing.holders > 0 || !this.#outgoing.includes(outgoing)) return;
    this.#timers.set(outgoing.name, parkMs, () => {
      outgoing.isSending = false;
      this.refresh(outgoing);
    });
  }

  /**
   * Applies the source's current tracks and sending options. Call this when they have changed.
   * @param {Outgoing} outgoing
   */
  refresh(outgoing) {
    const { transceivers, source, isSending, tracks } = outgoing;
    if (!transceivers) return;
    this.#activate(outgoing);
    // The source may use other audio options or codecs than at the last negotiation.
    this.#renegotiate(outgoing);
    for (const kind of /** @type {const} */ (['audio', 'video'])) {
      const track = (isSending && source.tracks().find((one) => one.kind === kind)) || null;
      // Compare with our own record, because `sender.track` lags behind the most recent `replaceTrack`.
      if (tracks[kind] === track) continue;
      tracks[kind] = track;
      transceivers[kind].sender.replaceTrack(track).catch((error) => this.#users.forEach((user) => user.failed(error)));
    }
  }

  /**
   * Encodes the layers of the source's video that subscribers want, with the codec that they can decode.
   * @param {Outgoing} outgoing
   * @param {import('./layers.js').Wanted} wanted
   */
  want(outgoing, wanted) {
    const { codec } = outgoing.wanted;
    outgoing.wanted = wanted;
    this.#activate(outgoing);
    if (wanted.codec !== codec) this.#renegotiate(outgoing);
  }

  /**
   * Negotiates again if the encoders need other parameters than those in the last answer.
   * @param {Outgoing} outgoing
   */
  #renegotiate(outgoing) {
    if (!outgoing.isSending || outgoing.mids === null || outgoing.encoding === encodingOf(outgoing)) return;
    this.#preferCodecs(outgoing);
    this.#sides.send.negotiate();
  }

  /**
   * Applies the wanted layers and the sending options. Makes one change after the other, because browsers reject
   * parameters that are out of date.
   * @param {Outgoing} outgoing
   */
  #activate(outgoing) {
    outgoing.activated = outgoing.activated.then(async () => {
      const { transceivers, wanted, layers, source: { sending = {} } } = outgoing;
      if (!transceivers) return;
      await activate(transceivers.video.sender, wanted);
      await tune(transceivers.audio.sender, 'audio', sending);
      await tune(transceivers.video.sender, 'video', sending, layers);
    }).catch((error) => this.#users.forEach((user) => user.failed(error)));
  }

  // ---- Receiving

  /** @returns {Slot} the slot that has been free for the longest time, or a new one if none is free */
  takeSlot() {
    const [oldest] = this.#slots.filter(({ isTaken }) => !isTaken).sort((one, other) => one.freedAt - other.freedAt);
    const slot = oldest ?? this.#addSlot();
    slot.isTaken = true;
    return slot;
  }

  /** @param {Slot} slot */
  freeSlot(slot) {
    slot.isTaken = false;
    slot.freedAt = this.#clock.now();
  }

  // ---- Both directions

  /**
   * @param {Side} side
   * @param {Place} place
   * @returns {Promise<Mids>} the mids of the place. Resolves when requests may use them: when an offer with them was
   *   sent or, if the connection is in use for receiving, when that offer was answered.
   *   Rejects if the offer failed or the connection was reset
   */
  async mids(side, place) {
    while (place.mids === null) {
      await this.#sides[side].negotiate();
      if (!this.#places(side).includes(place)) {
        const message = 'The media connection was replaced. Try again.';
        throw new ConfabError({ code: 'connection_restarted', retryable: true, message });
      }
    }
    return place.mids;
  }

  /**
   * @param {Source} source
   * @returns {Outgoing} the transceivers that this source used last; otherwise free ones, or new ones
   */
  #outgoingOf(source) {
    const layers = source.layers?.() ?? single;
    const free = this.#outgoing.filter(({ holders }) => holders === 0);
    const known = this.#outgoing.find((outgoing) => outgoing.source === source)
      ?? free.find((outgoing) => outgoing.layers === layers)
      // A source without simulcast can use a simulcast sender, which then sends only the largest layer.
      ?? (layers.length > 1 ? undefined : free[0]);
    if (known) {
      known.source = source;
      return known;
    }
    this.#assertRoom(this.#outgoing);
    /** @type {Outgoing} */
    const outgoing = {
      name: `park ${this.#made += 1}`, source, holders: 0, isSending: false, layers, wanted: wantedAtFirst,
      encoding: encodingOf({ source: {}, wanted: wantedAtFirst }),
      activated: Promise.resolve(), transceivers: null, mids: null, tracks: {},
    };
    this.#outgoing.push(outgoing);
    const { connection } = this.#sides.send;
    if (connection) this.#addTransceivers('send', connection, outgoing);
    return outgoing;
  }

  /**
   * Returns the server's answer with the encoder parameters of each source. The server lists the most widely supported codec first, so
   * this applies a publisher's own preference, or the codec that its current subscribers need instead.
   * @param {string} sdp
   */
  #withEncoding(sdp) {
    for (const outgoing of this.#outgoing) outgoing.encoding = encodingOf(outgoing);
    const outgoingAt = (/** @type {string} */ wanted) => this.#outgoing.find(({ mids }) => mids?.audioMid === wanted || mids?.videoMid === wanted);
    const tuned = withOpusParameters(sdp, (mid) => opusParameters(outgoingAt(mid)?.source.sending ?? {}));
    return withCodecsFirst(tuned, (kind, mid) => {
      const { wanted, source } = outgoingAt(mid) ?? {};
      return (kind === 'video' ? wanted?.codec : undefined) ?? codecOf(kind, source?.sending ?? {});
    });
  }

  /** @param {Outgoing} outgoing */
  #preferCodecs({ transceivers, source: { sending = {} } }) {
    for (const kind of /** @type {const} */ (['audio', 'video'])) preferCodec(transceivers?.[kind], kind, sending);
  }

  #addSlot() {
    this.#assertRoom(this.#slots);
    /** @type {Slot} */
    const slot = { isTaken: false, freedAt: -Infinity, transceivers: null, mids: null };
    this.#slots.push(slot);
    const { connection } = this.#sides.receive;
    if (connection) this.#addTransceivers('receive', connection, slot);
    return slot;
  }

  /** @param {Place[]} places */
  #assertRoom({ length }) {
    if (length < maxPlaces) return;
    const message = `A connection carries at most ${maxPlaces} streams in each direction. End some of them.`;
    throw new ConfabError({ code: 'too_many_streams', message });
  }

  /** @param {Side} side @returns {Place[]} */
  #places(side) {
    return side === 'send' ? this.#outgoing : this.#slots;
  }

  /** @param {Side} side @param {RTCPeerConnection} connection */
  #opened(side, connection) {
    for (const place of this.#places(side)) this.#addTransceivers(side, connection, place);
  }

  /** @param {Side} side */
  #closed(side) {
    for (const place of this.#places(side)) place.transceivers = place.mids = null;
    if (side === 'receive') for (const slot of this.#slots) slot.freedAt = -Infinity;
  }

  /** @param {Side} side @param {RTCPeerConnection} connection @param {Place} place */
  #addTransceivers(side, connection, place) {
    if (side === 'receive') {
      const [audio, video] = ['audio', 'video'].map((kind) => connection.addTransceiver(kind, { direction: 'recvonly' }));
      place.transceivers = { audio, video };
      return;
    }
    const outgoing = /** @type {Outgoing} */ (place);
    const video = { direction: /** @type {const} */ ('sendonly'), sendEncodings: encodingsOf(outgoing.layers) };
    place.transceivers = {
      audio: connection.addTransceiver('audio', { direction: 'sendonly' }),
      video: connection.addTransceiver('video', video),
    };
    outgoing.wanted = wantedAtFirst;
    outgoing.tracks = { audio: null, video: null };
    this.#preferCodecs(outgoing);
    this.refresh(outgoing);
  }

  /** @param {Side} side @param {boolean} isRenewed */
  #offered(side, isRenewed) {
    for (const place of this.#places(side)) {
      const { audio, video } = place.transceivers ?? {};
      // Transceivers added while the offer was being created have no mid yet. They are in the next offer.
      if (place.mids === null && audio?.mid && video?.mid) place.mids = { audioMid: audio.mid, videoMid: video.mid };
    }
    if (isRenewed) this.#users.forEach((user) => user.renewed(side));
  }

  /**
   * Resets both sides, because the server has forgotten this client, the client has left, or the connections were
   * closed.
   */
  #reset() {
    this.#timers.clearAll();
    for (const side of Object.values(this.#sides)) side.reset();
    this.#outgoing = [];
    this.#slots = [];
  }
}
