// The order of negotiation between two peers (protocol §4): decides which peer connection and which offer a message
// belongs to, and which of two crossing offers is valid. It does not use `RTCPeerConnection`; `Peer` carries out its
// decisions.
//
// Each peer connection has an id, chosen by the peer that makes its first offer. Both peers number their offers in one
// sequence. An answer repeats the number of its offer. The id shows whether a description or candidate belongs to
// another peer connection. The number shows whether an answer belongs to a withdrawn offer, and whether an offer was
// sent again.

/** Maximum number of candidates that wait for their description to be set. No browser gathers this many. */
const maxEarlyCandidates = 100;

const answerMs = 4000;
const maxAnswerMs = 16_000;

/**
 * Returns how many milliseconds an answer may take before its offer is sent again. An offer or answer gets lost if the
 * other peer did not expect it yet, or if the server refused to pass it on.
 * @param {number} repeated how often the offer was sent again
 */
export const answerDelay = (repeated) => Math.min(answerMs * 2 ** repeated, maxAnswerMs);

/**
 * The negotiation that a message belongs to. Candidates have no `offerNumber`. Both members are missing in messages of
 * clients that do not number their offers.
 * @typedef {{negotiationId?: string, offerNumber?: number}} Label
 */
/**
 * What to do with an offer:
 * - `accept`: apply and answer it. A pending local offer is withdrawn.
 * - `renew`: it starts another peer connection. Replace the local one, then accept the offer.
 * - `repeat`: it was answered before. Send the answer again.
 * - `ignore`: the local offer is the valid one, or the received one is outdated.
 * - `refuse`: it continues a peer connection that this side no longer has. The other peer must start a new one.
 * @typedef {'accept' | 'renew' | 'repeat' | 'ignore' | 'refuse'} Decision
 */

/** Returns a random id, which differs from all others between the same two peers. It is not a secret. */
const newId = () => Array.from({ length: 2 }, () => Math.random().toString(36).slice(2, 12)).join('');

export class Negotiation {
  #polite;
  /** @type {string | undefined} */
  #id;
  /** The highest offer number of either peer. */
  #number = 0;
  /** The number of the local offer that is waiting for its answer, or 0. */
  #offered = 0;
  /** The number of the other peer's offer that was answered last, or 0. */
  #answered = 0;
  /** Whether both descriptions were set at least once. */
  #isDescribed = false;

  /** @param {boolean} polite whether the other peer's offer is valid if two cross */
  constructor(polite) {
    this.#polite = polite;
  }

  /**
   * The label for local candidates; empty before the peer connection has an id.
   * @returns {Label}
   */
  get label() {
    return this.#id === undefined ? {} : { negotiationId: this.#id };
  }

  /** Whether a local offer is waiting for its answer. */
  get isOffering() {
    return this.#offered > 0;
  }

  /** Resets the state, because the peer connection was replaced. */
  reset() {
    this.#id = undefined;
    this.#number = this.#offered = this.#answered = 0;
    this.#isDescribed = false;
  }

  /**
   * Starts a local offer.
   * @returns {Label}
   */
  offer() {
    this.#id ??= newId();
    this.#number += 1;
    this.#offered = this.#number;
    return { negotiationId: this.#id, offerNumber: this.#offered };
  }

  /**
   * Cancels a local offer that could not be created.
   * @param {Label} label
   */
  withdraw(label) {
    if (this.isPending(label)) this.#offered = 0;
  }

  /**
   * Returns whether this local offer is still waiting for its answer.
   * @param {Label} label
   */
  isPending({ negotiationId, offerNumber }) {
    return this.#offered > 0 && negotiationId === this.#id && offerNumber === this.#offered;
  }

  /**
   * Returns what to do with an offer from the other peer.
   * @param {Label} label the label of that offer
   * @param {boolean} isBusy whether a local offer is being created or is waiting for its answer
   * @returns {Decision}
   */
  decide({ negotiationId, offerNumber = 1 }, isBusy) {
    const outdone = isBusy && !this.#polite;
    if (negotiationId === undefined) return outdone ? 'ignore' : 'accept';
    if (negotiationId === this.#id) {
      if (offerNumber < this.#answered) return 'ignore';
      if (offerNumber === this.#answered && !isBusy) return 'repeat';
      return outdone ? 'ignore' : 'accept';
    }
    if (offerNumber > 1) return 'refuse';
    if (this.#isDescribed) return 'renew';
    return outdone ? 'ignore' : 'accept';
  }

  /**
   * Notes that the other peer's offer was applied.
   * @param {Label} label
   */
  accepted({ negotiationId, offerNumber = 1 }) {
    this.#isDescribed = true;
    this.#offered = 0;
    if (negotiationId === undefined) return;
    if (negotiationId !== this.#id) this.#number = 0;
    this.#id = negotiationId;
    this.#answered = offerNumber;
    this.#number = Math.max(this.#number, offerNumber);
  }

  /**
   * Returns the label for the answer to the most recently accepted offer; empty if the other peer does not number
   * offers.
   * @returns {Label}
   */
  get answer() {
    return this.#answered > 0 ? { ...this.label, offerNumber: this.#answered } : {};
  }

  /**
   * Returns whether an answer with this label belongs to the pending local offer. A label without an id belongs to any
   * pending offer.
   * @param {Label} label
   */
  isAnswer(label) {
    return this.isOffering && (label.negotiationId === undefined || this.isPending(label));
  }

  /** Notes that the answer to the local offer was applied. */
  completed() {
    this.#isDescribed = true;
    this.#offered = 0;
  }

  /**
   * Returns whether a candidate with this label may belong to this peer connection: true if the ids match, or if the
   * label has no id.
   * @param {Label} label
   */
  concerns({ negotiationId }) {
    return negotiationId === undefined || negotiationId === this.#id;
  }
}

/** Stores candidates that arrived before their description. */
export class EarlyCandidates {
  /** @type {{candidate: RTCIceCandidateInit | null, label: Label}[]} */
  #waiting = [];

  /** @param {RTCIceCandidateInit | null} candidate @param {Label} label */
  hold(candidate, { negotiationId }) {
    this.#waiting.push({ candidate, label: { negotiationId } });
    // Drop the oldest, which may belong to a peer connection that was never established.
    if (this.#waiting.length > maxEarlyCandidates) this.#waiting.shift();
  }

  /**
   * Removes and returns the candidates of the negotiation whose description was set. Keeps the others.
   * @param {Negotiation} negotiation
   */
  take(negotiation) {
    const due = this.#waiting.filter(({ label }) => negotiation.concerns(label));
    this.#waiting = this.#waiting.filter(({ label }) => !negotiation.concerns(label));
    return due;
  }

  clear() {
    this.#waiting = [];
  }
}
