// People who call each other in a room, and the events they get.
import assert from 'node:assert/strict';
import { OT } from '../../lib/ot.js';
import { Calls } from '../../lib/people/calls.js';
import { People } from '../../lib/people/people.js';
import { CallRoom } from './call-room.mjs';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeElement, installPage } from './fake-page.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

/** @type {CallRoom} */
export let room;
/** @type {FakeClock} */
export let clock;
/** @type {ReturnType<typeof installPage>} */
export let page;

/** A separate room, page and clock for each test. */
export function begin() {
  page = installPage();
  room = new CallRoom();
  clock = new FakeClock();
  FakePeerConnection.all = [];
}

export const element = () => /** @type {any} */ (new FakeElement('div'));
export const camera = (options = {}) => OT.initPublisher(element(), { insertMode: 'append', ...options });
/** @param {Promise<unknown>} promise @returns {Promise<any>} */
export const rejection = (promise) => promise.then(() => assert.fail('it was not rejected'), (error) => error);
/** Waits long enough for two clients to negotiate. */
export const quiet = async () => { for (let round = 0; round < 4; round += 1) await settled(); };

/** @param {string} id */
export function device(id) {
  const client = room.client(id);
  const people = new People(client);
  const target = element();
  const calls = new Calls(client, people, { rtc: fakeRtc, clock, subscriberTarget: target, subscriberOptions: { insertMode: 'append' } });
  /** @type {import('../../lib/people/call.js').Call[]} */
  const rung = [];
  /** @type {any[]} */
  const reported = [];
  calls.on('incoming', (call) => rung.push(/** @type {any} */ (call)));
  calls.on('ended', (event) => reported.push(event));
  return { client, people, calls, target, rung, reported };
}

/** @param {import('../../lib/people/call.js').Call} call returns the recorded events of this call */
export function watched(call) {
  /** @type {any[]} */
  const events = [];
  for (const name of ['stream', 'subscriber', 'error', 'ended']) call.on(name, (event) => events.push([name, event]));
  /** @type {string[]} */
  const states = [call.state];
  call.on('change', () => { if (states[states.length - 1] !== call.state) states.push(call.state); });
  return { call, events, states, names: () => events.map(([name]) => name), ending: () => events.find(([name]) => name === 'ended')?.[1] };
}

/** Ann calls Ben, whose device rings. */
export async function ringing({ video = true, devices = ['ben'] } = {}) {
  const ann = device('ann');
  const bens = devices.map(device);
  const annCamera = camera();
  const mine = watched(ann.calls.start('ben', { video, publisher: annCamera }));
  await quiet();
  return { ann, ben: bens[0], bens, annCamera, mine, theirs: bens.map(({ rung }) => watched(rung[0])) };
}

/** Ann calls Ben, who accepts. */
export async function talking(options = {}) {
  const made = await ringing(options);
  const benCamera = camera();
  await made.theirs[0].call.accept({ video: true, publisher: benCamera });
  await quiet();
  return { ...made, benCamera };
}

/** @param {any} target returns what this element shows */
export const shown = (target) => target.children[0]?.children[0].children[0].srcObject;

