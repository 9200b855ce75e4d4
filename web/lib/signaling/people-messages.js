// The messages about people: presence, nearby, calls, contacts and push (protocol §10 to §14). Part of the table in
// `messages.js`.

import { boolean, integer, list, number, object, oneOf, optional, string } from './kinds.js';

/** @typedef {import('./kinds.js').Members} Members */
/** @typedef {'everyone' | 'contacts' | 'nobody'} Ringable */
/** @typedef {{name?: string, visible?: boolean, doNotDisturb?: boolean, ringable?: Ringable}} Appearance */
/**
 * @typedef {{personId: string, name: string, visible: boolean, doNotDisturb: boolean, ringable: Ringable,
 *   hasPosition: boolean}} Self
 */
/** @typedef {{personId: string, name: string, online: boolean}} PersonInfo */
/** @typedef {{deviceId: string, label: string, current: boolean, present: boolean, linkedAt?: number}} DeviceInfo */
/** @typedef {'mi' | 'km'} DistanceUnit */
/** @typedef {{personId: string, name: string, distance: number, busy: boolean}} NearbyRow */
/** @typedef {'outgoing' | 'incoming'} CallDirection */
/** @typedef {typeof outcomes[number]} CallOutcome */
/**
 * @typedef {{type: 'call.accepted', re?: number, callId: string, person: PersonInfo, video: boolean, withVideo: boolean,
 *   since: number, sessionId: string, token: string, mediaMode: 'relayed' | 'routed'}} Accepted
 */
/**
 * @typedef {{type: 'call.ended', callId: string, reason: CallOutcome, direction: CallDirection, person: PersonInfo,
 *   video: boolean, at: number, durationMs?: number, into?: string}} Ended
 */
/**
 * @typedef {{callId: string, direction: CallDirection, outcome: CallOutcome, person: PersonInfo, video: boolean, at: number,
 *   durationMs?: number, seen: boolean}} LoggedCall
 */
/** @typedef {{matchId: string, callId?: undefined} | {callId: string, matchId?: undefined}} Meeting */

/** How a call can end, from the point of view of the person who gets the message. */
export const outcomes = /** @type {const} */ ([
  'hungUp', 'ended', 'declined', 'cancelled', 'missed', 'unanswered', 'busy', 'unreachable', 'failed', 'connectionLost',
  'answeredElsewhere', 'declinedElsewhere', 'merged',
]);

const ringable = oneOf('everyone', 'contacts', 'nobody');
const unit = oneOf('mi', 'km');
const outcome = oneOf(...outcomes);
const direction = oneOf('outgoing', 'incoming');
const person = object({ personId: string, name: string, online: boolean });
const device = object({
  deviceId: string, label: string, current: boolean, present: boolean, linkedAt: optional(integer),
});
const row = object({ personId: string, name: string, distance: integer, busy: boolean });

const appearance = {
  name: optional(string), visible: optional(boolean), doNotDisturb: optional(boolean), ringable: optional(ringable),
};
const ofPerson = { personId: string };
const ofCall = { callId: string };
const answer = { callId: string, video: boolean };
const meeting = { matchId: optional(string), callId: optional(string) };

/** The member of the snapshot that describes the call on this device. */
export const callState = object({ callId: string, state: oneOf('ringing', 'active') });

/** @type {Record<string, Members>} */
export const clientAboutPeople = {
  'presence.appear': appearance,
  'presence.set': appearance,
  'presence.leave': {},
  'presence.find': ofPerson,
  'presence.link': {},
  'presence.useLink': { code: string, label: optional(string) },
  'presence.devices': {},
  'presence.unlink': { deviceId: string },
  'presence.delete': {},
  'presence.block': ofPerson,
  'presence.unblock': ofPerson,
  'presence.blocked': {},
  'nearby.move': { latitude: number, longitude: number, accuracy: optional(number) },
  'nearby.forget': {},
  'nearby.watch': { unit, radius: integer, after: optional(string), limit: optional(integer) },
  'nearby.unwatch': {},
  'call.start': { personId: string, video: boolean },
  'call.accept': answer,
  'call.decline': ofCall,
  'call.cancel': ofCall,
  'call.end': ofCall,
  'call.update': answer,
  'call.rejoin': ofCall,
  'call.seen': ofCall,
  'call.log': { before: optional(string), limit: optional(integer) },
  'call.forget': { callId: optional(string) },
  'contact.keep': meeting,
  'contact.list': {},
  'contact.remove': ofPerson,
  'push.register': {
    kind: oneOf('web', 'apns'), endpoint: string, p256dh: optional(string), auth: optional(string), sandbox: optional(boolean),
  },
  'push.unregister': { endpoint: string },
};

const ending = { person, video: boolean, at: integer, durationMs: optional(integer) };

/** @type {Record<string, Members>} */
export const serverAboutPeople = {
  'presence.self': {
    re: optional(integer), personId: string, name: string, visible: boolean, doNotDisturb: boolean, ringable, hasPosition: boolean,
  },
  'presence.person': { re: integer, person },
  'presence.linkCode': { re: integer, code: string, expiresInMs: integer },
  'presence.linked': { re: integer, personId: string },
  'presence.unlinked': {},
  'presence.deleted': {},
  'presence.devices': { re: integer, devices: list(device) },
  'presence.blocked': { re: integer, people: list(person) },
  'nearby.list': { re: integer, unit, radius: integer, people: list(row), next: optional(string) },
  'nearby.changed': {
    people: list(row), gone: optional(list(string)), order: optional(list(string)), next: optional(string),
  },
  'call.placed': { re: optional(integer), callId: string, person, video: boolean, expiresInMs: integer },
  'call.ringing': { callId: string, devices: integer },
  'call.incoming': {
    re: optional(integer), callId: string, person, video: boolean, waiting: boolean, expiresInMs: integer,
  },
  'call.accepted': {
    re: optional(integer), callId: string, person, video: boolean, withVideo: boolean, since: integer, sessionId: string,
    token: string, mediaMode: oneOf('relayed', 'routed'),
  },
  'call.changed': answer,
  'call.partner': { callId: string, state: oneOf('reconnecting', 'connected') },
  'call.ended': { callId: string, reason: outcome, direction, ...ending, into: optional(string) },
  'call.log': {
    re: integer, next: optional(string), calls: list(object({ callId: string, direction, outcome, ...ending, seen: boolean })),
  },
  'contact.asked': meeting,
  'contact.added': { person, ...meeting },
  'contact.list': { re: integer, people: list(person) },
  'contact.changed': { person },
  'contact.removed': ofPerson,
};
