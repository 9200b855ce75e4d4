// `People`: presence under a name, people nearby, and contacts. Invariant: the server has the most recently set values. If the
// server lost this person's presence, the SDK sends the presence again before any other request.

import { ConfabError, isRestart } from '../errors.js';
import { Emitter } from '../events.js';
import { NearbyPage } from './nearby-page.js';
import { Questions } from './questions.js';

/** @typedef {import('../signaling/messages.js').Message} Message */
/** @typedef {import('../signaling/people-messages.js').Appearance} Appearance */
/** @typedef {import('../signaling/people-messages.js').Self} Self */
/** @typedef {import('../signaling/people-messages.js').PersonInfo} PersonInfo */
/** @typedef {import('../signaling/people-messages.js').DeviceInfo} DeviceInfo */
/** @typedef {import('../signaling/people-messages.js').Meeting} Meeting */
/** @typedef {import('./nearby-page.js').Page} Page */
/** @typedef {{latitude: number, longitude: number, accuracy?: number}} Position */
/** @typedef {{unit: 'mi' | 'km', radius: number, after?: string, limit?: number}} Watch */

/** @type {WeakMap<People, Questions>} */
const questions = new WeakMap();

/** @param {People} people @returns {Questions} sends the requests of `people`, and those of `Calls` */
export function questionsOf(people) {
  return /** @type {Questions} */ (questions.get(people));
}

/**
 * Every method that sends a request returns a promise, which rejects with a `ConfabError`.
 *
 * Events: `self` (with the new value of `self`), `positionForgotten {}` (another device deleted the location),
 * `nearby` (a `Page`: after `watch`, on every change, and after a restart), `contactAsked {matchId?, callId?}` (the
 * other person of this chat or call wants to keep in touch), `contactAdded {person, matchId?, callId?}`,
 * `contactChanged {person}`, `contactRemoved {personId}`, `unlinked {}` and `deleted {}` (the client is `closed` next;
 * connecting creates a new person), `error {error}` (the server rejected a value that was sent again after a restart).
 */
export class People extends Emitter {
  #client;
  /**
   * The values that this client has set with `appear` and `set`; null if this person should be offline on this device.
   * @type {Appearance | null}
   */
  #said = null;
  /** @type {Position | null} */
  #position = null;
  /**
   * Counts deletions of the location. If it was deleted while a `move` request was pending, the request's location is
   * not stored for sending it again after a restart.
   */
  #forgotten = 0;
  /** @type {Watch | null} */
  #watch = null;
  /** @type {NearbyPage | null} */
  #page = null;
  #questions;
  /** @type {Promise<unknown>} settles when `presence.appear`, sent again on a new connection, was answered */
  #again = Promise.resolve();
  /** Whether `useLink` waits for the server's answer. */
  #isLinking = false;
  /**
   * This person's own values, as most recently sent by the server; null before that, or after this person was deleted
   * or this device unlinked.
   * @type {Self | null}
   */
  self = null;

  /** @param {import('../signaling/client.js').Client} client */
  constructor(client) {
    super();
    this.#client = client;
    this.#questions = new Questions(client);
    questions.set(this, this.#questions);
    client.on({
      connected: ({ resumed }) => { if (!resumed) this.#begin(); },
      expired: () => this.#questions.hold(),
      closed: () => this.#questions.release(),
      'message:presence.self': (message) => this.#reported(message),
      'message:presence.linked': () => this.#linked(),
      'message:presence.unlinked': () => this.#forget('unlinked'),
      'message:presence.deleted': () => this.#forget('deleted'),
      'message:nearby.list': (message) => this.#listed(new NearbyPage(message)),
      'message:nearby.changed': (message) => {
        this.#page?.apply(message);
        this.#listed(this.#page);
      },
      'message:contact.asked': (message) => this.emit('contactAsked', meeting(message)),
      'message:contact.added': (message) => this.emit('contactAdded', { person: message.person, ...meeting(message) }),
      'message:contact.changed': ({ person }) => this.emit('contactChanged', { person }),
      'message:contact.removed': ({ personId }) => this.emit('contactRemoved', { personId }),
    });
  }

  // ---- Presence

  /**
   * Goes online, or changes values. Omitted members keep their values.
   * @param {Appearance} [appearance]
   * @returns {Promise<Self>}
   */
  async appear(appearance = {}) {
    await this.#client.connect();
    return this.#say('presence.appear', appearance);
  }

  /**
   * Changes values while online; otherwise rejects with `not_present`. Omitted members keep their values.
   * @param {Appearance} appearance
   * @returns {Promise<Self>}
   */
  set(appearance) {
    return this.#say('presence.set', appearance);
  }

  /**
   * Takes this device offline; a call on it continues.
   * @returns {Promise<void>}
   */
  async leave() {
    this.#said = null;
    this.#stopWatching();
    await this.#questions.ask('presence.leave');
  }

  /** @param {string} personId @returns {Promise<PersonInfo>} rejects with `not_found` */
  async find(personId) {
    return (await this.#questions.ask('presence.find', { personId })).person;
  }

  /**
   * Blocks a person: the two people can no longer see, call or meet each other, and a call between them ends.
   * @param {string} personId
   * @returns {Promise<void>}
   */
  async block(personId) {
    await this.#questions.ask('presence.block', { personId });
  }

  /** @param {string} personId @returns {Promise<void>} */
  async unblock(personId) {
    await this.#questions.ask('presence.unblock', { personId });
  }

  /** @returns {Promise<PersonInfo[]>} */
  async blocked() {
    return (await this.#questions.ask('presence.blocked')).people;
  }

  // ---- Devices

  /**
   * Requests a code with which another device can be linked to this person.
   * @returns {Promise<{code: string, expiresInMs: number}>}
   */
  async makeLinkCode() {
    const { code, expiresInMs } = await this.#questions.ask('presence.link');
    return { code, expiresInMs };
  }

  /**
   * Links this device to the person who created the code. The connection is replaced in the process.
   * @param {string} code
   * @param {string} [label] the name of this device
   * @returns {Promise<Self | null>} the person's values; null if this device is not online
   */
  async useLink(code, label) {
    this.#isLinking = true;
    try {
      await this.#questions.ask('presence.useLink', { code, label }, false);
    } finally {
      this.#isLinking = false;
    }
    await this.#questions.released();
    await this.#again;
    if (this.#client.state === 'closed') {
      const message = 'This device was linked, but the connection was lost. Reload the page.';
      throw new ConfabError({ code: 'not_connected', message, retryable: true });
    }
    return this.#said ? this.self : null;
  }

  /** @returns {Promise<DeviceInfo[]>} */
  async devices() {
    return (await this.#questions.ask('presence.devices')).devices;
  }

  /** @param {string} deviceId @returns {Promise<void>} */
  async unlink(deviceId) {
    await this.#questions.ask('presence.unlink', { deviceId });
  }

  /**
   * Deletes all data that the server has stored about this person. This ends the account on all linked devices.
   * @returns {Promise<void>}
   */
  async deleteEverything() {
    let isReported = false;
    this.once('deleted', () => { isReported = true; });
    await this.#questions.ask('presence.delete', {}, false);
    if (!isReported) this.#forget('deleted');
  }

  // ---- Nearby

  /**
   * Sets the location at which this person is listed for people nearby.
   * @param {Position} position
   * @returns {Promise<void>}
   */
  async move({ latitude, longitude, accuracy }) {
    const position = { latitude, longitude, accuracy };
    const turn = this.#forgotten;
    await this.#questions.ask('nearby.move', position);
    if (turn === this.#forgotten) this.#position = position;
  }

  /**
   * Deletes this person's location on the server. This also stops watching the people nearby.
   * @returns {Promise<void>}
   */
  async forgetPosition() {
    this.#dropPosition();
    await this.#questions.ask('nearby.forget');
  }

  /**
   * Watches one page of the people nearby, instead of the page that was watched before. Changes to the page arrive as
   * `nearby` events.
   * @param {Watch} watch
   * @returns {Promise<Page>}
   */
  async watch({ unit, radius, after, limit }) {
    const former = this.#watch;
    const watch = this.#watch = { unit, radius, after, limit };
    try {
      return new NearbyPage(await this.#questions.ask('nearby.watch', watch)).value;
    } catch (error) {
      if (this.#watch === watch) this.#watch = former;
      throw error;
    }
  }

  /** @returns {Promise<void>} */
  async unwatch() {
    this.#stopWatching();
    await this.#questions.ask('nearby.unwatch');
  }

  // ---- Contacts

  /**
   * Offers to keep in touch with the partner of a chat or call. If both people do this, they become contacts.
   * @param {Meeting} meeting
   * @returns {Promise<void>}
   */
  async keep({ matchId, callId }) {
    await this.#questions.ask('contact.keep', { matchId, callId });
  }

  /** @returns {Promise<PersonInfo[]>} */
  async contacts() {
    return (await this.#questions.ask('contact.list')).people;
  }

  /** @param {string} personId @returns {Promise<void>} */
  async removeContact(personId) {
    await this.#questions.ask('contact.remove', { personId });
  }

  // ---- Data export

  /**
   * The URL for exporting this person's data. The request needs `Authorization: Bearer` with the client's
   * `credential`.
   */
  get exportUrl() {
    return this.#client.urlOf('/v1/person');
  }

  /** @returns {Promise<Blob>} JSON of all data that the server has about this person */
  async export() {
    const { credential } = this.#client;
    if (credential === undefined) {
      throw new ConfabError({ code: 'not_connected', message: 'This client has no identity on the server yet. Call connect() first.' });
    }
    /** @type {Response} */
    let response;
    try {
      response = await fetch(this.exportUrl, { headers: { Authorization: `Bearer ${credential}` }, cache: 'no-store' });
    } catch (cause) {
      const message = 'The server cannot be reached. Check your connection and try again.';
      throw new ConfabError({ code: 'connect_failed', message, retryable: true, cause });
    }
    if (response.ok) return response.blob();
    throw ConfabError.fromWire(await response.json().catch(() => ({
      code: `http_${response.status}`, message: 'The server rejected the download. Try again later.', retryable: true,
    })));
  }

  // ----

  /** @param {string} type @param {Appearance} appearance @returns {Promise<Self>} */
  async #say(type, appearance) {
    const answer = await this.#questions.ask(type, { ...appearance });
    this.#said = { ...this.#said, ...appearance };
    return ownOf(answer);
  }

  /** @param {Message} message */
  #reported(message) {
    const isForgotten = message.re === undefined && !message.hasPosition
      && (this.#position !== null || this.#watch !== null || this.self?.hasPosition);
    this.self = ownOf(message);
    // Another device changed this person's values. Store the new ones, in case they must be sent again.
    if (message.re === undefined && this.#said) {
      const known = Object.keys(this.#said);
      this.#said = Object.fromEntries(Object.entries(this.self).filter(([name]) => known.includes(name)));
    }
    if (isForgotten) this.#dropPosition();
    this.emit('self', this.self);
    if (isForgotten) this.emit('positionForgotten');
  }

  /**
   * Starts a new connection if this client requested the link: this device now belongs to another person, so the
   * server closes the current connection next.
   */
  #linked() {
    if (!this.#isLinking) return;
    // This device now belongs to a person who already has a name and settings. Discard the old ones, but stay online.
    if (this.#said) this.#said = {};
    this.#client.startOver();
  }

  /**
   * Handles a new connection, for which the server has no presence, location or watched page: if this person was
   * online, sends them again. Then sends the waiting requests.
   */
  #begin() {
    if (this.#said) {
      // Send the settings only for a new person, who has none yet. Otherwise the server has stored them, and another
      // device may have changed them in the meantime.
      const isNew = this.#client.welcome?.identity !== undefined;
      this.#again = this.#sayAgain('presence.appear', isNew ? this.#said : {});
      if (this.#position) this.#sayAgain('nearby.move', this.#position);
      if (this.#watch) this.#sayAgain('nearby.watch', this.#watch);
    }
    this.#questions.release();
  }

  /** @param {string} type @param {object} members @returns {Promise<void>} */
  async #sayAgain(type, members) {
    try {
      await this.#client.request(type, { ...members });
    } catch (error) {
      // Ignore the error if the values are sent again with the next connection, or if the client is closed.
      if (!isRestart(error) && this.#client.state !== 'closed') this.emit('error', { error });
    }
  }

  /** @param {NearbyPage | null} page */
  #listed(page) {
    // Ignore a page that is no longer watched.
    if (!page || !this.#watch) return;
    this.#page = page;
    this.emit('nearby', page.value);
  }

  #dropPosition() {
    this.#forgotten += 1;
    this.#position = null;
    this.#stopWatching();
  }

  #stopWatching() {
    this.#watch = null;
    this.#page = null;
  }

  /**
   * Forgets this person's state, because this client was unlinked or the person was deleted.
   * @param {'unlinked' | 'deleted'} event
   */
  #forget(event) {
    this.#said = null;
    this.#dropPosition();
    this.self = null;
    this.emit(event);
  }
}

/** @param {Message} message @returns {Self} */
function ownOf({ personId, name, visible, doNotDisturb, ringable, hasPosition }) {
  return { personId, name, visible, doNotDisturb, ringable, hasPosition };
}

/** @param {Message} message @returns {Meeting} */
function meeting({ matchId, callId }) {
  return matchId === undefined ? { callId } : { matchId };
}
