// The last messages of a room's chat, bounded as on the server (protocol §15).

/** @typedef {import('../signaling/room-messages.js').RoomLine} RoomLine */

/**
 * The server sends people who join later a history with these limits. A page that stays open all day keeps no more
 * than that.
 */
export const maxLines = 100;
export const maxBytes = 16 * 1024;

const encoder = new TextEncoder();
/**
 * Returns the bytes of a line that count toward `maxBytes`. A file counts as 0, so that files do not displace
 * messages.
 * @param {RoomLine} line
 */
const sizeOf = ({ text, file }) => (file ? 0 : encoder.encode(text).length);

export class RoomChat {
  /** @type {RoomLine[]} oldest first */
  lines = [];
  #bytes = 0;

  /** @param {RoomLine} line */
  add(line) {
    this.lines.push(line);
    this.#bytes += sizeOf(line);
    while (this.#bytes > maxBytes) this.#remove(this.lines.findIndex(({ file }) => !file));
    while (this.lines.length > maxLines) this.#remove(0);
  }

  /** @param {number} index */
  #remove(index) {
    for (const line of this.lines.splice(index, 1)) this.#bytes -= sizeOf(line);
  }

  /** @param {string} fileId a file that was deleted */
  removeFile(fileId) {
    const index = this.lines.findIndex(({ file }) => file?.fileId === fileId);
    if (index >= 0) this.#remove(index);
  }

  /**
   * Adds the lines of a rejoined room that are not known yet. Keeps the local lines even if the room was created again and lacks them,
   * except those of files, because a file that the room no longer lists cannot be saved.
   * @param {RoomLine[]} lines
   * @returns {{fresh: RoomLine[], removed: string[]}} the new lines, and the ids of the removed files
   */
  catchUp(lines) {
    const listed = new Set(lines.map(({ file }) => file?.fileId));
    const removed = this.lines.flatMap(({ file }) => (file && !listed.has(file.fileId) ? [file.fileId] : []));
    for (const fileId of removed) this.removeFile(fileId);
    const known = new Set(this.lines.map(keyOf));
    const fresh = lines.filter((line) => !known.has(keyOf(line)));
    for (const line of fresh) this.add(line);
    return { fresh, removed };
  }
}

/** @param {RoomLine} line */
const keyOf = ({ connectionId, text, at }) => `${connectionId} ${at} ${text}`;
