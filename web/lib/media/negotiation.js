// The order of negotiation between two ends (protocol §4): which peer connection and which offer a message belongs to, and which
// of two crossing offers is valid. It knows nothing of `RTCPeerConnection`; `Peer` follows its decisions.
//
// Each peer connection has an id, which the end that makes its first offer chooses. The offers on it are numbered, over both ends.
// An answer repeats the number of its offer. So an answer or a candidate that belongs to another peer connection, or to an offer
// that was withdrawn, is recognized, and an offer can be sent again.

/** Maximum candidates that wait for their description to be set. No browser gathers this many. */
const maxEarlyCandidates = 100;

const answerMs = 4000;
const maxAnswerMs = 16_000;

/**
 * How long an answer may take before its offer is sent again. An offer or answer gets lost if the other end did not expect it yet,
 * or if the server refused it.
 * @param {number} repeated how often the offer was sent again
 */
export const answerDelay = (repeated) => Math.min(answerMs * 2 ** repeated, maxAnswerMs);

/**
 * What a message says about its negotiation. Both are missing in messages of clients that know nothing of it.
 * @typedef {{negotiationId?: string, offerNumber?: number}} Label
 */
/**
 * What to do with an offer:
 * - `accept`: apply and answer it. An own offer is withdrawn.
 * - `renew`: it begins another peer connection: replace the own one, then accept the offer.
 * - `repeat`: it was answered before: send the answer again.
 * - `ignore`: the own offer is the valid one, or this one is outdated.
 * - `refuse`: it continues a peer connection that no longer exists here. The other end has to begin a new one.
 * @typedef {'accept' | 'renew' | 'repeat' | 'ignore' | 'refuse'} Decision
 */

/** Chosen at random, so that it differs from all others between the same two ends. It is no secret. */
const newId = () => Array.from({ length: 2 }, () => Math.random().toString(36).slice(2, 12)).join('');

export class Negotiation {
  #polite;
  /** @type {string | undefined} */
  #id;
  /** The highest number of an offer of either end. */
  #number = 0;
  /** The number of the own offer that waits for its answer, or 0. */
  #offered = 0;
  /** The number of the other end's offer that was answered last, or 0. */
  #answered = 0;
  /** Whether both descriptions were ever set. */
  #isDescribed = false;

  /** @param {boolean} polite whether the other end's offer is valid if two cross */
  constructor(polite) {
    this.#polite = polite;
  }

  /**
   * The label for candidates.
   * @returns {Label}
   */
  get label() {
    return this.#id === undefined ? {} : { negotiationId: this.#id };
  }

  /** Whether an own offer waits for its answer. */
  get isOffering() {
    return this.#offered > 0;
  }

  /** Forgets everything: the peer connection was replaced. */
  reset() {
    this.#id = undefined;
    this.#number = this.#offered = this.#answered = 0;
    this.#isDescribed = false;
  }

  /**
   * Begins an offer.
   * @returns {Label}
   */
  offer() {
    this.#id ??= newId();
    this.#number += 1;
    this.#offered = this.#number;
    return { negotiationId: this.#id, offerNumber: this.#offered };
  }

  /**
   * Ends an own offer that could not be made.
   * @param {Label} label
   */
  withdraw(label) {
    if (this.isPending(label)) this.#offered = 0;
  }

  /**
   * Whether this own offer still waits for its answer.
   * @param {Label} label
   */
  isPending({ negotiationId, offerNumber }) {
    return this.#offered > 0 && negotiationId === this.#id && offerNumber === this.#offered;
  }

  /**
   * @param {Label} label of an offer of the other end
   * @param {boolean} isBusy whether an own offer is being made or waits for its answer
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
   * The other end's offer was applied.
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
   * The label of the answer to the offer that was accepted last.
   * @returns {Label}
   */
  get answer() {
    return this.#answered > 0 ? { ...this.label, offerNumber: this.#answered } : {};
  }

  /**
   * Whether this is the answer to the own offer.
   * @param {Label} label
   */
  isAnswer(label) {
    return this.isOffering && (label.negotiationId === undefined || this.isPending(label));
  }

  /** The answer to the own offer was applied. */
  completed() {
    this.#isDescribed = true;
    this.#offered = 0;
  }

  /**
   * Whether a candidate belongs to this peer connection, as far as its label says.
   * @param {Label} label
   */
  concerns({ negotiationId }) {
    return negotiationId === undefined || negotiationId === this.#id;
  }
}

/** Candidates that came before the description they belong to. */
export class EarlyCandidates {
  /** @type {{candidate: RTCIceCandidateInit | null, label: Label}[]} */
  #waiting = [];

  /** @param {RTCIceCandidateInit | null} candidate @param {Label} label */
  hold(candidate, { negotiationId }) {
    this.#waiting.push({ candidate, label: { negotiationId } });
    // The oldest may belong to a peer connection that never came about.
    if (this.#waiting.length > maxEarlyCandidates) this.#waiting.shift();
  }

  /**
   * Takes those of the negotiation that was described. Candidates of others stay.
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
