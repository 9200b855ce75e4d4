// The STUN and TURN servers to use, from the most recent `welcome` or answer to `ice.servers`. Requested again when
// their credentials get old.

/** @typedef {import('../signaling/messages.js').IceInfo} IceInfo */

/**
 * The age at which TURN credentials are replaced; they last 5 minutes (protocol §6). The age is measured with the
 * local clock only, because `expiresAt` is server time and the two clocks may differ by more than 5 minutes.
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
   * Returns the STUN and TURN servers to use now. Requests them again if their credentials expire and are at least
   * `freshMs` old. If that fails, returns the old ones.
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
 * @property {'all' | 'custom'} [includeServers] `all` (the default): the server's and the `customServers`; `custom`:
 *   only the `customServers`
 * @property {'all' | 'relay'} [transportPolicy] `relay`: use only relays
 * @property {RTCIceServer[]} [customServers] the program's own STUN and TURN servers
 * @property {'local' | 'stun' | 'turn'} [candidates] which candidates to use; default: all. `local`: none from
 *   STUN or TURN servers; `stun`: no relays; `turn`: only relays
 * @property {'udp' | 'tcp'} [protocol] use only candidates over this protocol. Between browsers, TCP means a relay reached over TCP
 */

/**
 * Returns the configuration for a connection with another browser.
 * @param {IceInfo} info
 * @param {IceConfig} [config]
 * @returns {RTCConfiguration}
 */
export function iceConfiguration(info, config = {}) {
  const { includeServers, transportPolicy, customServers = [], candidates, protocol } = config;
  const needsRelay = info.relayOnly || candidates === 'turn' || protocol === 'tcp';
  return {
    iceServers: chosenServers(includeServers === 'custom' ? customServers : [...customServers, ...info.servers], config),
    // `relayOnly` hides strangers' addresses from each other. The program can override it with `transportPolicy`.
    iceTransportPolicy: transportPolicy ?? (needsRelay ? 'relay' : 'all'),
    // Send audio and video over one transport. This halves the number of candidates, and one cannot connect without
    // the other.
    bundlePolicy: 'max-bundle',
  };
}

/**
 * Returns the configuration for the connections with the server, which can be reached directly. It contains STUN or
 * TURN servers only if the program sets some or allows only relays, or if the network blocks the server's media port.
 * Ignores `relayOnly`, which hides addresses from strangers: on these connections, only the server sees the address.
 * @param {Pick<IceServers, 'current'>} servers
 * @param {IceConfig} [config]
 * @param {boolean} [needsRelay] whether the server could not be reached without TURN. Direct candidates are still tried, and preferred.
 * @returns {Promise<RTCConfiguration>}
 */
export async function mediaConfiguration(servers, config = {}, needsRelay = false) {
  const transportPolicy = config.transportPolicy ?? (config.candidates === 'turn' ? 'relay' : undefined);
  if (transportPolicy === 'relay' || config.includeServers === 'custom') {
    return { ...iceConfiguration(await servers.current(), config), iceTransportPolicy: transportPolicy ?? 'all' };
  }
  const relays = needsRelay ? relaysOf(await servers.current()) : [];
  return { iceServers: chosenServers([...config.customServers ?? [], ...relays], config), bundlePolicy: 'max-bundle' };
}

/**
 * Returns the servers that `candidates` and `protocol` allow, each with only the URLs that they allow.
 * @param {RTCIceServer[]} servers
 * @param {IceConfig} config
 * @returns {RTCIceServer[]}
 */
function chosenServers(servers, { candidates, protocol }) {
  if (candidates === 'local') return [];
  const isChosen = (/** @type {string} */ url) => {
    const isRelay = /^turns?:/i.test(url);
    // TLS runs over TCP, unless the URL says otherwise (RFC 7065 §3.1).
    const isTcp = /[?&]transport=tcp/i.test(url) || (/^turns:/i.test(url) && !/[?&]transport=udp/i.test(url));
    if (candidates === 'stun' && isRelay) return false;
    return !isRelay || protocol === undefined || isTcp === (protocol === 'tcp');
  };
  return servers.flatMap((server) => {
    const urls = [server.urls].flat().filter(isChosen);
    return urls.length ? [{ ...server, urls: Array.isArray(server.urls) ? urls : urls[0] }] : [];
  });
}

/**
 * Removes the candidates of other protocols from the server's answer.
 * @param {string} sdp
 * @param {'udp' | 'tcp'} [protocol] the protocol to keep; default: both
 */
export function withProtocol(sdp, protocol) {
  if (protocol === undefined) return sdp;
  // RFC 8839 §5.1: foundation, component, transport.
  return sdp.replace(/^a=candidate:\S+ \S+ (\S+) .*\r?\n/gim, (line, transport) => (transport.toLowerCase() === protocol ? line : ''));
}

/**
 * Returns whether the settings allow this remote candidate. Also returns true if the text contains no candidate.
 * Remote candidates must be checked here, because `RTCConfiguration` restricts only local ones. The protocol `tcp`
 * allows candidates of both protocols, because a relay that is reached over TCP still has a UDP candidate.
 * @param {string} candidate as in a description, without `a=`
 * @param {IceConfig} [config]
 */
export function isChosen(candidate, config = {}) {
  const { candidates, protocol } = config;
  const [, transport, type] = /^candidate:\S+ \S+ (\S+) .*? typ (\S+)/i.exec(candidate) ?? [];
  if (type === undefined) return true;
  if (candidates === 'local' && type !== 'host') return false;
  if (candidates === 'stun' && type === 'relay') return false;
  return protocol !== 'udp' || transport.toLowerCase() === 'udp';
}

/**
 * Removes the candidates that the settings exclude from another browser's description.
 * @param {string} sdp
 * @param {IceConfig} [config]
 */
export function withChosen(sdp, config) {
  return sdp.replace(/^a=(candidate:[^\r\n]*)\r?\n/gim, (line, candidate) => (isChosen(candidate, config) ? line : ''));
}

/** @param {IceInfo} info @returns {RTCIceServer[]} the TURN servers */
export function relaysOf({ servers }) {
  return servers.filter(({ urls }) => [urls].flat().some((url) => /^turns?:/i.test(url)));
}
