// Tries whether media can reach the server over UDP, over TCP, and through a TURN server. Each attempt is a connection of its own
// with a time limit. Nothing is sent over it but ICE and DTLS.

import { ConfabError } from '../errors.js';
import { withProtocol } from '../media/ice.js';
import { limited } from './limited.js';

/** @typedef {import('./verdicts.js').Way} Way */
/** @typedef {import('./verdicts.js').Turn} Turn */
/** @typedef {Pick<import('../signaling/client.js').Client, 'request'>} Line */
/** @typedef {{client: Line, rtc: Pick<import('../media/peer.js').Rtc, 'RTCPeerConnection'>, clock: import('../clock.js').Clock}} Tools */

/** How long an attempt may take, in milliseconds. Over a round trip of 600 ms a connection takes 3 s. */
export const directMs = 8000;
/** The same through a TURN server, which takes some more round trips. */
export const relayMs = 10_000;

/** Answers of a TURN server (RFC 8656 §18.3 and RFC 8489 §14.8) that concern the user name, the password or the time. */
const credentialCodes = [401, 403, 438, 441];
/** Codes from here on are the browser's own: the TURN server could not be reached. */
const browserCodes = 700;

/**
 * Tries to reach the server directly.
 * @param {Tools} tools
 * @param {'send' | 'receive'} side the connection that is replaced; attempts at the same time need different ones
 * @param {'udp' | 'tcp'} protocol
 * @returns {Promise<{way: Way, addresses: string[], error?: unknown}>} `addresses`: those that the server announced for this protocol;
 *   `error`: why it was not tested
 */
export async function tryDirectly(tools, side, protocol) {
  const connection = open(tools, side, {});
  try {
    const answer = await exchange(tools, connection, side);
    const addresses = addressesIn(withProtocol(answer, protocol));
    if (addresses.length === 0) return { way: 'notOffered', addresses };
    await connection.setRemoteDescription({ type: 'answer', sdp: withProtocol(answer, protocol) });
    return { way: await connects(tools, connection, directMs) ? 'works' : 'blocked', addresses };
  } catch (error) {
    return { way: isMediaOff(error) ? 'mediaOff' : 'untested', addresses: [], error };
  } finally {
    close(connection);
  }
}

/**
 * Tries to reach the server through the TURN servers, and only through them.
 * @param {Tools} tools
 * @param {'send' | 'receive'} side
 * @param {RTCIceServer[]} relays
 * @returns {Promise<{turn: Turn, relay: 'udp' | 'tcp' | 'tls' | null}>} `relay`: how the TURN server was reached, if the browser says it
 */
export async function tryRelays(tools, side, relays) {
  if (relays.length === 0) return { turn: 'notOffered', relay: null };
  const connection = open(tools, side, { iceServers: relays, iceTransportPolicy: 'relay' });
  try {
    const gathering = gather(connection);
    const answer = await exchange(tools, connection, side);
    await connection.setRemoteDescription({ type: 'answer', sdp: answer });
    const isConnected = await connects(tools, connection, relayMs, gathering.failed);
    if (isConnected) return { turn: 'works', relay: await relayProtocol(connection) };
    return { turn: gathering.verdict(), relay: null };
  } catch (error) {
    return { turn: isMediaOff(error) ? 'mediaOff' : 'untested', relay: null };
  } finally {
    close(connection);
  }
}

/** @param {unknown} error @returns {boolean} whether the server routes no media */
export const isMediaOff = (error) => error instanceof ConfabError && error.code === 'media_unavailable';

/**
 * @param {string} sdp
 * @returns {string[]} the addresses of its candidates with their ports, those of IPv6 in brackets
 */
export function addressesIn(sdp) {
  // RFC 8839 §5.1: foundation, component, transport, priority, address, port.
  const found = sdp.matchAll(/^a=candidate:\S+ \S+ \S+ \S+ (\S+) (\d+) /gim);
  return [...found].map(([, address, port]) => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`));
}

/** @param {Tools} tools @param {'send' | 'receive'} side @param {RTCConfiguration} configuration @returns {RTCPeerConnection} */
function open({ rtc }, side, configuration) {
  const connection = new rtc.RTCPeerConnection({ ...configuration, bundlePolicy: 'max-bundle' });
  connection.addTransceiver('audio', { direction: side === 'send' ? 'sendonly' : 'recvonly' });
  return connection;
}

/**
 * @param {Tools} tools
 * @param {RTCPeerConnection} connection
 * @param {'send' | 'receive'} side
 * @returns {Promise<string>} the server's answer
 */
async function exchange({ client, clock }, connection, side) {
  await connection.setLocalDescription();
  const { sdp } = await limited(client.request('media.offer', { side, sdp: connection.localDescription?.sdp ?? '' }), directMs, clock);
  return sdp;
}

/**
 * @param {Tools} tools
 * @param {RTCPeerConnection} connection
 * @param {number} ms
 * @param {Promise<void>} [ended] settles when waiting longer is useless
 * @returns {Promise<boolean>} whether it was connected in this time
 */
function connects({ clock }, connection, ms, ended) {
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => settle(), ms);
    const settle = () => {
      clock.clearTimeout(timer);
      connection.onconnectionstatechange = null;
      resolve(connection.connectionState === 'connected');
    };
    const changed = () => { if (['connected', 'failed', 'closed'].includes(connection.connectionState)) settle(); };
    connection.onconnectionstatechange = changed;
    ended?.then(settle);
    changed();
  });
}

/**
 * Watches how a connection that uses only relays gathers its candidates.
 * @param {RTCPeerConnection} connection
 */
function gather(connection) {
  let hasRelay = false;
  /** @type {number[]} */
  const codes = [];
  connection.onicecandidateerror = (/** @type {any} */ event) => { codes.push(event.errorCode); };
  /** @type {Promise<void>} */
  const failed = new Promise((resolve) => {
    connection.onicecandidate = ({ candidate }) => {
      if (candidate?.candidate) hasRelay = true;
      else if (candidate === null && !hasRelay) resolve();
    };
  });
  /** @returns {Turn} */
  const verdict = () => {
    if (hasRelay) return 'cannotRelay';
    if (codes.some((code) => credentialCodes.includes(code))) return 'credentials';
    if (codes.some((code) => code < browserCodes)) return 'refused';
    return codes.length > 0 ? 'unreachable' : 'noRelay';
  };
  return { failed, verdict };
}

/** @param {RTCPeerConnection} connection @returns {Promise<'udp' | 'tcp' | 'tls' | null>} */
async function relayProtocol(connection) {
  /** @type {any[]} */
  const entries = [];
  (await connection.getStats()).forEach((entry) => entries.push(entry));
  const used = entries.find(({ type, state, nominated }) => type === 'candidate-pair' && state === 'succeeded' && nominated);
  const { relayProtocol: protocol } = entries.find(({ id }) => id === used?.localCandidateId) ?? {};
  return ['udp', 'tcp', 'tls'].includes(protocol) ? protocol : null;
}

/** @param {RTCPeerConnection} connection */
function close(connection) {
  connection.onconnectionstatechange = connection.onicecandidate = connection.onicecandidateerror = null;
  connection.close();
}
