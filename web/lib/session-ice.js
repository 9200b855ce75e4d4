// How peer connections find each other, and the server: the server's STUN and TURN servers, unless the program brings its own.

/**
 * @typedef {object} IceConfig
 * @property {'all' | 'custom'} [includeServers] `custom`: only those below
 * @property {'all' | 'relay'} [transportPolicy]
 * @property {RTCIceServer[]} [customServers]
 */

/**
 * @param {import('./messages.js').IceInfo} info
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
 * @param {Pick<import('./ice.js').IceServers, 'current'>} servers
 * @param {IceConfig} [config]
 * @returns {Promise<RTCConfiguration>}
 */
export async function mediaConfiguration(servers, config = {}) {
  const asks = config.transportPolicy === 'relay' || config.includeServers === 'custom';
  if (!asks) return { iceServers: config.customServers ?? [], bundlePolicy: 'max-bundle' };
  return { ...iceConfiguration(await servers.current(), config), iceTransportPolicy: config.transportPolicy ?? 'all' };
}
