// The server's estimate of the bandwidth from the server to this client. Browsers estimate only the sending direction.

/** How long an answer stays valid, so that the statistics of many subscribers need only one request. */
export const freshMs = 1000;
/**
 * How long to wait for the answer. If it takes longer, for example because the connection is interrupted, statistics
 * are reported without an estimate.
 */
export const waitMs = 1000;

export class DownlinkEstimate {
  #client;
  #clock;
  /** @type {{at: number, bitrate: Promise<number | undefined>} | null} */
  #latest = null;

  /**
   * @param {Pick<import('../signaling/client.js').Client, 'request' | 'state'>} client
   * @param {import('../clock.js').Clock} clock
   */
  constructor(client, clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * @returns {Promise<number | undefined>} the estimate in bit/s; undefined while nothing limits the connection, while
   *   this client is disconnected, or if the server does not answer in time
   */
  async read() {
    if (this.#client.state !== 'connected') return undefined;
    const now = this.#clock.now();
    if (this.#latest === null || now - this.#latest.at >= freshMs) this.#latest = { at: now, bitrate: this.#ask() };
    return this.#latest.bitrate;
  }

  /** @returns {Promise<number | undefined>} */
  #ask() {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(() => resolve(undefined), waitMs);
      // A server older than this SDK rejects the request.
      this.#client.request('media.estimate').then(({ bitrate }) => resolve(bitrate), () => resolve(undefined))
        .finally(() => this.#clock.clearTimeout(timer));
    });
  }
}
