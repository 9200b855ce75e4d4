// Which STUN and TURN servers to use: those of the last welcome or answer, asked for again when their credentials age.

/** @typedef {import('../line/messages.js').IceInfo} IceInfo */

/**
 * TURN credentials last 5 minutes (protocol §6). Their age is counted here, by this machine's clock alone: `expiresAt` is the
 * server's, and the two may differ by more than that.
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
   * What to use now; an old answer is better than none when the server cannot be asked.
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
 * @property {'all' | 'custom'} [includeServers] `custom`: only those below
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
    // Where there is a relay, strangers do not learn each other's address unless the program says so.
    iceTransportPolicy: transportPolicy ?? (info.relayOnly ? 'relay' : 'all'),
    // One way for sound and picture: half the candidates, and nothing half connected.
    bundlePolicy: 'max-bundle',
  };
}

/**
 * For the connections with the server, which can be reached directly: no STUN or TURN server is asked unless the program wants
 * one. `relayOnly` means strangers, and here only the server learns an address.
 * @param {Pick<IceServers, 'current'>} servers
 * @param {IceConfig} [config]
 * @returns {Promise<RTCConfiguration>}
 */
export async function mediaConfiguration(servers, config = {}) {
  const asks = config.transportPolicy === 'relay' || config.includeServers === 'custom';
  if (!asks) return { iceServers: config.customServers ?? [], bundlePolicy: 'max-bundle' };
  return { ...iceConfiguration(await servers.current(), config), iceTransportPolicy: config.transportPolicy ?? 'all' };
}
