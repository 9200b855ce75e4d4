// A stream of a session, as OpenTok shows it. There is one object for each, and it changes with its stream.

/** @typedef {'hasAudio' | 'hasVideo' | 'videoDimensions'} ChangedProperty */
/** @typedef {{changedProperty: ChangedProperty, oldValue: any, newValue: any}} Change */

export class Stream {
  /**
   * @param {import('./messages.js').StreamInfo} info
   * @param {import('./connection.js').Connection} connection
   */
  constructor(info, connection) {
    this.streamId = info.streamId;
    this.id = info.streamId;
    this.connection = connection;
    /** Milliseconds since 1970. */
    this.creationTime = info.createdAt;
    this.name = info.name;
    this.hasAudio = info.hasAudio;
    this.hasVideo = info.hasVideo;
    this.videoDimensions = { width: info.width ?? 0, height: info.height ?? 0 };
    this.videoType = info.videoType ?? undefined;
  }

  /**
   * Takes over what the server says now.
   * @param {import('./messages.js').StreamInfo} info
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
