// The bitrate that the connection from the server carries, as the server estimates it. Browsers know only what they send.

/** How long an answer counts, so that the statistics of many subscribers cost one request. */
const freshMs = 1000;
/** How long statistics wait for the answer, which may take longer while the connection is interrupted. */
const waitMs = 1000;

export class DownlinkEstimate {
  #client;
  #clock;
  /** @type {{at: number, bitrate: Promise<number | undefined>} | null} */
  #latest = null;

  /**
   * @param {Pick<import('../line/client.js').Client, 'request' | 'state'>} client
   * @param {import('../clock.js').Clock} clock
   */
  constructor(client, clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** @returns {Promise<number | undefined>} in bit/s; undefined while nothing limits the connection, or if the server does not say */
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
      // A server that is older than this SDK refuses the request.
      this.#client.request('media.estimate').then(({ bitrate }) => resolve(bitrate), () => resolve(undefined))
        .finally(() => this.#clock.clearTimeout(timer));
    });
  }
}
