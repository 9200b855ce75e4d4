// `Roulette`: chats with random strangers. Requests partners from the server and makes a `Match` for each of them. Invariant:
// there is at most one match, which is the server's current match. The publisher outlives all matches.

import { ConfabError, isRestart } from '../errors.js';
import { Emitter } from '../events.js';
import { sourceOf } from '../session/publisher.js';
import { Match } from './match.js';

/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/** @typedef {{mode?: 'video' | 'text', interests?: string[], name?: string}} Search */
/** @typedef {'idle' | 'waiting' | 'matched'} RouletteState */

/** Reasons for the end of a match after which the server does not search for another partner (protocol §5). */
const finalReasons = ['stopped', 'banned'];

/**
 * Prevents the default action of `streamDestroyed`, which would destroy the publisher.
 * @param {any} event
 */
const keepPreview = (event) => event.preventDefault();

/**
 * Events: `waiting {retryAfterMs?}` (with `retryAfterMs`, after frequent quick skips: the search begins after this
 * time), `matched {matchId, mode, partner, textChat}`, `partner {matchId, state}`, `ended {matchId, reason}` (the
 * server's reasons, and `connectionLost`), `warning {matchId?, source, ends, text?}` (the operator or their program warns this person, also
 * outside of a chat), `blur {matchId, whose, blurred}` (show the partner's video blurred, or tell the person that theirs is), `chat {text, mine}`, `typing {typing}`, `subscriber {subscriber}` (created,
 * not playing yet), `noStream {matchId}`, `recovered {}` (the search continues after a restart), `error {error}`.
 */
export class Roulette extends Emitter {
  #client;
  #options;
  /** @type {RouletteState} */
  #state = 'idle';
  /** @type {Search | null} the parameters of the search; null while there is no search */
  #search = null;
  /** @type {Match | null} */
  #match = null;
  /** @type {string | undefined} the id of the most recent match, which can be reported after its end */
  #lastMatchId;
  /** @type {Publisher | null} */
  #publisher = null;
  /** The number of requests to start that are not answered. */
  #starting = 0;

  /** @param {import('../signaling/client.js').Client} client @param {import('./match.js').MatchOptions} [options] */
  constructor(client, options = {}) {
    super();
    this.#client = client;
    this.#options = options;
    client.on({
      connected: () => this.#prepare(),
      'message:roulette.waiting': ({ retryAfterMs }) => this.#waiting(retryAfterMs),
      'message:roulette.matched': (matched) => this.#matched(matched),
      'message:roulette.partner': ({ matchId, state }) => {
        if (matchId === this.#match?.matchId) this.emit('partner', { matchId, state });
      },
      'message:roulette.ended': ({ matchId, reason }) => this.#ended(matchId, reason),
      'message:roulette.warning': ({ matchId, source, ends, text }) => {
        // The chat ends, and the person decides whether to search again.
        if (ends && matchId === this.#match?.matchId) this.#search = null;
        this.emit('warning', { matchId, source, ends, text });
      },
      'message:roulette.blur': ({ matchId, whose, blurred }) => {
        if (matchId === this.#match?.matchId) this.emit('blur', { matchId, whose, blurred });
      },
      // This error, if it answers no request, means that another tab or a call has replaced this device in the
      // roulette.
      'message:error': (message) => {
        if (message.re === undefined && message.code === 'elsewhere' && message.at === undefined && this.#search) this.#searchEnded(ConfabError.fromWire(message));
      },
      expired: () => this.#lost(),
      restarted: () => this.#recover(),
      closed: () => {
        this.#search = null;
        this.#lost();
      },
    });
  }

  get state() {
    return this.#state;
  }

  /** The current match; null if there is none. */
  get match() {
    return this.#match;
  }

  /**
   * Sets the publisher for the current match and all later ones; null sends nothing.
   * @param {Publisher | null} publisher
   */
  usePublisher(publisher) {
    if (this.#publisher === publisher) return;
    const old = this.#publisher;
    this.#publisher = publisher;
    publisher?.on('streamDestroyed', keepPreview);
    this.#prepare();
    // Without a publisher, the next chat is probably a text chat, which needs no media connection.
    if (!publisher && old && !this.#match && this.#isRouted) this.#client.media.close();
    this.#match?.usePublisher(publisher);
    old?.off('streamDestroyed', keepPreview);
  }

  /**
   * Starts to search for a partner. After each match the search continues, until `stop`.
   * @param {Search} [search]
   * @returns {Promise<void>}
   */
  async start(search = {}) {
    this.#search = search;
    try {
      await this.#client.connect();
      this.#prepare();
      await this.#ask(search);
    } catch (error) {
      // The search resumes automatically; see `#recover`.
      if (isRestart(error)) return;
      if (this.#search === search && this.#state === 'idle') this.#search = null;
      throw error;
    }
  }

  /** @param {Search} search */
  async #ask(search) {
    this.#starting += 1;
    try {
      await this.#client.request('roulette.start', members(search));
    } finally {
      this.#starting -= 1;
    }
  }

  /**
   * Skips to the next partner.
   * @returns {Promise<void>}
   */
  next() {
    return this.#away('roulette.next', { matchId: this.#match?.matchId }, 'next');
  }

  /** @returns {Promise<void>} */
  async stop() {
    this.#search = null;
    if (this.#client.state === 'idle' || this.#client.state === 'closed') return;
    await this.#away('roulette.stop', {}, 'stopped');
    this.#endMatch('stopped');
    if (this.#search === null) this.#state = 'idle';
  }

  /**
   * Reports a partner to the operators.
   * @param {string} reason
   * @param {string} [matchId] by default the id of the current or most recent match
   * @returns {Promise<void>}
   */
  async report(reason, matchId = this.#match?.matchId ?? this.#lastMatchId) {
    await this.#client.request('roulette.report', { reason, matchId });
  }

  /**
   * Blocks a partner for good. If it is the current partner, the match ends and the search continues.
   * @param {string} [matchId] by default the id of the current or most recent match
   * @returns {Promise<void>}
   */
  block(matchId = this.#match?.matchId ?? this.#lastMatchId) {
    return this.#away('roulette.block', { matchId }, 'blocked', matchId);
  }

  /** @param {string} text @returns {Promise<void>} */
  sendChat(text) {
    if (this.#match) return this.#match.sendChat(text);
    const message = 'You have no partner. Wait for the next one.';
    return Promise.reject(new ConfabError({ code: 'not_matched', message }));
  }

  /**
   * Notifies the partner whether the user is typing. Call this with true on every key press: not every call sends a
   * notification.
   * @param {boolean} typing
   */
  setTyping(typing) {
    this.#match?.setTyping(typing);
  }

  /** @returns {Promise<{online: number, waiting: number}>} */
  async count() {
    const { online, waiting } = await this.#client.request('roulette.count');
    return { online, waiting };
  }

  /**
   * Sends a request that ends a match. If it is the current match and the server cannot be reached, ends the match on
   * this device immediately, because media between two browsers needs no server and would continue.
   * @param {string} verb
   * @param {Record<string, unknown>} members
   * @param {string} reason
   * @param {string} [matchId] the match that ends
   */
  async #away(verb, members, reason, matchId = this.#match?.matchId) {
    if (this.#client.state !== 'connected' && matchId === this.#match?.matchId) this.#endMatch(reason);
    try {
      await this.#client.request(verb, members);
    } catch (error) {
      if (!isRestart(error)) throw error;
    }
  }

  /** @param {number | undefined} retryAfterMs */
  #waiting(retryAfterMs) {
    if (this.#search === null) return;
    // The end of the match is usually reported earlier. If not, end the match now.
    this.#endMatch('partnerLeft');
    this.#state = 'waiting';
    this.emit('waiting', retryAfterMs === undefined ? {} : { retryAfterMs });
  }

  /** @param {import('../signaling/messages.js').Matched} matched */
  #matched(matched) {
    // The user stopped in the meantime. The end of this match is on its way.
    if (this.#search === null) return;
    this.#endMatch('partnerLeft');
    const match = new Match(matched, this.#client, this.#publisher, this.#options, (name, payload) => this.emit(name, payload));
    this.#match = match;
    this.#lastMatchId = match.matchId;
    this.#state = 'matched';
    const { matchId, mode, partner, textChat } = match;
    this.emit('matched', { matchId, mode, partner, textChat });
    // A handler may have called `next` already.
    if (this.#match === match) match.begin();
  }

  /** @param {string} matchId @param {string} reason */
  #ended(matchId, reason) {
    if (reason === 'banned') this.#search = null;
    // This match has already ended on this device.
    if (matchId !== this.#match?.matchId) return;
    this.#state = finalReasons.includes(reason) ? 'idle' : 'waiting';
    this.#endMatch(reason);
  }

  /** @param {string} reason */
  #endMatch(reason) {
    const match = this.#match;
    if (!match) return;
    this.#match = null;
    if (this.#state === 'matched') this.#state = finalReasons.includes(reason) ? 'idle' : 'waiting';
    match.end(reason === 'connectionLost');
    this.emit('ended', { matchId: match.matchId, reason });
  }

  /** If the server carries the media, connects to it before there is a partner, so that the first partner appears sooner. */
  #prepare() {
    if (!this.#isRouted || !this.#publisher || this.#search?.mode === 'text') return;
    this.#client.media.prepare(sourceOf(this.#publisher));
  }

  get #isRouted() {
    return this.#client.welcome?.media?.roulette === 'routed';
  }

  /** Ends the match, because the server no longer keeps this connection, or because the client is closed. */
  #lost() {
    this.#endMatch('connectionLost');
    if (this.#search === null) this.#state = 'idle';
  }

  /** Starts the search again: the client reconnected as a new connection, for which the server has no search. */
  async #recover() {
    const search = this.#search;
    // A request to start that is not answered yet moves to the new connection itself.
    if (!search || this.#starting > 0) return;
    try {
      await this.#ask(search);
      if (this.#search === search) this.emit('recovered');
    } catch (error) {
      if (isRestart(error) || this.#search !== search) return;
      this.#searchEnded(/** @type {ConfabError} */ (error));
    }
  }

  /** @param {ConfabError} error why the server no longer searches for a partner */
  #searchEnded(error) {
    this.#search = null;
    this.#endMatch('stopped');
    this.#state = 'idle';
    this.emit('error', { error });
  }
}

/** @param {Search} search */
const members = ({ mode, interests, name }) => ({ mode, interests, name });
