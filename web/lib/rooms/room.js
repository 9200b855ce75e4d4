// `Room`: a room that this person is in, with its people, its chat, and everyone's audio and video. The object stays the same
// when the client reconnects and joins the room again. Invariant: after `ended`, nothing is emitted and nothing keeps running.

import { systemClock, Timers } from '../clock.js';
import { ConfabError } from '../errors.js';
import { Emitter } from '../events.js';
import { KeptPublishers } from './kept-publishers.js';
import { RoomChat } from './room-chat.js';
import { RoomFiles } from './room-files.js';
import { RoomMedia } from './room-media.js';

/** @typedef {import('../signaling/room-messages.js').RoomOptions} RoomOptions */
/** @typedef {import('../signaling/room-messages.js').RoomPerson} RoomPerson */
/** @typedef {import('../signaling/room-messages.js').RoomRole} RoomRole */
/** @typedef {import('../signaling/room-messages.js').RoomLine} RoomLine */
/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/** @typedef {import('../session/roster.js').Stream} Stream */
/** @typedef {import('../session/subscriber.js').Subscriber} Subscriber */
/** @typedef {Partial<Omit<RoomOptions, 'password'>> & {password?: string}} RoomChanges */
/**
 * @typedef {object} RoomsOptions
 * @property {(stream: Stream) => Element | undefined} [subscriberTarget] returns the element in which to show a
 *   stream; default: a detached element
 * @property {import('../session/subscriber-types.js').SubscriberOptions} [subscriberOptions]
 * @property {import('../media/ice.js').IceConfig} [iceConfig] for media from browser to browser
 * @property {import('../media/peer.js').Rtc} [rtc]
 * @property {import('../clock.js').Clock} [clock]
 * @property {() => number} [random] returns a number between 0 and 1, for pauses; default: `Math.random`
 * @property {typeof import('./room-files.js').sendFile} [sendFile]
 */
/**
 * The members of `Rooms` that a room uses.
 * @typedef {object} RoomHost
 * @property {import('../signaling/client.js').Client} client
 * @property {RoomsOptions} options
 * @property {() => Promise<void>} leave sends `room.leave`
 * @property {(password: string) => void} passwordChanged called when this person has set the room's password
 * @property {() => void} expelled called when the membership in the room does not work, so that the room must be
 *   joined again
 * @property {() => void} over called when the room has ended on this device
 */
/** @typedef {{name: string, roomId?: string, sessionId: string, token: string, role: RoomRole, options: RoomOptions, people: RoomPerson[], chat: RoomLine[], files?: import('./room-files.js').FileAccess}} Joined */

/** How long to wait for `room.ended` after the session ended, before joining the session again (milliseconds). */
const sessionPauseMs = 1000;

/** @type {WeakMap<Room, RoomControl>} */
const controls = new WeakMap();
/** @param {Room} room @returns {RoomControl} the operations reserved for `Rooms` */
export const controlOf = (room) => /** @type {RoomControl} */ (controls.get(room));

/**
 * Events: `changed {options}`, `person {person}` (joined, left, reconnecting, hand, role), `said {line}`, `fileRemoved {fileId}`, `reacted
 * {connectionId, reaction}`, `knock {connectionId, displayName, waiting}`, `role {role}` (this person's own), `subscriber
 * {subscriber}` (created, not playing yet), `subscriberGone {subscriber}`, `muted {publisher}` (by a host), `unpublished
 * {publisher, reason, error?}` (by a host, or because its media stopped or may not be published), `reconnecting {}`, `waiting {}`
 * (while rejoining: a host must let this person in), `recording {isRecorded, asks}` (a recording of the room has started or ended;
 * with `asks`, this person is recorded only after `acceptRecording(true)`), `broadcast {isBroadcast, asks}` (the same of live broadcasts,
 * with `acceptBroadcast(true)`), `reconnected {}`, `error {error, isFinal, stream?, publisher?}` (a stream cannot be
 * received, or a publisher cannot be sent; retried unless `isFinal`), `recovered {stream?, publisher?}` (the stream or
 * publisher of an `error` works now, or has ended; after `reconnecting`, no `recovered` follows earlier errors, so
 * forget them), `ended {reason, error?}` (the reason is one of the server's, the code of the error that prevented
 * joining again, `left` or `connectionLost`).
 */
export class Room extends Emitter {
  #host;
  #timers;
  #chat = new RoomChat();
  #publishers;
  /** @type {RoomMedia | null} */
  #media = null;
  #token = '';
  #isReconnecting = false;
  /** @type {'joining' | 'joined' | 'ended'} `joining` → `joined` → `ended`; `joining` → `ended` */
  #state = 'joining';
  #handRaised = false;
  /** Sends and fetches the files of the chat. */
  files = new RoomFiles((verb, members) => this.#request(verb, members), () => this.#host);
  name = '';
  /**
   * The room's id; a later room of the same name has another one. Undefined before joining.
   * @type {string | undefined}
   */
  id;
  /** @type {RoomRole} */
  role = 'guest';
  /** @type {RoomOptions} */
  options = { media: 'routed', capacity: 0, locked: false, lobby: false, password: false, chat: true, share: 'all', persistent: false };
  /** @type {Map<string, RoomPerson>} everyone in the room, by connection id, in the order of joining */
  people = new Map();
  /** @type {Map<string, {connectionId: string, displayName: string}>} the waiting people, if this person may admit them */
  knocks = new Map();
  /** @type {Map<string, Subscriber>} by stream id */
  subscribers = new Map();
  /** The id of this person's connection, which is also their key in `people`. */
  connectionId = '';

  /** @param {RoomHost} host */
  constructor(host) {
    super();
    this.#host = host;
    this.#timers = new Timers(host.options.clock ?? systemClock);
    this.#publishers = new KeptPublishers({
      muted: (publisher) => this.emit('muted', { publisher }),
      dropped: (publisher, reason) => {
        this.#media?.forget(publisher);
        this.emit('unpublished', { publisher, reason });
      },
    });
    controls.set(this, {
      enter: (joined) => this.#enter(joined),
      lost: () => this.#lost(),
      waiting: () => this.emit('waiting'),
      reconnecting: () => this.#reconnecting(),
      // The connection was resumed or the room was rejoined, but the session may have ended. Then `#sessionLost` joins
      // it again and reports the end of the reconnection.
      reconnected: () => { if (!this.#media?.isOver) this.#reconnected(); },
      end: (reason, error) => this.#end(reason, error),
      receive: (message) => this.#receive(message),
    });
  }

  /** The most recent lines of the chat, both messages and files, oldest first. */
  get chat() {
    return this.#chat.lines;
  }

  /** This person, as shown to others; undefined before joining. */
  get me() {
    return this.people.get(this.connectionId);
  }

  /** The session that carries the media; null while the room is not joined. Rejoining creates a new one. */
  get session() {
    return this.#media?.session ?? null;
  }

  /** Whether the room is being recorded, and whether this person should accept or refuse that. */
  get recording() {
    return { isRecorded: this.session?.isRecorded ?? false, asks: this.session?.asksConsent ?? false };
  }

  /**
   * Accepts or refuses to be recorded, until the room is no longer recorded. If the answer cannot be sent, `recording` says that the
   * question remains.
   * @param {boolean} accept
   */
  async acceptRecording(accept) {
    try {
      await this.session?.acceptRecording(accept);
    } catch (error) {
      this.emit('recording', this.recording);
      throw error;
    }
  }

  /** Whether the room is being broadcast live, and whether this person should accept or refuse that. */
  get broadcast() {
    return { isBroadcast: this.session?.isBroadcast ?? false, asks: this.session?.asksBroadcastConsent ?? false };
  }

  /**
   * Accepts or refuses to be broadcast live, until the room is no longer broadcast. If the answer cannot be sent, `broadcast` says that
   * the question remains.
   * @param {boolean} accept
   */
  async acceptBroadcast(accept) {
    try {
      await this.session?.acceptBroadcast(accept);
    } catch (error) {
      this.emit('broadcast', this.broadcast);
      throw error;
    }
  }

  /** Whether hosts may record the room, with `startRecording` and `stopRecording`. */
  get hostsMayRecord() {
    return (this.session?.moderatorArchives ?? null) !== null;
  }

  /** Starts to record the room. Hosts only, and only with `hostsMayRecord`. Everyone gets the event `recording` first. */
  async startRecording() {
    await this.#media?.startRecording();
  }

  /** Stops all recordings of the room, including those that an application has started. Hosts only. */
  async stopRecording() {
    await this.#media?.stopRecording();
  }

  get isOver() {
    return this.#state === 'ended';
  }

  /** The publishers in this room. */
  get publishers() {
    return this.#publishers.all;
  }

  // ---- Audio and video

  /**
   * Publishes in this room, including after each reconnection. The publisher belongs to the application, which must destroy it.
   * @param {Publisher} publisher
   */
  publish(publisher) {
    if (this.isOver || publisher.isDestroyed || this.#publishers.has(publisher)) return;
    this.#publishers.add(publisher);
    this.#media?.publish(publisher);
  }

  /** @param {Publisher} publisher the publisher to stop sending; it is not destroyed */
  unpublish(publisher) {
    if (!this.#publishers.has(publisher)) return;
    this.#media?.unpublish(publisher);
    this.#publishers.delete(publisher);
  }

  // ---- Verbs

  /** Leaves immediately, even while the server cannot be reached. */
  async leave() {
    if (this.isOver) return;
    this.#end('left');
    await this.#host.leave();
  }

  /** @param {string} connectionId a waiting person */
  admit(connectionId) {
    return this.#request('room.admit', { connectionId });
  }

  /** @param {string} connectionId a waiting person */
  deny(connectionId) {
    return this.#request('room.deny', { connectionId });
  }

  /** @param {RoomChanges} options the options to change */
  async set(options) {
    await this.#request('room.set', { options });
    if (options.password !== undefined) this.#host.passwordChanged(options.password);
  }

  /** @param {string} [connectionId] default: everyone else */
  mute(connectionId) {
    return this.#request('room.mute', { connectionId });
  }

  /** @param {string} [connectionId] default: everyone else */
  stopShare(connectionId) {
    return this.#request('room.stopShare', { connectionId });
  }

  /** @param {string} connectionId @param {{ban?: boolean}} [options] */
  remove(connectionId, options = {}) {
    return this.#request('room.remove', { connectionId, ban: options.ban });
  }

  /** @param {string} connectionId @param {RoomRole} role */
  setRole(connectionId, role) {
    return this.#request('room.role', { connectionId, role });
  }

  /** @param {string} text */
  say(text) {
    return this.#request('room.say', { text });
  }

  /** @param {boolean} raised */
  async raiseHand(raised) {
    await this.#request('room.hand', { raised });
    this.#handRaised = raised;
  }

  /** @param {string} reaction such as an emoji */
  react(reaction) {
    return this.#request('room.react', { reaction });
  }

  /** @param {string} verb @param {Record<string, unknown>} members @returns {Promise<any>} the answer */
  async #request(verb, members) {
    if (this.isOver) throw new ConfabError({ code: 'not_joined', message: 'You are no longer in the room. Join it again.' });
    return this.#host.client.request(verb, members);
  }

  // ---- Joining, and joining again

  /** @param {Joined} joined */
  async #enter(joined) {
    const { name, roomId, sessionId, token, options, people, chat } = joined;
    const isFirst = this.#state === 'joining';
    this.name = name;
    this.id = roomId;
    this.#token = token;
    this.connectionId = this.#host.client.welcome?.connectionId ?? this.connectionId;
    this.#endMedia(false);
    // Forget the knocks, because the server sends the current ones again.
    this.knocks.clear();
    this.#state = 'joined';
    this.#changed(options);
    this.files.access = joined.files ?? null;
    this.#takePeople(people, isFirst);
    this.#takeRole(joined.role);
    const { fresh, removed } = this.#chat.catchUp(chat);
    for (const fileId of removed) this.emit('fileRemoved', { fileId });
    for (const line of fresh) if (!isFirst) this.emit('said', { line });
    await this.#beginMedia(sessionId);
    if (this.#handRaised && !this.isOver) this.#request('room.hand', { raised: true }).catch(() => {});
  }

  /** @param {RoomPerson[]} people @param {boolean} isFirst */
  #takePeople(people, isFirst) {
    const former = this.people;
    this.people = new Map(people.map((person) => [person.connectionId, person]));
    if (isFirst) return;
    for (const [id, person] of former) if (!this.people.has(id)) this.emit('person', { person: { ...person, state: 'left' } });
    for (const [id, person] of this.people) if (!isSame(person, former.get(id))) this.emit('person', { person });
  }

  /** @param {string} sessionId */
  async #beginMedia(sessionId) {
    const media = new RoomMedia(this.#host.client, sessionId, this.#host.options, {
      subscriber: (subscriber) => {
        this.subscribers.set(subscriber.stream.streamId, subscriber);
        this.emit('subscriber', { subscriber });
      },
      subscriberGone: (subscriber) => {
        const { streamId } = subscriber.stream;
        if (this.subscribers.get(streamId) === subscriber) this.subscribers.delete(streamId);
        if (!this.isOver) this.emit('subscriberGone', { subscriber });
      },
      isKept: (publisher) => this.#publishers.has(publisher),
      refused: (publisher, error) => {
        this.#publishers.delete(publisher);
        this.emit('unpublished', { publisher, reason: String(error.reason ?? error.code), error });
      },
      trouble: (error, of, isFinal) => this.emit('error', { error, isFinal, ...of }),
      recovered: (of) => this.emit('recovered', { ...of }),
      recording: () => { if (media === this.#media) this.emit('recording', this.recording); },
      broadcast: () => { if (media === this.#media) this.emit('broadcast', this.broadcast); },
      lost: () => { if (media === this.#media) this.#sessionLost(); },
    });
    this.#media = media;
    await media.begin(this.#token, this.#publishers.all);
  }

  /**
   * Joins the session again after a pause. If the session ended because this person is no longer in the room,
   * `room.ended` arrives during the pause and cancels the attempt.
   */
  #sessionLost() {
    const sessionId = /** @type {RoomMedia} */ (this.#media).session.sessionId;
    this.#reconnecting();
    this.#timers.set('session', sessionPauseMs, async () => {
      try {
        await this.#beginMedia(sessionId);
        this.#reconnected();
      } catch {
        // The end of the room and a replaced connection are handled elsewhere. In all other cases the membership does
        // not work, so the room must be joined again.
        if (!this.isOver && this.#media?.isOver) this.#host.expelled();
      }
    });
  }

  #reconnecting() {
    if (this.isOver || this.#isReconnecting) return;
    this.#isReconnecting = true;
    this.emit('reconnecting');
  }

  #reconnected() {
    if (this.isOver || !this.#isReconnecting) return;
    this.#isReconnecting = false;
    this.emit('reconnected');
  }

  /** Handles the loss of the connection, or of the membership in the room, on the server. */
  #lost() {
    this.#reconnecting();
    this.#endMedia(true);
  }

  /** @param {boolean} isLost */
  #endMedia(isLost) {
    this.#timers.clearAll();
    this.#media?.end(isLost);
    this.#media = null;
  }

  /** @param {string} reason @param {ConfabError} [error] */
  #end(reason, error) {
    if (this.isOver) return;
    this.#state = 'ended';
    // Unless this person leaves, the session has already ended on the server.
    this.#endMedia(reason !== 'left');
    this.#publishers.clear();
    this.subscribers.clear();
    this.#host.over();
    this.emit('ended', error ? { reason, error } : { reason });
  }

  // ---- Server messages

  /** @param {any} message */
  #receive(message) {
    if (this.#state !== 'joined') return;
    const { type, re: _re, seq: _seq, ack: _ack, ...members } = message;
    switch (type) {
      case 'room.changed': return this.#changed(members.options);
      case 'room.person': return this.#person(members);
      case 'room.said':
        this.#chat.add(members);
        return this.emit('said', { line: members });
      case 'room.fileRemoved':
        this.#chat.removeFile(members.fileId);
        return this.emit('fileRemoved', members);
      case 'room.reacted': return this.emit('reacted', members);
      case 'room.knock': return this.#knock(members);
      case 'room.ended': return this.#end(members.reason);
      default:
    }
  }

  /** @param {RoomOptions} options */
  #changed(options) {
    const isNews = JSON.stringify(options) !== JSON.stringify(this.options);
    this.options = options;
    if (isNews) this.emit('changed', { options });
  }

  /** @param {RoomPerson} person */
  #person(person) {
    if (person.state === 'left') this.people.delete(person.connectionId);
    else this.people.set(person.connectionId, person);
    this.emit('person', { person });
    if (person.connectionId === this.connectionId && person.state !== 'left') this.#takeRole(person.role);
  }

  /** @param {RoomRole} role */
  #takeRole(role) {
    if (role === this.role) return;
    this.role = role;
    if (role === 'guest') this.knocks.clear();
    this.emit('role', { role });
  }

  /** @param {{connectionId: string, displayName: string, waiting: boolean}} knock */
  #knock({ connectionId, displayName, waiting }) {
    if (waiting) this.knocks.set(connectionId, { connectionId, displayName });
    else this.knocks.delete(connectionId);
    this.emit('knock', { connectionId, displayName, waiting });
  }
}

/**
 * The operations of a room that are reserved for `Rooms`.
 * @typedef {object} RoomControl
 * @property {(joined: Joined) => Promise<void>} enter resolves when the session can be used
 * @property {() => void} lost handles the loss of the connection, or of the membership in the room, on the server
 * @property {() => void} waiting emits the event `waiting`
 * @property {() => void} reconnecting emits the event `reconnecting`, unless it is reconnecting already
 * @property {() => void} reconnected ends the reconnection, unless the session still has to be joined again
 * @property {(reason: string, error?: ConfabError) => void} end ends the room on this device
 * @property {(message: any) => void} receive handles a server message about the room
 */

/** @param {RoomPerson} one @param {RoomPerson | undefined} other */
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
