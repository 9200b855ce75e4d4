// Who and what is in a session. Its one invariant: one object for each connection and each stream, from its first mention on.

import { Connection } from './connection.js';
import { Stream } from './stream.js';

/** @typedef {import('./messages.js').ConnectionInfo} ConnectionInfo */
/** @typedef {import('./messages.js').StreamInfo} StreamInfo */

export class Roster {
  /** @type {Map<string, Connection>} */
  connections = new Map();
  /** @type {Map<string, Stream>} */
  streams = new Map();

  /** @param {ConnectionInfo} info @returns {Connection} */
  connection(info) {
    const connection = this.connections.get(info.connectionId) ?? new Connection(info);
    this.connections.set(info.connectionId, connection);
    return connection;
  }

  /** @param {StreamInfo} info @returns {Stream} */
  stream(info) {
    const known = this.streams.get(info.streamId);
    if (known) return known;
    const stream = new Stream(info, this.connection({ connectionId: info.connectionId, createdAt: info.createdAt, data: '' }));
    this.streams.set(info.streamId, stream);
    return stream;
  }

  /** @param {string} streamId @returns {Stream | undefined} the stream that is gone now */
  removeStream(streamId) {
    const stream = this.streams.get(streamId);
    this.streams.delete(streamId);
    return stream;
  }

  /** @param {string} connectionId @returns {Connection | undefined} the connection that is gone now */
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
