// One side of a client connection's numbering (protocol §1, §3): the messages sent but not acknowledged, and the
// highest number received. Uses no socket and no clock. Invariant: a message passed to `send` is acknowledged, or kept
// for a replay, or `replay` reports that messages are lost.

/** @typedef {{type: string, [member: string]: unknown}} Body */
/** @typedef {Body & {seq: number, ack: number}} Numbered */

/** The size of the resume buffer, in messages and in bytes; the server's buffer has the same size (protocol §3). */
export const replayMessages = 256;
export const replayBytes = 64 * 1024;
/**
 * Additional bytes for messages that are larger than `replayBytes` by themselves: two session descriptions of the
 * maximum size, one for each of the peer connections with the server. Without these bytes, an offer of that size could
 * not wait for the connection.
 */
export const replayLargeBytes = 2 * 256 * 1024;

const encoder = new TextEncoder();

/** @param {unknown} message @returns {number} the size of the encoded message in bytes */
export function bytesOf(message) {
  return encoder.encode(JSON.stringify(message)).length;
}

export class Link {
  #lastSent = 0;
  #received = 0;
  #unacknowledgedReceipts = 0;
  /** @type {{seq: number, body: Body, bytes: number}[]} */
  #kept = [];
  #usualBytes = 0;
  #largeBytes = 0;

  /** The highest number received. All messages with lower numbers were received too. */
  get received() {
    return this.#received;
  }

  /** The number of numbered messages received since the last acknowledgment was sent. */
  get unacknowledgedReceipts() {
    return this.#unacknowledgedReceipts;
  }

  /**
   * Returns true if another message can wait for the connection without dropping an older message.
   * @param {Body} body
   */
  hasRoom(body) {
    const bytes = bytesOf(body);
    if (this.#kept.length >= replayMessages) return false;
    return isLarge(bytes) ? this.#largeBytes + bytes <= replayLargeBytes : this.#usualBytes + bytes <= replayBytes;
  }

  /**
   * Numbers and stores a message, and returns it ready to send.
   * @param {Body} body
   * @returns {Numbered}
   */
  send(body) {
    const entry = { seq: ++this.#lastSent, body, bytes: bytesOf(body) };
    this.#kept.push(entry);
    this.#count(entry.bytes);
    while (this.#kept.length > 1 && this.#isOverfull) this.#dropFirst();
    return this.#numbered(entry);
  }

  /**
   * Checks the number of a received message.
   * @param {number} seq
   * @returns {'deliver' | 'duplicate' | 'gap'} `duplicate`: ignore the message; `gap`: an earlier message is missing
   */
  receive(seq) {
    if (seq <= this.#received) return 'duplicate';
    if (seq !== this.#received + 1) return 'gap';
    this.#received = seq;
    this.#unacknowledgedReceipts += 1;
    return 'deliver';
  }

  /**
   * Returns the acknowledgment to put into an outgoing message: the highest number received.
   * @returns {number}
   */
  acknowledge() {
    this.#unacknowledgedReceipts = 0;
    return this.#received;
  }

  /**
   * Handles an acknowledgment: the other side has received all messages up to `ack`. Ignores numbers that were never
   * sent.
   * @param {number} ack
   */
  acknowledged(ack) {
    if (ack > this.#lastSent) return;
    while (this.#kept.length > 0 && this.#kept[0].seq <= ack) this.#dropFirst();
  }

  /**
   * Returns the messages that the other side lacks, in order.
   * @param {number} received the highest number that the other side has received
   * @returns {Numbered[] | null} `null` if some of them are no longer in the buffer, or if `received` was never sent
   */
  replay(received) {
    if (received > this.#lastSent) return null;
    this.acknowledged(received);
    const oldest = this.#kept.length > 0 ? this.#kept[0].seq : this.#lastSent + 1;
    if (oldest !== received + 1) return null;
    return this.#kept.map((entry) => this.#numbered(entry));
  }

  /** @param {{seq: number, body: Body}} entry @returns {Numbered} */
  #numbered({ seq, body }) {
    return { ...body, seq, ack: this.acknowledge() };
  }

  #dropFirst() {
    this.#count(-this.#kept[0].bytes);
    this.#kept.shift();
  }

  /** @param {number} bytes negative for a message that is dropped */
  #count(bytes) {
    if (isLarge(Math.abs(bytes))) this.#largeBytes += bytes;
    else this.#usualBytes += bytes;
  }

  get #isOverfull() {
    return this.#kept.length > replayMessages || this.#usualBytes > replayBytes || this.#largeBytes > replayLargeBytes;
  }
}

/** @param {number} bytes */
const isLarge = (bytes) => bytes > replayBytes;
