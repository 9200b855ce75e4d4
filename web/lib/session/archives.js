// The recordings and the live broadcasts of a session: which are running, whether this person was asked for consent, and what
// moderators may do.
import { OTEvent } from '../events.js';

/** @typedef {{[member: string]: any}} Message */

/** What recordings and broadcasts have in common: they start and stop, and may ask this person for consent. */
class Compositions {
  #dispatch;
  #answer;
  #name;
  /** Those that are running, by id. @type {Map<string, {name: string, consent: boolean}>} */
  #running = new Map();
  /** Whether this person has accepted or refused. */
  #hasAnswered = false;

  /**
   * @param {'archive' | 'broadcast'} name what they are called in messages and events
   * @param {(event: OTEvent) => void} dispatch emits an event of the session
   * @param {(accept: boolean) => Promise<unknown>} answer sends the answer to the question for consent
   */
  constructor(name, dispatch, answer) {
    this.#name = name;
    this.#dispatch = dispatch;
    this.#answer = answer;
  }

  /** Forgets all, because the client has left the session. */
  clear() {
    this.#running = new Map();
  }

  /**
   * Takes those of a session that was joined.
   * @param {Message[]} present
   * @returns {OTEvent[]} the events of those that have already started
   */
  present(present) {
    this.clear();
    this.#hasAnswered = false;
    for (const message of present) this.#add(message);
    return present.map((message) => this.#started(message));
  }

  /** @param {Message} message @returns {string} */
  #id(message) {
    return message[`${this.#name}Id`];
  }

  /** @param {Message} message */
  #add(message) {
    this.#running.set(this.#id(message), { name: message.name ?? '', consent: message.consent ?? false });
  }

  /**
   * Returns the event for one that has started. `consent` is ours: OpenTok does not ask.
   * @param {Message} message
   */
  #started(message) {
    const { name = '', consent = false } = message;
    return new OTEvent(`${this.#name}Started`, { id: this.#id(message), ...this.#name === 'archive' ? { name } : {}, consent });
  }

  /** @param {Message} message one that is about to begin */
  started(message) {
    if (this.#running.has(this.#id(message))) return;
    this.#add(message);
    this.#dispatch(this.#started(message));
  }

  /** @param {string} id one that has stopped */
  stopped(id) {
    const known = this.#running.get(id);
    if (!known) return;
    this.#running.delete(id);
    // The server forgets the answer too.
    if (this.#running.size === 0) this.#hasAnswered = false;
    this.#dispatch(new OTEvent(`${this.#name}Stopped`, { id, ...this.#name === 'archive' ? { name: known.name } : {} }));
  }

  /**
   * Sends the answer of this person. If that fails, the question remains.
   * @param {boolean} accept whether this person accepts to be in them
   */
  async consent(accept) {
    const before = this.#hasAnswered;
    this.#hasAnswered = true;
    try {
      await this.#answer(accept);
    } catch (error) {
      this.#hasAnswered = before;
      throw error;
    }
  }

  /** Whether this person should accept or refuse. */
  get asksConsent() {
    return !this.#hasAnswered && [...this.#running.values()].some(({ consent }) => consent);
  }

  /** The ids of those that are running. */
  get ids() {
    return [...this.#running.keys()];
  }
}

/** The recordings of a session. */
export class SessionArchives extends Compositions {
  /**
   * The output mode in which moderators may record the session; null if they may not.
   * @type {'composed' | 'individual' | null}
   */
  forModerators = null;

  /** @param {(event: OTEvent) => void} dispatch @param {(accept: boolean) => Promise<unknown>} answer */
  constructor(dispatch, answer) {
    super('archive', dispatch, answer);
  }

  /**
   * Takes the archives of a session that was joined.
   * @param {Message} message
   */
  joined({ archives = [], moderatorArchives = null }) {
    this.forModerators = moderatorArchives;
    return this.present(archives);
  }
}

/** The live broadcasts of a session. */
export class SessionBroadcasts extends Compositions {
  /** @param {(event: OTEvent) => void} dispatch @param {(accept: boolean) => Promise<unknown>} answer */
  constructor(dispatch, answer) {
    super('broadcast', dispatch, answer);
  }

  /**
   * Takes the broadcasts of a session that was joined.
   * @param {Message} message
   */
  joined({ broadcasts = [] }) {
    return this.present(broadcasts);
  }
}
