// The recordings of a session: which archives are running, whether this person was asked for consent, and what moderators may do.
import { OTEvent } from '../events.js';

/** @typedef {{[member: string]: any}} Message */

/**
 * Returns the event for a recording that has started. `consent` is ours: OpenTok does not ask.
 * @param {Message} archive
 */
const started = ({ archiveId, name = '', consent = false }) => new OTEvent('archiveStarted', { id: archiveId, name, consent });

export class SessionArchives {
  #dispatch;
  #answer;
  /** The archives into which the session is recorded, by id. @type {Map<string, {name: string, consent: boolean}>} */
  #running = new Map();
  /** Whether this person has accepted or refused to be recorded. */
  #hasAnswered = false;
  /**
   * The output mode in which moderators may record the session; null if they may not.
   * @type {'composed' | 'individual' | null}
   */
  forModerators = null;

  /**
   * @param {(event: OTEvent) => void} dispatch emits an event of the session
   * @param {(accept: boolean) => Promise<unknown>} answer sends the answer to the question for consent
   */
  constructor(dispatch, answer) {
    this.#dispatch = dispatch;
    this.#answer = answer;
  }

  /** Forgets the archives, because the client has left the session. */
  clear() {
    this.#running = new Map();
  }

  /**
   * Takes the archives of a session that was joined.
   * @param {Message} message
   * @returns {OTEvent[]} the events of the archives that have already started
   */
  joined({ archives = [], moderatorArchives = null }) {
    this.clear();
    this.#hasAnswered = false;
    this.forModerators = moderatorArchives;
    for (const archive of archives) this.#add(archive);
    return archives.map(started);
  }

  /** @param {Message} archive */
  #add({ archiveId, name = '', consent = false }) {
    this.#running.set(archiveId, { name, consent });
  }

  /** @param {Message} archive an archive that is about to record the session */
  started(archive) {
    if (this.#running.has(archive.archiveId)) return;
    this.#add(archive);
    this.#dispatch(started(archive));
  }

  /** @param {string} id an archive into which the session is no longer recorded */
  stopped(id) {
    const archive = this.#running.get(id);
    if (!archive) return;
    this.#running.delete(id);
    // The server forgets the answer too.
    if (this.#running.size === 0) this.#hasAnswered = false;
    this.#dispatch(new OTEvent('archiveStopped', { id, name: archive.name }));
  }

  /** @param {boolean} accept whether this person accepts to be recorded */
  async consent(accept) {
    this.#hasAnswered = true;
    await this.#answer(accept);
  }

  /** Whether this person should accept or refuse to be recorded. */
  get asksConsent() {
    return !this.#hasAnswered && [...this.#running.values()].some(({ consent }) => consent);
  }

  /** The ids of the archives into which the session is being recorded. */
  get ids() {
    return [...this.#running.keys()];
  }
}
