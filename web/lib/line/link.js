// One end of a client connection's numbering (protocol §1, §3): what was sent and not yet acknowledged, what was received.
// It owns no socket and knows no time. Its one invariant: what is handed to `send` is acknowledged, or kept for a replay,
// or `replay` says that some of it is lost.

/** @typedef {{type: string, [member: string]: unknown}} Body */
/** @typedef {Body & {seq: number, ack: number}} Numbered */

/** How much is kept for a resume; the server keeps as much (protocol §3). */
export const replayMessages = 256;
export const replayBytes = 64 * 1024;

const encoder = new TextEncoder();

/** @param {unknown} message @returns {number} its size on the wire */
export function bytesOf(message) {
  return encoder.encode(JSON.stringify(message)).length;
}

export class Link {
  #lastSent = 0;
  #received = 0;
  #unacknowledgedReceipts = 0;
  /** @type {{seq: number, body: Body, bytes: number}[]} */
  #kept = [];
  #keptBytes = 0;

  /** The highest number received; everything below it came too. */
  get received() {
    return this.#received;
  }

  /** Numbered messages received since this end last said how far it got. */
  get unacknowledgedReceipts() {
    return this.#unacknowledgedReceipts;
  }

  /**
   * Whether another message can wait for a socket without pushing an older one out.
   * @param {Body} body
   */
  hasRoom(body) {
    return this.#kept.length < replayMessages && this.#keptBytes + bytesOf(body) <= replayBytes;
  }

  /**
   * Numbers a message, keeps it, and returns it ready to send.
   * @param {Body} body
   * @returns {Numbered}
   */
  send(body) {
    const entry = { seq: ++this.#lastSent, body, bytes: bytesOf(body) };
    this.#kept.push(entry);
    this.#keptBytes += entry.bytes;
    while (this.#kept.length > 1 && (this.#kept.length > replayMessages || this.#keptBytes > replayBytes)) this.#dropFirst();
    return this.#numbered(entry);
  }

  /**
   * @param {number} seq
   * @returns {'deliver' | 'duplicate' | 'gap'} `duplicate`: ignore it; `gap`: something before it never came
   */
  receive(seq) {
    if (seq <= this.#received) return 'duplicate';
    if (seq !== this.#received + 1) return 'gap';
    this.#received = seq;
    this.#unacknowledgedReceipts += 1;
    return 'deliver';
  }

  /**
   * Says how far this end got, for a message of its own.
   * @returns {number}
   */
  acknowledge() {
    this.#unacknowledgedReceipts = 0;
    return this.#received;
  }

  /**
   * The other end has everything up to `ack`. A number never sent is ignored.
   * @param {number} ack
   */
  acknowledged(ack) {
    if (ack > this.#lastSent) return;
    while (this.#kept.length > 0 && this.#kept[0].seq <= ack) this.#dropFirst();
  }

  /**
   * What the other end lacks, in order.
   * @param {number} received the highest number the other end has
   * @returns {Numbered[] | null} `null` when some of it is no longer kept
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
    this.#keptBytes -= this.#kept[0].bytes;
    this.#kept.shift();
  }
}
