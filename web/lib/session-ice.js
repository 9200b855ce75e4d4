// How a session's peer connections find each other: the server's STUN and TURN servers, unless the program brings its own.

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
