// The page's connection to the server: one client and its room. Turns SDK events into events of the state machine, and effects
// into SDK calls. Its only decision is how to restart after an invalid identity.
import { Client, OT, Rooms } from '../../lib/index.js';
import { isIdentityLost } from '../shared/memory.js';
import { iceConfigOf } from './settings.js';
import { ActiveSpeaker } from './speaker.js';

/** @typedef {(event: import('./types.js').Event) => void} Dispatch */
/** @typedef {{recall: () => string | undefined, remember: (secret: string | null) => void}} IdentityMemory */
/** @typedef {import('../../lib/rooms/room.js').Room} Room */
/** @typedef {import('../../lib/session/subscriber.js').Subscriber} Subscriber */

export class Server {
  /** @type {any} */
  #client = null;
  /** @type {Rooms | null} */
  #rooms = null;
  /** @type {Room | null} */
  room = null;
  #forgotIdentity = false;
  /** Whether the client is connected. If so, the identity is valid: a token error concerns the application's token. */
  #isConnected = false;
  #speaker = new ActiveSpeaker();
  /** Sessions whose stream properties are observed. */
  #followed = new WeakSet();
  /** Subscribers that are connected, so that media arrives. @type {WeakSet<Subscriber>} */
  #live = new WeakSet();
  /** @type {import('./types.js').Settings | null} */
  #settings = null;

  /** @param {IdentityMemory} identity @param {Dispatch} dispatch @param {string | null} token an application's token for the room */
  constructor(identity, dispatch, token) {
    this.identity = identity;
    this.dispatch = dispatch;
    this.token = token;
  }

  /** @param {import('./types.js').Settings} settings */
  connect(settings) {
    const old = this.#client;
    this.#client = null;
    old?.leave();
    this.#settings = settings;
    const iceConfig = iceConfigOf(settings);
    const client = new Client({ identity: this.identity.recall(), iceConfig });
    this.#client = client;
    this.#isConnected = false;
    this.#rooms = new Rooms(client, { iceConfig, subscriberOptions: { fitMode: 'contain' } });
    /** @param {string} event @param {(event: any) => void} listen called only for events of the current client */
    const on = (event, listen) => client.on(event, (/** @type {any} */ detail) => {
      if (client === this.#client) listen(detail ?? {});
    });
    on('identity', ({ secret }) => this.identity.remember(secret));
    on('connected', ({ resumed }) => {
      this.#isConnected = true;
      this.dispatch({ type: 'connected', resumed });
    });
    on('reconnecting', () => {
      this.#isConnected = false;
      this.dispatch({ type: 'reconnecting' });
    });
    on('restarted', () => this.dispatch({ type: 'restarted' }));
    on('closed', ({ code, error }) => this.#closed(error?.code ?? String(code), error?.message));
    // The `closed` event reports the failure, so ignore the rejection.
    Promise.resolve(client.connect()).catch(() => {});
  }

  /** @param {string} code @param {string | undefined} message */
  #closed(code, message) {
    // The server will never accept the stored identity, which belongs to another server or to a data directory that is
    // gone. Connect without it, but only once.
    const mayForget = !this.#isConnected && isIdentityLost(code) && this.identity.recall() && !this.#forgotIdentity;
    if (mayForget && this.#settings) {
      this.#forgotIdentity = true;
      this.identity.remember(null);
      this.connect(this.#settings);
      return;
    }
    this.dispatch({ type: 'closed', code, message });
  }

  // ---- Joining and leaving

  /** @param {import('../../lib/rooms/rooms.js').RoomRequest} join */
  async join(join) {
    const rooms = this.#rooms;
    try {
      const room = await /** @type {Rooms} */ (rooms).join({ ...join, token: this.token ?? undefined }, {
        onWaiting: () => { if (rooms === this.#rooms) this.dispatch({ type: 'waiting' }); },
      });
      if (rooms === this.#rooms) this.#enter(room);
    } catch (error) {
      if (rooms === this.#rooms) this.dispatch({ type: 'joinRefused', ...described(error) });
    }
  }

  leave() {
    this.#rooms?.leave().catch(() => {}); // If the message is lost, the server notices the end of the connection.
  }

  /** @param {Room} room */
  #enter(room) {
    this.room = room;
    this.#speaker = new ActiveSpeaker();
    // Drop the events of an earlier room. If the user has left this room, the state machine ignores its events.
    const tell = (/** @type {(detail: any) => import('./types.js').Event | null} */ translate) => (/** @type {any} */ detail) => {
      const event = room === this.room ? translate(detail ?? {}) : null;
      if (event) this.dispatch(event);
    };
    room.on({
      changed: tell(({ options }) => ({ type: 'changed', options })),
      person: tell(({ person }) => ({ type: 'person', person, me: room.connectionId })),
      said: tell(({ line }) => ({ type: 'said', line })),
      fileRemoved: tell(({ fileId }) => ({ type: 'fileRemoved', fileId })),
      reacted: tell(({ connectionId, reaction }) => ({ type: 'reacted', connectionId, reaction })),
      knock: tell((knock) => ({ type: 'knock', ...knock })),
      role: tell(({ role }) => ({ type: 'role', role })),
      reconnecting: tell(() => ({ type: 'roomAway' })),
      waiting: tell(() => ({ type: 'waitingAgain' })),
      reconnected: tell(() => ({ type: 'roomIs', room: snapshot(room), knocks: [...room.knocks.values()], streams: this.#streams(room) })),
      muted: tell(({ publisher }) => ({ type: 'mutedByHost', publisher })),
      unpublished: tell(({ publisher, reason }) => ({ type: 'unpublished', publisher, reason })),
      error: tell(({ error, isFinal, publisher, stream }) => ({ type: 'fault', publisher, ...sourceOf(stream), code: described(error).code, isFinal })),
      recovered: tell(({ publisher, stream }) => ({ type: 'faultOver', publisher, ...sourceOf(stream) })),
      subscriber: ({ subscriber }) => { if (room === this.room) this.#watch(room, subscriber); },
      subscriberGone: ({ subscriber }) => { if (room === this.room) this.#unwatch(room, subscriber); },
      recording: tell(({ isRecorded, asks }) => ({ type: 'recording', isRecorded, asks })),
      broadcast: tell(({ isBroadcast, asks }) => ({ type: 'broadcast', isBroadcast, asks })),
      ended: tell(({ reason }) => ({ type: 'ended', reason })),
    });
    this.dispatch({ type: 'joined', room: snapshot(room), chat: [...room.chat] });
    this.dispatch({ type: 'recording', ...room.recording });
    this.dispatch({ type: 'broadcast', ...room.broadcast });
    for (const knock of room.knocks.values()) this.dispatch({ type: 'knock', ...knock, waiting: true });
    for (const subscriber of room.subscribers.values()) this.#watch(room, subscriber);
  }

  // ---- Streams

  /** @param {string | null} streamId @returns {Subscriber | null} */
  subscriberOf(streamId) {
    return (streamId !== null && this.room?.subscribers.get(streamId)) || null;
  }

  /** @param {Room} room */
  #streams(room) {
    return [...room.subscribers.values()].map((subscriber) => this.#streamOf(subscriber));
  }

  /** @param {Subscriber} subscriber @returns {import('./types.js').Stream} */
  #streamOf(subscriber) {
    const { streamId, connection, hasAudio, hasVideo, videoType, videoDimensions } = subscriber.stream;
    const width = subscriber.videoWidth() ?? videoDimensions?.width ?? 0;
    const height = subscriber.videoHeight() ?? videoDimensions?.height ?? 0;
    return {
      streamId, connectionId: connection.connectionId, isScreen: videoType === 'screen', hasAudio, hasVideo, aspect: width && height ? width / height : null,
      isLive: this.#live.has(subscriber), isSilent: subscriber.isAudioBlocked(),
    };
  }

  /** @param {Room} room @param {Subscriber} subscriber */
  #watch(room, subscriber) {
    const tell = () => {
      const isPresent = room === this.room && room.subscribers.get(subscriber.stream.streamId) === subscriber;
      if (isPresent) this.dispatch({ type: 'stream', stream: this.#streamOf(subscriber) });
    };
    const live = (/** @type {boolean} */ is) => () => {
      if (is) this.#live.add(subscriber);
      else this.#live.delete(subscriber);
      tell();
    };
    subscriber.on({
      connected: live(true), disconnected: live(false), audioBlocked: tell, audioUnblocked: tell, videoEnabled: tell, videoDisabled: tell,
      videoDimensionsChanged: tell,
    });
    this.#follow(room);
    this.#listen(room, subscriber);
    tell();
  }

  /**
   * Observes the properties of a session's streams, because subscribers have no events for them.
   * @param {Room} room
   */
  #follow(room) {
    const { session } = room;
    if (!session || this.#followed.has(session)) return;
    this.#followed.add(session);
    session.on('streamPropertyChanged', (/** @type {any} */ { stream }) => {
      const subscriber = room.subscribers.get(stream.streamId);
      if (subscriber && room === this.room) this.dispatch({ type: 'stream', stream: this.#streamOf(subscriber) });
    });
  }

  /** @param {Room} room @param {Subscriber} subscriber */
  #listen(room, subscriber) {
    const { connection, videoType } = subscriber.stream;
    if (videoType === 'screen') return;
    subscriber.on('audioLevelUpdated', (/** @type {any} */ { audioLevel }) => {
      const isNews = room === this.room && this.#speaker.heard(connection.connectionId, audioLevel, Date.now());
      if (isNews) this.dispatch({ type: 'speaker', connectionId: this.#speaker.current });
    });
  }

  /** @param {Room} room @param {Subscriber} subscriber */
  #unwatch(room, { stream: { streamId, connection } }) {
    if (room.subscribers.has(streamId)) return;
    this.dispatch({ type: 'streamGone', streamId });
    if (this.#speaker.left(connection.connectionId)) this.dispatch({ type: 'speaker', connectionId: null });
  }

  // ---- Requests

  /**
   * Sends a request in the room. Passes an error to `refused`, by default to the state machine, unless the room has
   * ended in the meantime. Does nothing if the user is in no room.
   * @param {(room: Room) => Promise<unknown> | void} act
   * @param {(error: {code: string, message: string}) => void} [refused]
   */
  async request(act, refused = (error) => this.dispatch({ type: 'refused', ...error })) {
    const { room } = this;
    if (!room || room.isOver) return;
    try {
      await act(room);
    } catch (error) {
      if (room === this.room && !room.isOver) refused(described(error));
    }
  }

  /** Starts sound that the browser has blocked. Call this in a click handler, because browsers require a user gesture. */
  unblockSound() {
    OT.unblockAudio();
  }
}

/** @param {Room} room @returns {import('./types.js').Room} */
function snapshot(room) {
  const { name, role, options, connectionId: me } = room;
  const { maxSize: maxFileSize } = room.files;
  return { name, role, options, me, people: [...room.people.values()], away: false, maxFileSize, hostsMayRecord: room.hostsMayRecord };
}

/**
 * Returns the members of a fault event that identify a remote stream; none for a local stream.
 * @param {import('../../lib/session/roster.js').Stream | undefined} stream undefined if the event is about a local one
 */
function sourceOf(stream) {
  if (!stream) return {};
  const { streamId, videoType, connection: { connectionId } } = stream;
  return { of: streamId, connectionId, isScreen: videoType === 'screen' };
}

/** @param {any} error */
function described(error) {
  const code = [error?.code, error?.reason].find((name) => typeof name === 'string') ?? 'unknown';
  return { code, message: error?.message ?? '', retryAfterMs: error?.retryAfterMs };
}
