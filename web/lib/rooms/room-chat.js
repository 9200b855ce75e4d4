// The most recent lines of a room's chat, with the same limits as on the server (protocol §15).

/** @typedef {import('../signaling/room-messages.js').RoomLine} RoomLine */

/**
 * Maximum number of lines, and of bytes of their text. These are the limits of the history that the server sends to
 * people who join later. A page that stays open all day keeps no more than that.
 */
export const maxLines = 100;
export const maxBytes = 16 * 1024;

const encoder = new TextEncoder();
/**
 * Returns how many bytes of a line count toward `maxBytes`. A file counts as 0 bytes, so that files do not displace
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
   * Adds the lines of a joined room that are not known yet. Keeps local lines that the room does not have, because it
   * may have been created again. Exception: removes local lines of files that the room no longer lists, because those
   * files cannot be downloaded.
   * @param {RoomLine[]} lines the lines that the room has
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
