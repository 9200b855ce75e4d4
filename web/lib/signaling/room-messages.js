// The messages about rooms (protocol/rooms.md). Part of the table in `messages.js`.

import { boolean, integer, list, object, oneOf, optional, string } from './kinds.js';

/** @typedef {import('./kinds.js').Members} Members */
/** @typedef {'host' | 'cohost' | 'guest'} RoomRole */
/**
 * @typedef {{media: 'routed' | 'mesh', capacity: number, locked: boolean, lobby: boolean, password: boolean, chat: boolean,
 *   share: 'all' | 'hosts', persistent: boolean}} RoomOptions
 */
/**
 * @typedef {{connectionId: string, displayName: string, role: RoomRole, state: 'connected' | 'reconnecting' | 'left',
 *   since: number, handAt?: number}} RoomPerson
 */
/** @typedef {{connectionId: string, displayName: string, text: string, at: number, file?: {fileId: string, size: number}}} RoomLine */

const media = oneOf('routed', 'mesh');
const share = oneOf('all', 'hosts');
const role = oneOf('host', 'cohost', 'guest');
const options = object({
  media, capacity: integer, locked: boolean, lobby: boolean, password: boolean, chat: boolean, share, persistent: boolean,
});
const changes = object({
  media: optional(media), capacity: optional(integer), locked: optional(boolean), lobby: optional(boolean),
  password: optional(string), chat: optional(boolean), share: optional(share), persistent: optional(boolean),
});
const person = {
  connectionId: string, displayName: string, role, state: oneOf('connected', 'reconnecting', 'left'), since: integer,
  handAt: optional(integer),
};
const line = {
  connectionId: string, displayName: string, text: string, at: integer, file: optional(object({ fileId: string, size: integer })),
};
const ofConnection = { connectionId: string };
const ofOneOrAll = { connectionId: optional(string) };

/** @type {Record<string, Members>} */
export const clientAboutRooms = {
  'room.join': {
    name: optional(string), roomId: optional(string), displayName: string, password: optional(string), token: optional(string),
    options: optional(changes), routedOnly: optional(boolean),
  },
  'room.leave': {},
  'room.admit': ofConnection,
  'room.deny': ofConnection,
  'room.set': { options: changes },
  'room.mute': ofOneOrAll,
  'room.stopShare': ofOneOrAll,
  'room.remove': { connectionId: string, ban: optional(boolean) },
  'room.role': { connectionId: string, role },
  'room.say': { text: string },
  'room.hand': { raised: boolean },
  'room.react': { reaction: string },
  'room.file': { name: string, size: integer },
  'room.removeFile': { fileId: string },
};

/** @type {Record<string, Members>} */
export const serverAboutRooms = {
  'room.joined': {
    re: optional(integer), name: string, roomId: optional(string), sessionId: string, token: string, role, options,
    people: list(object(person)), chat: list(object(line)), files: optional(object({ path: string, key: string, maxSize: integer })),
  },
  'room.waiting': { re: integer, name: string },
  'room.refused': { name: string, code: string, message: string },
  'room.knock': { connectionId: string, displayName: string, waiting: boolean },
  'room.changed': { options },
  'room.person': person,
  'room.said': line,
  'room.reacted': { connectionId: string, reaction: string },
  'room.upload': { re: integer, fileId: string, path: string, secret: string },
  'room.fileRemoved': { fileId: string },
  'room.ended': { name: string, reason: oneOf('removed', 'banned', 'closed', 'replaced') },
};
