// The connections and streams of a session. Invariant: one object for each connection and stream, starting with its first mention.

import { good } from '../media/condition.js';

/** @typedef {import('../signaling/messages.js').ConnectionInfo} ConnectionInfo */
/** @typedef {import('../signaling/messages.js').StreamInfo} StreamInfo */

// Maximum number of early connections. Normally there are a few. The limit bounds memory if many members send a signal
// and leave before their page arrives.
const maxEarly = 1000;

export class Roster {
  /** @type {Map<string, Connection>} */
  connections = new Map();
  /** @type {Map<string, Stream>} */
  streams = new Map();
  /**
   * Connections that sent a signal before their page of the roster arrived.
   * @type {Map<string, Connection>}
   */
  #early = new Map();
  #isComplete = true;

  /** Whether all pages of the roster have arrived. */
  get isComplete() {
    return this.#isComplete;
  }

  set isComplete(isComplete) {
    this.#isComplete = isComplete;
    // Early connections that were on no page have left, so forget them.
    if (isComplete) this.#early.clear();
  }

  /** @param {ConnectionInfo} info @returns {Connection} */
  connection(info) {
    const early = this.#early.get(info.connectionId);
    early?.update(info);
    const connection = this.connections.get(info.connectionId) ?? early ?? new Connection(info);
    this.#early.delete(info.connectionId);
    this.connections.set(info.connectionId, connection);
    return connection;
  }

  /**
   * Returns the sender of a signal. If the connection's page of the roster has not arrived, only its id is known. The page
   * completes the same object.
   * @param {string | null | undefined} connectionId
   * @returns {Connection | null} null for the server
   */
  sender(connectionId) {
    if (!connectionId) return null;
    const known = this.connections.get(connectionId) ?? this.#early.get(connectionId);
    if (known) return known;
    // A connection that leaves before its page arrives would stay in this map, so limit the number and drop the oldest
    // first.
    if (this.#early.size >= maxEarly) this.#early.delete(this.#early.keys().next().value ?? '');
    const early = new Connection({ connectionId, createdAt: 0, data: '' });
    this.#early.set(connectionId, early);
    return early;
  }

  /** @param {StreamInfo} info @returns {Stream} */
  stream(info) {
    const known = this.streams.get(info.streamId);
    if (known) return known;
    const stream = new Stream(info, this.connection({ connectionId: info.connectionId, createdAt: info.createdAt, data: '' }));
    this.streams.set(info.streamId, stream);
    return stream;
  }

  /** @param {string} streamId @returns {Stream | undefined} the removed stream */
  removeStream(streamId) {
    const stream = this.streams.get(streamId);
    this.streams.delete(streamId);
    return stream;
  }

  /** @param {string} connectionId @returns {Connection | undefined} the removed connection */
  removeConnection(connectionId) {
    const connection = this.connections.get(connectionId);
    this.connections.delete(connectionId);
    return connection;
  }

  /** @param {string} connectionId @returns {Stream[]} */
  streamsOf(connectionId) {
    return [...this.streams.values()].filter((stream) => stream.connection.connectionId === connectionId);
  }
}

/** A connection in OpenTok's format. Programs compare connections with `===`. */
export class Connection {
  /** @param {ConnectionInfo} info */
  constructor({ connectionId, createdAt, data }) {
    this.connectionId = connectionId;
    /** The same value as `connectionId`, under the name that OpenTok's documentation and samples use. */
    this.id = connectionId;
    /** Milliseconds since 1970. */
    this.creationTime = createdAt;
    /** The connection data from the token; empty until the connection's page of the roster has arrived. */
    this.data = data;
  }

  /** @param {ConnectionInfo} info */
  update({ createdAt, data }) {
    this.creationTime = createdAt;
    this.data = data;
  }
}

/** @typedef {'hasAudio' | 'hasVideo' | 'videoDimensions'} ChangedProperty */
/** @typedef {{changedProperty: ChangedProperty, oldValue: any, newValue: any}} Change */

/** A stream in OpenTok's format. */
export class Stream {
  /**
   * @param {StreamInfo} info
   * @param {Connection} connection
   */
  constructor(info, connection) {
    this.streamId = info.streamId;
    this.id = info.streamId;
    this.connection = connection;
    /** Milliseconds since 1970. */
    this.creationTime = info.createdAt;
    this.name = info.name;
    /** The initials to show while the video is off; empty if the publisher gave none. */
    this.initials = info.initials ?? '';
    this.hasAudio = info.hasAudio;
    this.hasVideo = info.hasVideo;
    this.videoDimensions = { width: info.width ?? 0, height: info.height ?? 0 };
    this.videoType = info.videoType ?? undefined;
    /** The frames per second that the publisher requested from its camera; undefined if it did not request any. */
    this.frameRate = info.frameRate;
    /**
     * The server's judgment of the publisher's uplink.
     * @type {import('../media/condition.js').Judgment}
     */
    this.uplink = good;
  }

  /**
   * Applies the server's current values, and returns what has changed.
   * @param {StreamInfo} info
   * @returns {Change[]}
   */
  update(info) {
    const { width, height } = this.videoDimensions;
    /** @type {Change[]} */
    const changes = [];
    for (const changedProperty of /** @type {const} */ (['hasAudio', 'hasVideo'])) {
      if (this[changedProperty] === info[changedProperty]) continue;
      changes.push({ changedProperty, oldValue: this[changedProperty], newValue: info[changedProperty] });
      this[changedProperty] = info[changedProperty];
    }
    const videoDimensions = { width: info.width ?? 0, height: info.height ?? 0 };
    if (videoDimensions.width !== width || videoDimensions.height !== height) {
      changes.push({ changedProperty: 'videoDimensions', oldValue: this.videoDimensions, newValue: videoDimensions });
      this.videoDimensions = videoDimensions;
    }
    return changes;
  }
}
