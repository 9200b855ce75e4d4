// Every message of `confab.v1`: its members and their kinds, as in `protocol/README.md`. The golden examples are decoded and
// re-encoded through this table, and every server message is checked against it before use.

import { boolean, dictionary, integer, list, nullable, object, oneOf, optional, string } from './kinds.js';
import { callState, clientAboutPeople, serverAboutPeople } from './people-messages.js';
import { clientAboutRooms, serverAboutRooms } from './room-messages.js';

/** @typedef {import('./kinds.js').Members} Members */
/** @typedef {{connectionId: string, createdAt: number, data: string}} ConnectionInfo */
/**
 * @typedef {{streamId: string, connectionId: string, createdAt: number, name: string, hasAudio: boolean, hasVideo: boolean,
 *   videoType?: 'camera' | 'screen' | 'custom' | null, width?: number | null, height?: number | null,
 *   initials?: string, frameRate?: number}} StreamInfo
 */
/** @typedef {{servers: RTCIceServer[], relayOnly: boolean, expiresAt?: number | null}} IceInfo */
/**
 * @typedef {{sessions: string[], roulette: {state: 'idle' | 'waiting' | 'matched', matchId?: string},
 *   call?: {callId: string, state: 'ringing' | 'active'}}} Snapshot
 */
/**
 * @typedef {{type: 'welcome', version: number, server: string, at?: string, connectionId: string, identity?: string, resumed: boolean,
 *   received: number, resume: {secret: string, graceMs: number}, pingMs: number, ice: IceInfo,
 *   limits: {message: number, description: number, interests: number, signal: number, streamTimeoutMs?: number}, state: Snapshot,
 *   media?: {roulette: 'relayed' | 'routed'}, push?: {vapidKey: string}, sampling?: Sampling}} Welcome
 */
/** @typedef {{intervalMs: number, width: number, maxBytes: number}} Sampling how the server checks the user's camera in video chats */
/** @typedef {{sessionId: string, token: string}} Admission */
/**
 * @typedef {{type: 'roulette.matched', matchId: string, mode: 'video' | 'text', publish: Admission, subscribe: Admission,
 *   partner: {name: string, interests: string[]}, textChat: boolean}} Matched
 */
/** @typedef {{type: string, seq?: number, ack?: number, re?: number, [member: string]: any}} Message */

export const protocolVersion = 1;
export const subprotocol = 'confab.v1';

const connection = object({ connectionId: string, createdAt: integer, data: string });
const stream = object({
  streamId: string, connectionId: string, createdAt: integer, name: string, hasAudio: boolean, hasVideo: boolean,
  videoType: optional(nullable(oneOf('camera', 'screen', 'custom'))),
  width: optional(nullable(integer)), height: optional(nullable(integer)), initials: optional(string), frameRate: optional(integer),
});
const urls = /** @type {import('./kinds.js').Kind} */ (value, path, strict) => (
  typeof value === 'string' ? value : list(string)(value, path, strict));
const ice = object({
  servers: list(object({ urls, username: optional(string), credential: optional(string) })),
  relayOnly: boolean, expiresAt: optional(nullable(integer)),
});
const admission = object({ sessionId: string, token: string });
const description = object({ type: oneOf('offer', 'answer', 'pranswer', 'rollback'), sdp: string });
const candidate = nullable(object({
  candidate: string, sdpMid: optional(nullable(string)), sdpMLineIndex: optional(nullable(integer)),
  usernameFragment: optional(nullable(string)),
}));
const mode = oneOf('video', 'text');
const mediaMode = oneOf('relayed', 'routed');
const rouletteState = object({ state: oneOf('idle', 'waiting', 'matched'), matchId: optional(string) });

const inSession = { sessionId: string };
const ofStream = { sessionId: string, streamId: string };
const ofConnection = { sessionId: string, connectionId: string };
const negotiation = {
  sessionId: string, description: optional(description),
  // A `candidate` of null marks the end of the candidates. Without the member, the message is not about candidates.
  candidate: optional(candidate), streams: optional(dictionary(string, 16)),
  negotiationId: optional(string), offerNumber: optional(integer),
};
const mids = { audioMid: optional(string), videoMid: optional(string) };
const side = oneOf('send', 'receive');
const dimensions = { width: optional(integer), height: optional(integer) };

/** @type {Record<string, Members>} */
const unnumberedClient = {
  hello: {
    version: integer, identity: optional(string), token: optional(string), name: optional(string),
    resume: optional(object({ secret: string, received: integer })), client: optional(string),
    traceparent: optional(string), warnings: optional(boolean),
  },
  ack: {}, ping: {}, bye: {},
};

/** @type {Record<string, Members>} */
const numberedClient = {
  'session.join': { sessionId: string, token: string },
  'session.leave': inSession,
  'session.publish': {
    sessionId: string, name: optional(string), initials: optional(string), hasAudio: boolean, hasVideo: boolean, frameRate: optional(integer),
    videoType: optional(oneOf('camera', 'screen', 'custom')), ...dimensions, ...mids,
  },
  'session.unpublish': ofStream,
  'session.update': { ...ofStream, hasAudio: optional(boolean), hasVideo: optional(boolean), ...dimensions, ...mids },
  'session.subscribe': {
    ...ofStream, audio: boolean, video: boolean, ...mids,
    preferredWidth: optional(integer), preferredHeight: optional(integer), preferredFrameRate: optional(integer),
    priority: optional(integer),
  },
  'session.unsubscribe': ofStream,
  'session.negotiate': { ...negotiation, to: string },
  'session.connected': { ...ofConnection, connected: boolean },
  'session.signal': { sessionId: string, signalType: optional(string), data: optional(string), to: optional(string) },
  'session.forceDisconnect': ofConnection,
  'session.forceUnpublish': ofStream,
  'session.forceMute': { sessionId: string, active: boolean, streamId: optional(string), excluded: optional(list(string)) },
  'session.consent': { sessionId: string, accept: boolean, broadcast: optional(boolean) },
  'session.startArchive': { sessionId: string, name: optional(string), outputMode: optional(oneOf('composed', 'individual')) },
  'session.stopArchive': { sessionId: string, archiveId: string },
  'roulette.start': { mode: optional(mode), interests: optional(list(string)), name: optional(string) },
  'roulette.next': { matchId: optional(string) },
  'roulette.stop': {},
  'roulette.report': { reason: string, matchId: optional(string) },
  'roulette.block': { matchId: optional(string) },
  'roulette.count': {},
  'ice.servers': {},
  'media.offer': { side, sdp: string },
  'media.close': { side },
  'media.estimate': {},
  ...clientAboutPeople,
  ...clientAboutRooms,
};

/** @type {Record<string, Members>} */
const unnumberedServer = {
  welcome: {
    version: integer, server: string, at: optional(string), connectionId: string, identity: optional(string), resumed: boolean,
    received: integer,
    resume: object({ secret: string, graceMs: integer }), pingMs: integer, ice,
    limits: object({ message: integer, description: integer, interests: integer, signal: integer, streamTimeoutMs: optional(integer) }),
    state: object({ sessions: list(string), roulette: rouletteState, call: optional(callState) }),
    media: optional(object({ roulette: mediaMode })), push: optional(object({ vapidKey: string })),
    sampling: optional(object({ intervalMs: integer, width: integer, maxBytes: integer })),
  },
  ack: {}, pong: {},
};

const archive = object({ archiveId: string, name: optional(string), consent: optional(boolean) });
const broadcast = object({ broadcastId: string, consent: optional(boolean) });
const gone = { reason: string };
const roster = { connections: list(connection), streams: list(stream), more: optional(boolean) };

/** @type {Record<string, Members>} */
const numberedServer = {
  ok: { re: integer },
  error: { re: optional(integer), code: string, message: string, retryable: boolean, retryAfterMs: optional(integer), at: optional(string) },
  'session.joined': {
    re: integer, sessionId: string, connectionId: string, connection, mediaMode,
    capabilities: object({
      publish: boolean, subscribe: boolean, signal: boolean, forceDisconnect: boolean, forceUnpublish: boolean, forceMute: boolean,
    }),
    ...roster, muted: boolean, archives: optional(list(archive)), broadcasts: optional(list(broadcast)), moderatorArchives: optional(oneOf('composed', 'individual')),
  },
  'session.roster': { ...inSession, ...roster },
  'session.left': { ...inSession, ...gone },
  'session.connectionCreated': { sessionId: string, connection },
  'session.connectionDestroyed': { ...ofConnection, ...gone },
  'session.connectionReconnecting': ofConnection,
  'session.connectionReconnected': ofConnection,
  'session.published': { re: integer, sessionId: string, stream },
  'session.streamCreated': { sessionId: string, stream },
  'session.streamDestroyed': { ...ofStream, ...gone },
  'session.streamChanged': { sessionId: string, stream },
  'session.subscribed': { ...ofStream, connectionId: string, audio: boolean, video: boolean },
  'session.unsubscribed': { ...ofStream, connectionId: string },
  'session.negotiate': { ...negotiation, from: string },
  'session.signal': {
    sessionId: string, from: optional(nullable(string)), signalType: optional(nullable(string)), data: optional(nullable(string)),
  },
  'session.muted': { sessionId: string, active: boolean, streamId: optional(string) },
  'session.mediaModeChanged': { sessionId: string, mediaMode },
  'session.subscriptionChanged': {
    ...ofStream, videoPaused: boolean, reason: oneOf('slow', 'codec', 'bandwidth', 'size', 'publisher'),
    rid: optional(string), temporalLayer: optional(integer), warning: optional(boolean), limited: optional(boolean),
  },
  'session.streamQuality': {
    ...ofStream, level: oneOf('good', 'fair', 'poor'), reason: optional(oneOf('loss', 'delay', 'bandwidth')),
  },
  'session.layersWanted': { ...ofStream, rids: list(string), video: optional(boolean), codec: optional(integer) },
  'session.speaking': { sessionId: string, streamId: optional(nullable(string)) },
  'session.archiveStarted': { sessionId: string, archiveId: string, name: optional(string), consent: optional(boolean) },
  'session.archiveStopped': { sessionId: string, archiveId: string },
  'session.broadcastStarted': { sessionId: string, broadcastId: string, consent: optional(boolean) },
  'session.broadcastStopped': { sessionId: string, broadcastId: string },
  'roulette.waiting': { re: optional(integer), retryAfterMs: optional(integer) },
  'roulette.matched': {
    matchId: string, mode, publish: admission, subscribe: admission,
    partner: object({ name: string, interests: list(string) }), textChat: boolean,
  },
  'roulette.partner': { matchId: string, state: oneOf('reconnecting', 'connected') },
  'roulette.ended': { matchId: string, reason: string },
  'roulette.count': { re: integer, online: integer, waiting: integer },
  'roulette.warning': { matchId: optional(string), source: oneOf('check', 'operator'), ends: boolean, text: optional(string) },
  'roulette.blur': { matchId: string, whose: oneOf('own', 'partner'), blurred: boolean },
  'ice.servers': { re: integer, ice },
  'media.answer': { re: integer, side, sdp: string },
  'media.estimate': { re: integer, bitrate: optional(integer) },
  'media.closed': { side, code: string, message: string },
  ...serverAboutPeople,
  ...serverAboutRooms,
};

/** @param {Record<string, Members>} unnumbered @param {Record<string, Members>} numbered */
function table(unnumbered, numbered) {
  const place = { type: string, seq: optional(integer), ack: optional(integer) };
  return new Map(Object.entries({ ...unnumbered, ...numbered }).map(([type, members]) => [type, object({ ...place, ...members })]));
}

const tables = { client: table(unnumberedClient, numberedClient), server: table(unnumberedServer, numberedServer) };

/**
 * Returns true if the server waits for the acknowledgment of this message before it sends the next page of a session's
 * roster.
 * @param {Message | null} message null for a message that could not be decoded
 */
export const awaitsAcknowledgement = (message) =>
  message?.more === true && (message.type === 'session.joined' || message.type === 'session.roster');

/** Client messages that are not numbered. */
export const unnumberedTypes = Object.keys(unnumberedClient);

/**
 * Checks a message, and returns a copy with only the known members.
 * @param {'client' | 'server'} direction the sender
 * @param {any} value a parsed message
 * @param {{strict?: boolean}} options strict also rejects unknown members, for the golden examples
 * @returns {Message | null} `null` for an unknown type: the peer may be newer
 * @throws {TypeError} names the invalid member
 */
export function decode(direction, value, { strict = false } = /** @type {{strict?: boolean}} */ ({})) {
  const kind = tables[direction].get(value?.type);
  if (kind === undefined) return null;
  return kind(value, value.type, strict);
}
