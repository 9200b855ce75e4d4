// `People`: being there for others under a name, who is within reach, and who is a contact. Its one invariant: what was said
// last is what the server knows. Should the server have forgotten us, it is told again before anything else is asked.

import { ConfabError, isRestart } from '../errors.js';
import { Emitter } from '../events.js';
import { NearbyPage } from './nearby-page.js';
import { Questions } from './questions.js';

/** @typedef {import('../line/messages.js').Message} Message */
/** @typedef {import('../line/people-messages.js').Appearance} Appearance */
/** @typedef {import('../line/people-messages.js').Self} Self */
/** @typedef {import('../line/people-messages.js').PersonInfo} PersonInfo */
/** @typedef {import('../line/people-messages.js').DeviceInfo} DeviceInfo */
/** @typedef {import('../line/people-messages.js').Meeting} Meeting */
/** @typedef {import('./nearby-page.js').Page} Page */
/** @typedef {{latitude: number, longitude: number, accuracy?: number}} Position */
/** @typedef {{unit: 'mi' | 'km', radius: number, after?: string, limit?: number}} Watch */

/** @type {WeakMap<People, Questions>} */
const questions = new WeakMap();

/** @param {People} people @returns {Questions} through which the SDK's other parts ask, too */
export function questionsOf(people) {
  return /** @type {Questions} */ (questions.get(people));
}

/**
 * Every method that asks the server returns a promise, which rejects with a `ConfabError`.
 *
 * Events: `self` (the new `self`), `positionForgotten {}` (on another device), `nearby` (a `Page`: after `watch`, with every
 * change, and after a restart), `contactAsked {matchId?, callId?}`, `contactAdded {person, matchId?, callId?}`, `contactChanged {person}`,
 * `contactRemoved {personId}`, `unlinked {}` and `deleted {}` (the client is `closed` next; connecting begins as somebody
 * else), `error {error}` (what was said again after a restart was refused).
 */
export class People extends Emitter {
  #client;
  /** @type {Appearance | null} what was said of us; null: we are not there */
  #said = null;
  /** @type {Position | null} */
  #position = null;
  /** How often a position was forgotten: a move that was under way then is not said again. */
  #forgotten = 0;
  /** @type {Watch | null} */
  #watch = null;
  /** @type {NearbyPage | null} */
  #page = null;
  #questions;
  /** @type {Promise<unknown>} what was said again last */
  #again = Promise.resolve();
  #isLinking = false;
  /**
   * How we are there, as the server said last.
   * @type {Self | null}
   */
  self = null;

  /** @param {import('../line/client.js').Client} client */
  constructor(client) {
    super();
    this.#client = client;
    this.#questions = new Questions(client);
    questions.set(this, this.#questions);
    client.on({
      connected: ({ resumed }) => { if (!resumed) this.#begin(); },
      expired: () => this.#questions.hold(),
      closed: () => this.#questions.release(),
      'message:presence.self': (message) => this.#told(message),
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

  // ---- Being there

  /**
   * What is left out stays as it is.
   * @param {Appearance} [appearance]
   * @returns {Promise<Self>}
   */
  async appear(appearance = {}) {
    await this.#client.connect();
    return this.#say('presence.appear', appearance);
  }

  /** @param {Appearance} appearance @returns {Promise<Self>} */
  set(appearance) {
    return this.#say('presence.set', appearance);
  }

  /**
   * This device is not there any more; a call on it goes on.
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
   * Whom the other may not see, ring or meet any more; a call with them ends.
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
   * A code by which another device becomes ours.
   * @returns {Promise<{code: string, expiresInMs: number}>}
   */
  async makeLinkCode() {
    const { code, expiresInMs } = await this.#questions.ask('presence.link');
    return { code, expiresInMs };
  }

  /**
   * This device becomes that of whoever made the code. The line begins anew meanwhile.
   * @param {string} code
   * @param {string} [label] what to call this device
   * @returns {Promise<Self | null>} null when we were not there
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
      const message = 'This device is linked, but the connection ended. Reload the page.';
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
   * Everything the server holds of us is gone, on all devices.
   * @returns {Promise<void>}
   */
  async deleteEverything() {
    let isTold = false;
    this.once('deleted', () => { isTold = true; });
    await this.#questions.ask('presence.delete', {}, false);
    if (!isTold) this.#forget('deleted');
  }

  // ---- Nearby

  /** @param {Position} position @returns {Promise<void>} */
  async move({ latitude, longitude, accuracy }) {
    const position = { latitude, longitude, accuracy };
    const turn = this.#forgotten;
    await this.#questions.ask('nearby.move', position);
    if (turn === this.#forgotten) this.#position = position;
  }

  /**
   * Nobody finds us nearby any more.
   * @returns {Promise<void>}
   */
  async forgetPosition() {
    this.#dropPosition();
    await this.#questions.ask('nearby.forget');
  }

  /**
   * Looks at one page of the people nearby; `nearby` says what becomes of it.
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
   * Says that we would like to stay in touch with the other of a chat or a call.
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

  // ---- Everything held

  /** It wants `Authorization: Bearer` and our identity's secret. */
  get exportUrl() {
    return this.#client.urlOf('/v1/person');
  }

  /** @returns {Promise<Blob>} JSON of everything the server holds of us */
  async export() {
    const { credential } = this.#client;
    if (credential === undefined) {
      throw new ConfabError({ code: 'not_connected', message: 'Nothing is held of you yet. Call connect() first.' });
    }
    /** @type {Response} */
    let response;
    try {
      response = await fetch(this.exportUrl, { headers: { Authorization: `Bearer ${credential}` }, cache: 'no-store' });
    } catch (cause) {
      const message = 'The server cannot be reached. Check the connection and try again.';
      throw new ConfabError({ code: 'connect_failed', message, retryable: true, cause });
    }
    if (response.ok) return response.blob();
    throw ConfabError.fromWire(await response.json().catch(() => ({
      code: `http_${response.status}`, message: 'The server did not hand it out. Try again later.', retryable: true,
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
  #told(message) {
    const isForgotten = message.re === undefined && !message.hasPosition
      && (this.#position !== null || this.#watch !== null || this.self?.hasPosition);
    this.self = ownOf(message);
    // Said on another device: it is not for this one to say otherwise later.
    if (message.re === undefined && this.#said) {
      const known = Object.keys(this.#said);
      this.#said = Object.fromEntries(Object.entries(this.self).filter(([name]) => known.includes(name)));
    }
    if (isForgotten) this.#dropPosition();
    this.emit('self', this.self);
    if (isForgotten) this.emit('positionForgotten');
  }

  /** Before the server closes the line, which it does next. */
  #linked() {
    if (!this.#isLinking) return;
    // The person that we are from now on has a name and wishes already.
    if (this.#said) this.#said = {};
    this.#client.startOver();
  }

  /** The server welcomed us as somebody it does not know, or not any more. */
  #begin() {
    if (this.#said) {
      // It keeps what a person chose, and another device may have chosen otherwise while we were away. A newcomer has
      // chosen nothing yet.
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
      // Another try is on its way already, or there is nobody to try any more.
      if (!isRestart(error) && this.#client.state !== 'closed') this.emit('error', { error });
    }
  }

  /** @param {NearbyPage | null} page */
  #listed(page) {
    // An answer to what is not wanted any more.
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
   * We are not who we were.
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
