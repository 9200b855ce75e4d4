// The parts of `RTCPeerConnection` that negotiation needs: signaling states, implicit rollback, a fixed remote end, and
// candidates that need a description. Media consist only of names in a description.
import { FakeMediaStream, FakeTrack } from './fake-page.mjs';

/** @param {string} name @param {string} message */
const failure = (name, message) => Object.assign(new Error(message), { name });

let made = 0;

/** One end of a transceiver, with its counters. */
class FakeEnd {
  /** @type {any[]} the tracks it was set to send, in order */
  replaced = [];
  packets = 0;
  frames = 0;

  /** @param {any} track */
  constructor(track) {
    this.track = track;
  }

  /** @param {any} track */
  async replaceTrack(track) {
    this.replaced.push(track);
    await Promise.resolve();
    this.track = track;
  }

  async getStats() {
    const counts = { packetsReceived: this.packets, ...this.track?.kind === 'video' ? { framesDecoded: this.frames } : {} };
    return new Map([['in', { type: 'inbound-rtp', kind: this.track?.kind, ...counts }]]);
  }

  /** Counts a received video frame, or the same amount of audio. */
  arrive() {
    this.packets += 1;
    this.frames += 1;
  }
}

export class FakePeerConnection {
  /** @type {FakePeerConnection[]} */
  static all = [];
  /** Whether packets get through. */
  static network = true;
  /**
   * The name that the next connections use in their descriptions.
   * @type {string[]}
   */
  static writers = [];

  signalingState = 'stable';
  connectionState = 'new';
  /** @type {any} */
  localDescription = null;
  /** @type {any} */
  remoteDescription = null;
  /** @type {{track: any, media: any, codecs: any[] | null, replaceTrack: (track: any) => Promise<void>, getStats: () => Promise<Map<string, object>>}[]} */
  senders = [];
  /** @type {{track: any, getStats: () => Promise<Map<string, object>>}[]} */
  receivers = [];
  /** @type {any[]} */
  candidates = [];
  /** @type {any} */
  onnegotiationneeded = null;
  /** @type {any} */
  onicecandidate = null;
  /** @type {any} */
  onconnectionstatechange = null;
  /** @type {any} */
  ontrack = null;
  /** @type {Map<string, FakeMediaStream>} */
  remote = new Map();
  /** @type {{kind: string, mid: string | null, direction: string, sender: FakeEnd, receiver: FakeEnd, init: any}[]} created by `addTransceiver` */
  transceivers = [];
  restarts = 0;
  rollbacks = 0;
  id = made += 1;
  #version = 0;
  #isNeeded = false;
  #isScheduled = false;
  /** @type {string | null} */
  #partner = null;

  /** @param {any} configuration */
  constructor(configuration) {
    this.configuration = configuration;
    this.writer = FakePeerConnection.writers.shift() ?? '-';
    FakePeerConnection.all.push(this);
  }

  /** @param {any} configuration */
  setConfiguration(configuration) {
    this.configuration = configuration;
  }

  /** @param {any} track @param {any} media */
  addTrack(track, media) {
    const sender = {
      track, media, codecs: /** @type {any[] | null} */ (null), getStats: async () => new Map(),
      replaceTrack: async (/** @type {any} */ other) => { sender.track = other; },
    };
    this.senders.push(sender);
    this.#need();
    return sender;
  }

  /** @param {any} sender */
  removeTrack(sender) {
    this.senders = this.senders.filter((known) => known !== sender);
    this.#need();
  }

  /** All transceivers of a kind. */
  getTransceivers() {
    const sending = this.senders.map((sender) => ({
      sender, receiver: { track: { kind: sender.track?.kind } }, setCodecPreferences: (/** @type {any[]} */ codecs) => { sender.codecs = codecs; },
    }));
    return [...sending, ...this.transceivers];
  }

  /** @param {string} kind @param {any} init */
  addTransceiver(kind, init) {
    const made = { kind, mid: null, direction: init.direction, sender: new FakeEnd(null), receiver: new FakeEnd(new FakeTrack(kind)), init };
    this.transceivers.push(made);
    this.#need();
    return made;
  }

  getReceivers() {
    return this.receivers;
  }

  restartIce() {
    this.restarts += 1;
    this.#need();
  }

  async createOffer() {
    return { type: 'offer', sdp: '' };
  }

  async setLocalDescription() {
    await Promise.resolve();
    this.#assertOpen();
    const type = this.signalingState === 'have-remote-offer' ? 'answer' : 'offer';
    this.#version += 1;
    this.transceivers.forEach((transceiver, index) => { transceiver.mid = `${index}`; });
    const media = [
      ...this.senders.map((sender) => `a=msid:${sender.media.id} ${sender.track?.kind ?? 'none'}`),
      ...this.transceivers.map(({ mid }) => `a=mid:${mid}`),
    ];
    this.localDescription = { type, sdp: [
      `o=${this.writer} ${this.id} ${this.#version} IN IP4 0.0.0.0`, ...media,
      `a=setup:${type === 'offer' ? 'actpass' : this.#part()}`, `a=ice-ufrag:u${this.id}`, '',
    ].join('\r\n') };
    // An answer also lists all media to send.
    this.#isNeeded = false;
    this.#enter(type === 'offer' ? 'have-local-offer' : 'stable');
    queueMicrotask(() => {
      this.onicecandidate?.({ candidate: { toJSON: () => ({ candidate: `candidate of ${this.id}`, sdpMid: '0', usernameFragment: `u${this.id}` }) } });
      this.onicecandidate?.({ candidate: null });
    });
  }

  /** @param {any} description */
  async setRemoteDescription(description) {
    await Promise.resolve();
    this.#assertOpen();
    const isOffer = description.type === 'offer';
    if (isOffer && this.signalingState === 'have-local-offer') this.#rollBack();
    if (this.signalingState !== (isOffer ? 'stable' : 'have-local-offer')) throw failure('InvalidStateError', `${description.type} in ${this.signalingState}`);
    const partner = /^o=\S+ (\S+)/m.exec(description.sdp)?.[1] ?? null;
    if (this.#partner !== null && this.#partner !== partner) throw failure('OperationError', 'the fingerprint changed');
    this.#partner = partner;
    // Rewrite the description, as Chromium does.
    this.remoteDescription = { type: description.type, sdp: description.sdp.replace(/^o=\S+/m, 'o=-') };
    this.#receive(description.sdp);
    this.#enter(isOffer ? 'have-remote-offer' : 'stable');
  }

  /** @param {any} candidate */
  async addIceCandidate(candidate) {
    if (!this.remoteDescription) throw failure('InvalidStateError', 'no description yet');
    if (candidate && !this.remoteDescription.sdp.includes(candidate.usernameFragment)) throw failure('OperationError', 'unknown ufrag');
    this.candidates.push(candidate);
  }

  close() {
    this.signalingState = 'closed';
    this.connectionState = 'closed';
  }

  /**
   * Simulates a state change.
   * @param {string} state
   */
  become(state) {
    this.connectionState = state;
    this.onconnectionstatechange?.();
  }

  /** Chooses the DTLS role like Firefox, which is active whenever the offer leaves the choice. */
  #part() {
    return /a=setup:active/.test(this.remoteDescription.sdp) ? 'passive' : 'active';
  }

  #assertOpen() {
    if (this.signalingState === 'closed') throw failure('InvalidStateError', 'it is closed');
  }

  #rollBack() {
    this.rollbacks += 1;
    this.signalingState = 'stable';
    this.#isNeeded = true;
  }

  /** @param {string} state */
  #enter(state) {
    this.signalingState = state;
    if (state !== 'stable') return;
    if (this.#isNeeded) this.#need();
    if (FakePeerConnection.network && this.connectionState !== 'connected') {
      queueMicrotask(() => { if (this.signalingState !== 'closed') this.become('connected'); });
    }
  }

  #need() {
    this.#isNeeded = true;
    if (this.#isScheduled || this.signalingState !== 'stable') return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#isNeeded && this.signalingState === 'stable') this.onnegotiationneeded?.();
    });
  }

  /** @param {string} sdp */
  #receive(sdp) {
    const named = [...sdp.matchAll(/^a=msid:(\S+) (\S+)/gm)].map(([, id, kind]) => ({ id, kind }));
    for (const [id, media] of this.remote) {
      if (named.some((one) => one.id === id)) continue;
      this.remote.delete(id);
      this.receivers = this.receivers.filter(({ track }) => !media.getTracks().includes(track));
    }
    for (const { id, kind } of named) {
      const media = this.remote.get(id) ?? Object.assign(new FakeMediaStream(), { id });
      this.remote.set(id, media);
      if (media.getTracks().some((track) => track.kind === kind)) continue;
      const track = new FakeTrack(kind);
      media.addTrack(track);
      this.receivers.push({ track, getStats: async () => new Map() });
      this.ontrack?.({ streams: [media], track });
    }
  }
}

/** @type {any} */
export const fakeRtc = { RTCPeerConnection: FakePeerConnection, MediaStream: FakeMediaStream };
