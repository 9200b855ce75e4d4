// Turns the measurements of a check of devices and network into verdicts, one for each row of the page `/check`. Pure: the page
// has the words, `network.js` measures.

import { leastBitrate, limits } from '../media/condition.js';
import { maxVideoBitrate } from '../media/layers.js';
import { hostOf, isPrivateHost } from './hosts.js';

/**
 * What was measured. `untested` means that a check did not run, or has not ended yet.
 * @typedef {object} Measurements
 * @property {number} at when the check began, in milliseconds since 1970, by the clock of the device
 * @property {string} host the host name of the server, as in the address of the page
 * @property {string} browser such as `Chromium 156`; empty if unknown
 * @property {Camera} camera
 * @property {Microphone} microphone
 * @property {'heard' | 'silent' | 'untested'} speakers what the person said about a sound that was played
 * @property {Server} server
 * @property {Way} udp media directly to the server, over UDP
 * @property {Way} tcp the same over TCP
 * @property {Turn} turn media to the server through a TURN server
 * @property {'udp' | 'tcp' | 'tls' | null} relay how the TURN server was reached
 * @property {string} address an address that the server announced for media, such as `203.0.113.7:40000`: that of the page, if it is
 *   among them, otherwise the first; empty if unknown
 * @property {Quality} quality
 * @property {'udp' | 'tcp' | 'turn' | null} path how the media traveled whose quality was measured
 * @property {Flow | null} up from this device to the server
 * @property {Flow | null} down from the server to this device
 * @property {number | null} roundTripMs
 */
/** @typedef {'refused' | 'missing' | 'busy' | 'insecure' | 'unanswered' | 'unknown' | 'untested'} DeviceTrouble */
/** @typedef {'works' | 'dark' | DeviceTrouble} Camera `dark`: all that the camera showed was black */
/**
 * `muted`: by the system or a switch on the device. `unmeasured`: it is on, but the browser could not measure its sound.
 * @typedef {'works' | 'silent' | 'muted' | 'unmeasured' | DeviceTrouble} Microphone
 */
/**
 * - `noUpgrade`: the server answers HTTP requests, but no WebSocket could be opened.
 * - `refused`: the server refused the connection.
 * - `lost`: the connection was lost during the check.
 * @typedef {'works' | 'noUpgrade' | 'unreachable' | 'refused' | 'lost' | 'untested'} Server
 */
/**
 * `mediaOff`: the server routes no media.
 * @typedef {'works' | 'blocked' | 'notOffered' | 'mediaOff' | 'untested'} Way
 */
/**
 * - `credentials`: the TURN server refused the user name or the password.
 * - `refused`: it refused a relay for another reason, such as a quota.
 * - `unreachable`: no TURN server answered.
 * - `noRelay`: no relay, in a browser that does not say why.
 * - `cannotRelay`: there was a relay, but it did not reach the server.
 * @typedef {'works' | 'credentials' | 'refused' | 'unreachable' | 'noRelay' | 'cannotRelay' | 'notOffered' | 'mediaOff' | 'untested'} Turn
 */
/**
 * - `noPath`: no media reached the server.
 * - `roomsClosed`: the server does not let visitors create the room in which the quality is measured.
 * - `busy`: the server refused it because of a limit.
 * - `hidden`: the page was in the background.
 * @typedef {'measured' | 'noPath' | 'roomsClosed' | 'mediaOff' | 'busy' | 'hidden' | 'failed' | 'untested'} Quality
 */
/**
 * One direction of the media. `loss` is a share from 0 to 1. If `isLimited` is false, the network carried all that was sent, and
 * may carry more.
 * @typedef {{loss: number | null, jitterMs: number | null, kbit: number, isLimited: boolean}} Flow
 */

/** @typedef {'camera' | 'microphone' | 'speakers' | 'server' | 'udp' | 'tcp' | 'turn' | 'up' | 'down' | 'delay'} Row */
/**
 * `none`: not tested, or not offered by the server, which is no fault.
 * @typedef {'good' | 'fair' | 'bad' | 'none'} Level
 */
/**
 * The verdict of a row. `code` names what was found, and is unique in its row.
 * @typedef {{row: Row, level: Level, code: string}} Verdict
 */

/** The rows in the order of the page. */
export const rows = /** @type {const} */ (['camera', 'microphone', 'speakers', 'server', 'udp', 'tcp', 'turn', 'up', 'down', 'delay']);

/** @type {readonly Row[]} the order in which problems are reported: a problem often causes those of the rows after it */
const causesFirst = ['server', 'udp', 'tcp', 'turn', 'up', 'down', 'delay', 'microphone', 'camera', 'speakers'];

/** Below this bitrate (bit/s), the largest layer of a camera is blurry, or the others get a smaller one. */
const fairBitrate = maxVideoBitrate * 2 / 3;

/** @type {Measurements} what is known before a check */
export const unmeasured = Object.freeze({
  at: 0, host: '', browser: '', camera: 'untested', microphone: 'untested', speakers: 'untested', server: 'untested', udp: 'untested',
  tcp: 'untested', turn: 'untested', relay: null, address: '', quality: 'untested', path: null, up: null, down: null, roundTripMs: null,
});

/**
 * @param {Measurements} measured
 * @returns {Verdict[]} one for each row, in the order of `rows`
 */
export function verdictsOf(measured) {
  return rows.map((row) => ({ row, ...judges[row](measured) }));
}

/**
 * Returns the verdicts that are problems, the worst first, and a cause before what it may cause.
 * @param {readonly Verdict[]} verdicts
 * @returns {Verdict[]}
 */
export function problemsOf(verdicts) {
  const rank = (/** @type {Verdict} */ { level, row }) => (level === 'bad' ? 0 : 1) * rows.length + causesFirst.indexOf(row);
  return verdicts.filter(({ level }) => level === 'bad' || level === 'fair').sort((one, other) => rank(one) - rank(other));
}

/** @typedef {Omit<Verdict, 'row'>} Judgment */
/** @param {string} code @returns {Judgment} */
const good = (code) => ({ level: 'good', code });
/** @param {string} code @returns {Judgment} */
const fair = (code) => ({ level: 'fair', code });
/** @param {string} code @returns {Judgment} */
const bad = (code) => ({ level: 'bad', code });
/** @param {string} code @returns {Judgment} */
const none = (code) => ({ level: 'none', code });

/** @type {Record<Row, (measured: Measurements) => Judgment>} */
const judges = {
  camera: ({ camera }) => deviceJudgment(camera),
  microphone: ({ microphone }) => deviceJudgment(microphone),
  speakers: ({ speakers }) => (speakers === 'heard' ? good('works') : speakers === 'silent' ? bad('silent') : none('untested')),
  server: ({ server }) => (server === 'works' ? good('works') : server === 'untested' ? none('untested') : bad(server)),
  udp: (measured) => wayJudgment(measured.udp, measured),
  tcp: (measured) => {
    // If nothing works, the row of UDP has the cause.
    const judgment = wayJudgment(measured.tcp, measured);
    return judgment.level === 'bad' && measured.udp === 'blocked' ? bad('blockedToo') : judgment;
  },
  turn: turnJudgment,
  up: ({ up, quality }) => flowJudgment(up, quality),
  down: ({ down, quality }) => flowJudgment(down, quality),
  delay: ({ roundTripMs, quality }) => {
    if (quality !== 'measured' || roundTripMs === null) return none(quality === 'measured' ? 'untested' : quality);
    const level = levelOf(roundTripMs / 1000, limits.roundTrip);
    return { level, code: level === 'good' ? 'works' : 'delay' };
  },
};

/** @param {Camera | Microphone} device @returns {Judgment} */
function deviceJudgment(device) {
  switch (device) {
    case 'works': return good('works');
    case 'untested': case 'unmeasured': return none(device);
    case 'dark': return fair('dark');
    default: return bad(device);
  }
}

/** @param {Way} way @param {Measurements} measured @returns {Judgment} */
function wayJudgment(way, measured) {
  if (way === 'works') return good('works');
  if (way !== 'blocked') return none(way);
  if (hasWay(measured)) return fair('blocked');
  return bad(announcesWrongAddress(measured) ? 'wrongAddress' : 'blockedAll');
}

/** @param {Measurements} measured @returns {Judgment} */
function turnJudgment(measured) {
  const { turn } = measured;
  if (turn === 'works') return good('works');
  if (turn === 'mediaOff' || turn === 'untested') return none(turn);
  const isNeeded = measured.udp === 'blocked' && measured.tcp !== 'works';
  // A TURN server on another network would not help if the announced address is wrong.
  if (turn === 'notOffered') return isNeeded && !announcesWrongAddress(measured) ? fair('needed') : none('notOffered');
  return isNeeded ? bad(turn) : fair(turn);
}

/** @param {Measurements} measured whether media reached the server over some way */
const hasWay = ({ udp, tcp, turn }) => [udp, tcp, turn].includes('works');

/**
 * Returns whether the server probably announces an address for media at which it cannot be reached. Not even the TURN server reached
 * it, which is on another network; or the page is at another IP address; or the page has a public name, and the address is private.
 * @param {Measurements} measured
 */
export function announcesWrongAddress(measured) {
  const { udp, tcp, turn, host, address } = measured;
  if (hasWay(measured) || ![udp, tcp].includes('blocked')) return false;
  if (turn === 'cannotRelay') return true;
  const announced = hostOf(address);
  if (announced === '') return false;
  const isNumeric = /^[\d.]+$|:/.test(host);
  return isNumeric ? host.replace(/^\[|\]$/g, '') !== announced : isPrivateHost(announced) && !isPrivateHost(host);
}

/** @param {Flow | null} flow @param {Quality} quality @returns {Judgment} */
function flowJudgment(flow, quality) {
  if (quality === 'noPath') return bad('noPath');
  if (quality !== 'measured') return quality === 'failed' ? fair('failed') : none(quality);
  if (flow === null) return none('untested');
  const { loss, jitterMs, kbit, isLimited } = flow;
  const rate = kbit * 1000;
  const slow = !isLimited || rate >= fairBitrate ? 'good' : rate >= leastBitrate ? 'fair' : 'bad';
  /** @type {[string, Level][]} */
  const found = [
    ['loss', levelOf(loss, limits.loss)], ['bandwidth', slow],
    ['jitter', levelOf(jitterMs === null ? null : jitterMs / 1000, limits.jitter)],
  ];
  for (const level of /** @type {const} */ (['bad', 'fair'])) {
    const worst = found.find(([, one]) => one === level);
    if (worst) return { level, code: worst[0] };
  }
  return good('works');
}

/** @param {number | null} value @param {readonly [number, number]} bounds from which it is fair, and bad @returns {Level} */
function levelOf(value, [fairFrom, badFrom]) {
  if (value === null || value < fairFrom) return 'good';
  return value < badFrom ? 'fair' : 'bad';
}
