// OpenTok's SDK for browsers in a page, and sessions of a room in memory.
import { makeOT } from '../../opentok/ot.js';
import { OpenTokSession } from '../../opentok/session.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeElement, installPage } from './fake-page.mjs';
import { FakeRoom } from './fake-room.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

/** @type {ReturnType<typeof installPage>} */
export let page;
/** @type {FakeRoom} */
export let room;

export const OT = makeOT('https://chat.example.org/v2/js/opentok.min.js');

/** A separate page and room for each test. */
export function begin() {
  page = installPage();
  Object.assign(globalThis.document, { createElementNS: (/** @type {string} */ _, /** @type {string} */ name) => new FakeElement(name) });
  room = new FakeRoom();
  FakePeerConnection.all = [];
  FakePeerConnection.network = true;
}

/** @param {(callback: (error?: any) => void) => void} call @returns {Promise<any>} the callback's argument */
export const called = (call) => new Promise((resolve) => call(resolve));

/** @param {string} id @param {{sessionId?: string, [option: string]: unknown}} [options] */
export function session(id, options = {}) {
  const { sessionId = '1_room', ...others } = options;
  return OpenTokSession.make('1', sessionId, /** @type {any} */ ({ client: room.client(id), rtc: fakeRtc, clock: new FakeClock(), ...others }));
}

/**
 * Two people in a session, one of whom watches the other.
 * @param {{mode?: 'relayed' | 'routed', iceConfig?: object}} [options]
 */
export async function watching(options = {}) {
  const { mode = 'relayed', ...others } = options;
  room.mediaMode = mode;
  const sessionId = mode === 'routed' ? '2_room' : '1_room';
  const [ann, ben] = ['a', 'b'].map((id) => session(id, { sessionId, ...others }));
  ann.connect('good');
  ben.connect('good');
  await settled();
  /** @type {any} */
  let stream;
  ben.on('streamCreated', (event) => { stream = event.stream; });
  const publisher = ann.publish(page.element(), { name: 'Ann' });
  await settled();
  const subscriber = ben.subscribe(stream, page.element());
  return { ann, ben, publisher, stream, subscriber };
}

/** @param {FakeElement} element @param {string} name @returns {any} the first element inside with this class */
export function part(element, name) {
  if (element.className.split(' ').includes(name)) return element;
  return element.children.map((child) => part(child, name)).find(Boolean);
}
