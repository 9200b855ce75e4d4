// `Rooms`: joins a room, and rejoins it after the server has lost this connection. Invariant: there is at most one
// room and one attempt to join; if both exist, the attempt is for this room. A new request is sent only after the
// previous one was answered, so it is always known which request an answer belongs to.

import { systemClock, Timers } from '../clock.js';
import { ConfabError, isRestart } from '../errors.js';
import { Emitter } from '../events.js';
import { Backoff } from '../signaling/backoff.js';
import { controlOf, Room } from './room.js';

/** @typedef {import('./room.js').RoomsOptions} RoomsOptions */
/** @typedef {import('./room.js').RoomChanges} RoomChanges */
/**
 * @typedef {object} RoomRequest
 * @property {string} [name] default: a random one
 * @property {string} [roomId] the id of a room that this person was in: joining rejects with `room_other` if another
 *   room has the name now
 * @property {string} [displayName] default: the server picks one
 * @property {string} [password] the room's password: joining rejects with `room_no_password` if no room with this name
 *   has a password
 * @property {string} [token] an application's token for the room, also used for rejoining
 * @property {RoomChanges} [options] the room's options, if this request creates it
 * @property {boolean} [routedOnly] whether joining a room whose members see each other's addresses rejects with
 *   `room_mesh`
 */
/**
 * @typedef {object} Attempt
 * @property {RoomRequest} request
 * @property {Room | null} room the room to rejoin; null when joining for the first time
 * @property {'idle' | 'asking' | 'answered'} phase `idle`: the next request was not sent yet; `asking`: the request
 *   was not answered yet; `answered`: in the lobby, or joining the session. `idle` → `asking` → `answered`; all →
 *   `idle`, to retry
 * @property {Backoff} backoff
 * @property {number} until when to give up rejoining, on the monotonic clock; not used when joining for the first time
 * @property {() => void} waiting called when a host must let this person in
 * @property {(room: Room) => void} joined
 * @property {(error: ConfabError) => void} failed
 */

/** How long to retry rejoining if the room rejects it for a temporary reason, such as being full or locked (milliseconds). */
const rejoinMs = 120_000;
/** The longest pause between two attempts to rejoin, unless the server asks for a longer one (milliseconds). */
const longestMs = 5000;
/**
 * The maximum time that people who are not hosts wait before rejoining (milliseconds). The actual time is random, and
 * at least half of this. After a restart of the server, the first person to join becomes host. That should be a
 * previous host.
 */
const guestsPauseMs = 1000;

/** Codes of errors that can be temporary even if the server does not mark them as retryable. */
const passing = ['room_full', 'room_locked', 'room_not_found', 'already_joined', 'rate_limited', 'media_unavailable'];
/**
 * Maps codes of errors that end a room to reasons of the `ended` event. For any other error, the code is the reason.
 */
const reasons = /** @type {Record<string, string>} */ ({ room_banned: 'banned', connect_failed: 'connectionLost' });

export class Rooms extends Emitter {
  #client;
  #options;
  #timers;
  #clock;
  /** @type {Attempt | null} */
  #attempt = null;
  /** @type {Room | null} */
  #room = null;
  /** Counts joins and lost connections, so that the result of an earlier join is ignored. */
  #stays = 0;
  /** @type {string | undefined} the room's password, for rejoining */
  #password;
  /** @type {string | undefined} the application's token, for rejoining */
  #token;
  /** Settles when the server has answered all requests to join or leave. */
  #quiet = Promise.resolve();

  /** @param {import('../signaling/client.js').Client} client @param {RoomsOptions} [options] */
  constructor(client, options = {}) {
    super();
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timers = new Timers(this.#clock);
    client.on({
      reconnecting: () => { if (this.#room) controlOf(this.#room).reconnecting(); },
      connected: ({ resumed }) => { if (resumed && this.#room && !this.#attempt) controlOf(this.#room).reconnected(); },
      expired: () => this.#lost(),
      restarted: () => this.#restarted(),
      closed: ({ code, error }) => this.#closed(code, error),
      message: (message) => this.#receive(message),
    });
  }

  /** The room that this person is in; null if there is none. */
  get room() {
    return this.#room;
  }

  /**
   * Joins a room. Resolves when this person is in the room and the session is connected, which may require a host to admit them.
   * @param {RoomRequest} request
   * @param {{onWaiting?: () => void}} [hooks] `onWaiting`: called when a host must let this person in, and again if
   *   the request had to be repeated on a new connection
   * @returns {Promise<Room>} rejects with a `ConfabError`: `room_full`, `room_password`, `room_refused`, …, or `left`
   */
  join(request, hooks = {}) {
    if (this.#attempt || this.#room) {
      return Promise.reject(new ConfabError({ code: 'already_joined', message: 'Leave the room that you are in first.' }));
    }
    return new Promise((resolve, reject) => {
      this.#begin({
        request, room: null, phase: 'idle', backoff: this.#newBackoff(), until: 0, waiting: hooks.onWaiting ?? (() => {}), joined: resolve, failed: reject,
      });
    });
  }

  /** Leaves the room, or cancels joining, even while waiting in the lobby. */
  async leave() {
    const room = this.#room;
    const attempt = this.#attempt;
    if (!attempt) return room?.leave();
    this.#attempt = null;
    this.#timers.clearAll();
    if (room) controlOf(room).end('left');
    else attempt.failed(new ConfabError({ code: 'left', message: 'You left before you were let in.' }));
    await this.#sendLeave();
  }

  // ---- Joining

  /** @param {Attempt} attempt */
  #begin(attempt) {
    this.#attempt = attempt;
    this.#password = attempt.request.password ?? attempt.request.options?.password;
    this.#token = attempt.request.token;
    this.#send(attempt);
  }

  /** @param {Attempt} attempt */
  async #send(attempt) {
    this.#timers.clear('again');
    try {
      await this.#client.connect();
      await this.#quiet;
      // The attempt was abandoned, or another call of this method has sent its request in the meantime.
      if (attempt !== this.#attempt || attempt.phase !== 'idle') return;
      attempt.phase = 'asking';
      const { name, roomId, displayName = '', password, token, options, routedOnly } = attempt.request;
      const answer = this.#client.request(
        'room.join', { name, roomId, displayName, password: password || undefined, token, options, routedOnly });
      this.#quiet = answer.then(() => {}, () => {});
      await answer;
    } catch (error) {
      if (attempt === this.#attempt) this.#refused(attempt, /** @type {ConfabError} */ (error));
    }
  }

  /** @param {any} message */
  #receive(message) {
    // If the current attempt has not sent its request, an answer belongs to an earlier attempt, which was abandoned.
    // Ignore it.
    const attempt = this.#attempt?.phase === 'idle' ? null : this.#attempt;
    switch (message.type) {
      case 'room.waiting':
        if (!attempt) return;
        attempt.phase = 'answered';
        return attempt.waiting();
      case 'room.joined': return attempt && this.#joined(attempt, message);
      case 'room.refused': return attempt && this.#refused(attempt, new ConfabError(message));
      default: if (this.#room && message.type.startsWith('room.')) controlOf(this.#room).receive(message);
    }
  }

  /** @param {Attempt} attempt @param {any} message */
  async #joined(attempt, message) {
    attempt.phase = 'answered';
    const stay = this.#stays += 1;
    const room = this.#room ??= this.#newRoom();
    try {
      await controlOf(room).enter(message);
      if (attempt !== this.#attempt || stay !== this.#stays || room.isOver) return;
      this.#attempt = null;
      attempt.joined(room);
    } catch (error) {
      // The attempt or the room has ended, or the connection was lost, in which case `#restarted` sends the request
      // again.
      if (attempt !== this.#attempt || stay !== this.#stays || room.isOver) return;
      // Without the session, membership in the room is useless, so leave.
      this.#sendLeave();
      this.#refused(attempt, plain(error), true);
    }
  }

  /** @returns {Room} */
  #newRoom() {
    /** @type {Room} */
    const room = new Room({
      client: this.#client,
      options: this.#options,
      leave: () => this.#sendLeave(),
      passwordChanged: (password) => { this.#password = password || undefined; },
      expelled: () => this.#expelled(),
      over: () => this.#over(room),
    });
    return room;
  }

  #newBackoff() {
    return new Backoff(this.#options.random, longestMs);
  }

  /**
   * Retries rejoining after a pause, or ends the attempt and the room.
   * @param {Attempt} attempt
   * @param {ConfabError} error
   * @param {boolean} [passes] whether rejoining may be retried; default: if the error may be temporary
   */
  #refused(attempt, error, passes = isPassing(error)) {
    attempt.phase = 'idle';
    // The connection was lost before the answer; `#restarted` sends the request again. If the loss was noticed only with the new
    // connection's welcome, `restarted` came before this error.
    if (isRestart(error)) return void (this.#client.state === 'connected' && this.#send(attempt));
    if (attempt.room && passes && this.#clock.now() < attempt.until) {
      const pause = Math.max(attempt.backoff.next(), error.retryAfterMs ?? 0);
      return this.#timers.set('again', pause, () => this.#send(attempt));
    }
    this.#attempt = null;
    this.#timers.clearAll();
    if (this.#room) controlOf(this.#room).end(reasons[String(error.code)] ?? String(error.code), error);
    attempt.failed(error);
  }

  // ---- Joining again

  /** Marks the room as lost after the server dropped this connection. `#restarted` rejoins. */
  #lost() {
    this.#stays += 1;
    // A request that is not answered is rejected, or moves to the new connection.
    if (this.#attempt?.phase === 'answered') this.#attempt.phase = 'idle';
    if (this.#room) controlOf(this.#room).lost();
  }

  #restarted() {
    if (this.#attempt) {
      if (this.#attempt.phase === 'idle') this.#send(this.#attempt);
    } else if (this.#room) this.#again();
  }

  /**
   * Leaves and rejoins, because the membership in the room does not work. Does nothing if this person is already
   * rejoining.
   */
  #expelled() {
    if (!this.#room || this.#attempt) return;
    controlOf(this.#room).lost();
    this.#sendLeave();
    this.#again();
  }

  #again() {
    const room = /** @type {Room} */ (this.#room);
    const password = this.#password;
    // If the room is gone, the request creates it again with the same options, but not locked, because everyone else
    // must rejoin too.
    const { password: hasPassword, locked: _locked, ...options } = room.options;
    // A member who does not know the password requests a lobby instead, so that the recreated room is not open to
    // everyone.
    const secrecy = password ? { password } : { lobby: true };
    /** @type {Attempt} */
    const attempt = {
      request: {
        // Send the id, because the room may be gone, and a stranger's room may have its name now.
        name: room.name, roomId: room.id, displayName: room.me?.displayName, password, token: this.#token,
        options: { ...options, ...hasPassword ? secrecy : {} },
        // A user of a routed room has not agreed to a mesh room, whose members see each other's addresses.
        routedOnly: options.media === 'routed' ? true : undefined,
      },
      room,
      phase: 'idle',
      backoff: this.#newBackoff(),
      until: this.#clock.now() + rejoinMs,
      waiting: () => controlOf(room).waiting(),
      joined: () => controlOf(room).reconnected(),
      failed: () => {},
    };
    this.#attempt = attempt;
    controlOf(room).reconnecting();
    if (room.role === 'host') this.#send(attempt);
    else this.#timers.set('again', guestsPauseMs * (0.5 + (this.#options.random ?? Math.random)() / 2), () => this.#send(attempt));
  }

  // ---- The end

  /** @param {number} code @param {ConfabError | null} error */
  #closed(code, error) {
    const attempt = this.#attempt;
    this.#attempt = null;
    this.#timers.clearAll();
    if (this.#room) controlOf(this.#room).end(code === 1000 ? 'left' : 'connectionLost', error ?? undefined);
    attempt?.failed(error ?? new ConfabError({ code: 'left', message: 'You have disconnected. Connect again to continue.' }));
  }

  /** @param {Room} room */
  #over(room) {
    if (this.#room !== room) return;
    this.#room = null;
    const attempt = this.#attempt;
    if (!attempt) return;
    this.#attempt = null;
    this.#timers.clearAll();
    attempt.failed(new ConfabError({ code: 'left', message: 'The room ended while you were joining it. Join it again.' }));
  }

  async #sendLeave() {
    if (this.#client.state === 'idle' || this.#client.state === 'closed') return;
    const left = this.#client.request('room.leave').then(() => {}, () => {});
    this.#quiet = Promise.all([this.#quiet, left]).then(() => {});
    await left;
  }
}

/** @param {ConfabError} error */
const isPassing = (error) => passing.includes(String(error.code)) || (error.retryable && error.code !== 'room_password');

/**
 * Returns an error with the protocol's code. An error of a session has OpenTok's number instead, so it is converted:
 * to the protocol's code that caused it, or to `media_unavailable` if there is none. Other errors of the SDK are
 * returned unchanged.
 * @param {any} error
 * @returns {ConfabError}
 */
function plain(error) {
  if (error instanceof ConfabError && error.name === 'ConfabError') return error;
  const { reason = 'media_unavailable', message, retryable, retryAfterMs } = error;
  return new ConfabError({ code: reason, message, retryable, retryAfterMs, cause: error });
}
