// People who visit rooms, each with a client of the same server.
import { OT } from '../../lib/ot.js';
import { Rooms } from '../../lib/rooms/rooms.js';
import { FakeClock } from './fake-clock.mjs';
import { FakeElement, installPage } from './fake-page.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';
import { MeetingServer } from './meeting-server.mjs';

/** @type {MeetingServer} */
export let server;
/** @type {FakeClock} */
export let clock;

/** A separate server, page and clock for each test. */
export function begin() {
  installPage();
  server = new MeetingServer();
  clock = server.clock = new FakeClock();
  FakePeerConnection.all = [];
  FakePeerConnection.network = true;
}

const names = [
  'changed', 'person', 'said', 'fileRemoved', 'reacted', 'knock', 'role', 'subscriber', 'subscriberGone', 'muted', 'unpublished', 'reconnecting', 'waiting',
  'reconnected', 'error', 'recovered', 'ended',
];

/** @param {string} id @param {object} [options] */
export function visitor(id, options = {}) {
  const client = server.client(id);
  const rooms = new Rooms(client, { rtc: /** @type {any} */ (fakeRtc), clock, random: () => 1, ...options });
  return { client, rooms, id };
}

/** @param {object} [options] */
export const camera = (options) => OT.initPublisher(/** @type {any} */ (new FakeElement('div')), { insertMode: 'append', ...options });

/**
 * Records the events of a room.
 * @param {import('../../lib/rooms/room.js').Room} room
 */
export function watch(room) {
  /** @type {[string, any][]} */
  const events = [];
  for (const name of names) room.on(name, (/** @type {any} */ event) => events.push([name, event]));
  return { events, names: () => events.map(([name]) => name), of: (/** @type {string} */ name) => events.filter(([one]) => one === name).map(([, event]) => event) };
}

/**
 * A person who is in a room, with a camera that is on.
 * @param {string} id
 * @param {import('../../lib/rooms/rooms.js').RoomRequest} [request]
 * @param {object} [options] of `Rooms`
 */
export async function inside(id, request = {}, options = {}) {
  const made = visitor(id, options);
  const joining = made.rooms.join({ name: 'Tea', displayName: id, ...request });
  const [room] = await Promise.all([joining, clock.advance(0)]);
  const publisher = camera();
  const watched = watch(room);
  room.publish(publisher);
  await clock.advance(0);
  return { ...made, room, publisher, watched };
}

/** @param {...string} ids of people who come into the room one after the other */
export async function allInside(...ids) {
  const people = [];
  for (const id of ids) people.push(await inside(id));
  return people;
}

/**
 * Returns the people whose video is seen.
 * @param {{room: import('../../lib/rooms/room.js').Room}} someone
 */
export const seenBy = ({ room }) => [...room.subscribers.values()].map(({ stream }) => stream.connection.connectionId).sort();
