// Sends negotiation messages, and resends those that the server rejected because of its rate limit.

/** @typedef {import('./peer.js').Payload} Payload */

export class Outbox {
  #send;
  #timers;
  #negotiation;
  #refusals = 0;
  #closed = false;

  /**
   * @param {(payload: Payload) => Promise<unknown>} send
   * @param {import('../clock.js').Timers} timers
   * @param {import('./negotiation.js').Negotiation} negotiation
   */
  constructor(send, timers, negotiation) {
    this.#send = send;
    this.#timers = timers;
    this.#negotiation = negotiation;
  }

  /** @param {Payload} payload */
  post(payload) {
    this.#send(payload).catch((error) => {
      // Resend only after `rate_limited`. Any other error means that one of the two peers left, which is reported
      // elsewhere, or that the other peer does not expect messages from this one yet. In the second case, `Peer` sends
      // its offer again until it is answered.
      if (this.#closed || error?.code !== 'rate_limited') return;
      this.#timers.set(`post ${this.#refusals += 1}`, error.retryAfterMs ?? 1000, () => {
        if (this.#isCurrent(payload)) this.post(payload);
      });
    });
  }

  close() {
    this.#closed = true;
  }

  /**
   * Returns whether a rejected message should still be sent. A message that arrives too late would restart a
   * negotiation that has ended.
   * @param {Payload} payload
   */
  #isCurrent(payload) {
    if (!('description' in payload)) return this.#negotiation.concerns(payload);
    if (payload.description.type === 'offer') return this.#negotiation.isPending(payload);
    const { negotiationId, offerNumber } = this.#negotiation.answer;
    return payload.negotiationId === negotiationId && payload.offerNumber === offerNumber;
  }
}
