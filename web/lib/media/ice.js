// The STUN and TURN servers to use: those of the last welcome or answer, requested again when their credentials get old.

/** @typedef {import('../line/messages.js').IceInfo} IceInfo */

/**
 * TURN credentials last 5 minutes (protocol §6). Their age is measured with the local clock only: `expiresAt` is server time,
 * and the two clocks may differ by more than that.
 */
const freshMs = 120_000;

export class IceServers {
  /** @type {IceInfo} */
  #info = { servers: [], relayOnly: false };
  #updatedAt = -Infinity;
  #ask;
  #clock;
  /** @type {Promise<IceInfo> | null} */
  #asking = null;

  /** @param {() => Promise<IceInfo>} ask @param {import('../clock.js').Clock} clock */
  constructor(ask, clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  get info() {
    return this.#info;
  }

  /** @param {IceInfo} info */
  update(info) {
    this.#info = info;
    this.#updatedAt = this.#clock.now();
  }

  /**
   * Returns the servers to use now. If the server cannot be reached, an old answer is better than none.
   * @returns {Promise<IceInfo>}
   */
  async current() {
    const ages = this.#info.expiresAt !== null && this.#info.expiresAt !== undefined;
    if (!ages || this.#clock.now() - this.#updatedAt < freshMs) return this.#info;
    this.#asking ??= this.#ask().then(
      (info) => { this.update(info); return info; },
      () => this.#info,
    ).finally(() => { this.#asking = null; });
    return this.#asking;
  }
}

/**
 * @typedef {object} IceConfig
 * @property {'all' | 'custom'} [includeServers] `custom`: only the `customServers`
 * @property {'all' | 'relay'} [transportPolicy]
 * @property {RTCIceServer[]} [customServers]
 */

/**
 * @param {IceInfo} info
 * @param {IceConfig} [config]
 * @returns {RTCConfiguration}
 */
export function iceConfiguration(info, config = {}) {
  const { includeServers, transportPolicy, customServers = [] } = config;
  return {
    iceServers: includeServers === 'custom' ? customServers : [...customServers, ...info.servers],
    // With a TURN server, strangers do not learn each other's address, unless the program decides otherwise.
    iceTransportPolicy: transportPolicy ?? (info.relayOnly ? 'relay' : 'all'),
    // Bundle audio and video: half the candidates, and no half-open connections.
    bundlePolicy: 'max-bundle',
  };
}

/**
 * For the connections with the server, which can be reached directly: uses no STUN or TURN server unless the program sets
 * one. `relayOnly` hides addresses from strangers, but here only the server learns the address.
 * @param {Pick<IceServers, 'current'>} servers
 * @param {IceConfig} [config]
 * @returns {Promise<RTCConfiguration>}
 */
export async function mediaConfiguration(servers, config = {}) {
  const asks = config.transportPolicy === 'relay' || config.includeServers === 'custom';
  if (!asks) return { iceServers: config.customServers ?? [], bundlePolicy: 'max-bundle' };
  return { ...iceConfiguration(await servers.current(), config), iceTransportPolicy: config.transportPolicy ?? 'all' };
}
