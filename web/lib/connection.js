// A connection of a session, as OpenTok shows it. There is one object for each: programs compare them with `===`.

export class Connection {
  /** @param {import('./messages.js').ConnectionInfo} info */
  constructor({ connectionId, createdAt, data }) {
    this.connectionId = connectionId;
    /** The same under the name that OpenTok's own prose and samples use. */
    this.id = connectionId;
    /** Milliseconds since 1970. */
    this.creationTime = createdAt;
    /** What the token said about its holder. */
    this.data = data;
  }
}
