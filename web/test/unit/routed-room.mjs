// A room with routed sessions, its page, and its clients.
import assert from 'node:assert/strict';
import { OT } from '../../lib/ot.js';
import { SessionCore } from '../../lib/session/core.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeElement, installPage } from './fake-page.mjs';
import { FakeRoom } from './fake-room.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

/** @type {FakeRoom} */
export let room;
/** @type {FakeClock} */
export let clock;

/** A separate room, page and clock for each test. */
export function begin() {
  installPage();
  room = new FakeRoom();
  clock = room.clock = new FakeClock();
  room.mediaMode = 'routed';
  FakePeerConnection.all = [];
  FakePeerConnection.network = true;
}

/** @param {string} id */
export async function joined(id, client = room.client(id), sessionId = '2_room') {
  const core = new SessionCore('1', sessionId, { client, rtc: fakeRtc, clock });
  const { session } = core;
  /** @type {any[]} */
  const events = [];
  for (const name of ['streamCreated', 'streamDestroyed', 'mediaFault', 'activeSpeakerChanged']) session.on(name, (event) => events.push(event));
  session.connect('good');
  await settled();
  return { client, core, session, events };
}

const element = () => /** @type {any} */ (new FakeElement('div'));

/** @param {object} [options] */
export const publisherOf = (options) => OT.initPublisher(element(), { insertMode: 'append', ...options });

/** @param {any} session @param {any} stream @param {object} [options] */
export function subscribe(session, stream, options) {
  const target = element();
  const subscriber = session.subscribe(stream, target, { insertMode: 'append', ...options });
  /** @type {any[]} */
  const events = [];
  for (const name of ['connected', 'disconnected', 'videoDisabled', 'videoEnabled']) {
    subscriber.on(name, (/** @type {any} */ { type, reason }) => events.push(reason ? `${type} ${reason}` : type));
  }
  const video = () => target.children[0]?.children[0].children[0];
  return { subscriber, events, video: video(), media: () => video()?.srcObject };
}

/** Two clients in a session, one of which publishes to the other. */
export async function watching() {
  const [ann, ben] = [await joined('a'), await joined('b')];
  const publisher = publisherOf();
  ann.session.publish(publisher);
  await settled();
  const { stream } = ben.events.find(({ type }) => type === 'streamCreated');
  const watch = subscribe(ben.session, stream);
  await settled();
  return { ann, ben, publisher, stream, watch };
}

/** Two clients in a session, one of which watches the other's playing video. */
export async function seeing() {
  const made = await watching();
  room.flow(made.stream.streamId);
  await clock.advance(20);
  assert.deepEqual(made.watch.events, ['connected']);
  return made;
}

export const connections = () => FakePeerConnection.all.filter(({ connectionState }) => connectionState !== 'closed');
/** @param {any} media */
export const kinds = (media) => media?.getTracks().map((/** @type {any} */ { kind }) => kind);
/** @param {any} client @returns {any[]} */
export const sending = (client) => client.sides.send.transceivers.map((/** @type {any} */ { sender }) => sender.track?.kind ?? null);
