// Checks the network to the server: the connection for messages, the ways for media, and the quality of the best of them. Reports each
// result as soon as it is known. Invariant: it ends, whatever the network does, because each part has a time limit.

import { relaysOf } from '../media/ice.js';
import { hostOf } from './hosts.js';
import { limited } from './limited.js';
import { measureQuality, reasonOf } from './quality.js';
import { tryDirectly, tryRelays } from './transports.js';

/** @typedef {import('./verdicts.js').Measurements} Measurements */
/** @typedef {import('./quality.js').Path} Path */
/** @typedef {import('./verdicts.js').Row} Row */
/**
 * @typedef {object} NetworkTools
 * @property {import('../signaling/client.js').Client} client a client that is not connected yet. It has left when the check ends
 * @property {import('../media/peer.js').Rtc} rtc
 * @property {import('../clock.js').Clock} clock
 * @property {string} host the host name of the server, as in the address of the page
 * @property {() => Promise<unknown>} fetchHealth requests `/health`; rejects if there is no answer
 * @property {() => {audio: MediaStreamTrack, video: MediaStreamTrack, stop: () => void}} makeTracks makes the test stream
 * @property {() => boolean} isHidden whether the page is in the background
 * @property {(known: Partial<Measurements>) => void} report called with each result
 * @property {(rows: Row[], secondsLeft?: number) => void} testing called with the rows that are being tested
 */

/** How long the connection for messages may take, in milliseconds. */
const connectMs = 10_000;
/** How long an answer over HTTP may take, in milliseconds. */
const healthMs = 5000;
/** How long the addresses and credentials of the TURN servers may take, in milliseconds. */
const credentialsMs = 5000;
/** Codes of errors of a client that got no answer from the server. */
const noAnswer = ['connect_failed', 'timeout'];

/** @param {NetworkTools} tools @returns {Promise<void>} */
export async function checkNetwork(tools) {
  const { client, report, testing } = tools;
  let isLost = false;
  client.on({ reconnecting: () => { isLost = true; } });
  try {
    testing(['server']);
    const server = await connect(tools);
    report({ server });
    if (server !== 'works') return;
    const path = await findPath(tools);
    if (path === null) return;
    testing(['up', 'down', 'delay']);
    report({ path, ...await measure(tools, path) });
  } finally {
    if (isLost) report({ server: 'lost' });
    testing([]);
    client.leave();
  }
}

/** @param {NetworkTools} tools @returns {Promise<import('./verdicts.js').Server>} */
async function connect({ client, clock, fetchHealth }) {
  try {
    await limited(client.connect(), connectMs, clock);
    return 'works';
  } catch (error) {
    const { code = '' } = /** @type {{code?: string}} */ (error);
    if (!noAnswer.includes(code)) return 'refused';
    return limited(fetchHealth(), healthMs, clock).then(() => 'noUpgrade', () => 'unreachable');
  }
}

/**
 * Tries all ways for media. UDP and TCP are tried at the same time.
 * @param {NetworkTools} tools
 * @returns {Promise<Path | null>} the best way that works; null if the quality cannot be measured
 */
async function findPath(tools) {
  const { report, testing, host } = tools;
  testing(['udp', 'tcp']);
  const [udp, tcp] = await Promise.all([tryDirectly(tools, 'send', 'udp'), tryDirectly(tools, 'receive', 'tcp')]);
  const announced = [...udp.addresses, ...tcp.addresses];
  const address = announced.find((one) => hostOf(one) === host.replace(/^\[|\]$/g, '')) ?? announced[0] ?? '';
  report({ udp: udp.way, tcp: tcp.way, address });
  testing(['turn']);
  const turn = udp.way === 'mediaOff' ? { turn: /** @type {const} */ ('mediaOff'), relay: null } : await tryTURN(tools);
  report(turn);
  if (udp.way === 'works') return 'udp';
  if (tcp.way === 'works') return 'tcp';
  if (turn.turn === 'works') return 'turn';
  const isBlocked = udp.way === 'blocked' || tcp.way === 'blocked';
  report({ quality: isBlocked ? 'noPath' : reasonOf(udp.error) });
  return null;
}

/** @param {NetworkTools} tools @returns {ReturnType<typeof tryRelays>} */
async function tryTURN(tools) {
  const { client, clock } = tools;
  const servers = await limited(client.ice.current(), credentialsMs, clock).catch(() => null);
  return servers ? tryRelays(tools, 'send', relaysOf(servers)) : { turn: 'untested', relay: null };
}

/** @param {NetworkTools} tools @param {Path} path */
async function measure(tools, path) {
  const { client, rtc, clock, isHidden, testing } = tools;
  const { stop, ...tracks } = tools.makeTracks();
  const progress = (/** @type {number} */ left) => testing(['up', 'down', 'delay'], left);
  try {
    return await measureQuality({ client, rtc, clock, tracks, isHidden, progress }, path);
  } finally {
    stop();
  }
}
