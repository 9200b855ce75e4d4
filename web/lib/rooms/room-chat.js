// The last messages of a room's chat, bounded as on the server (protocol §15).

/** @typedef {import('../line/room-messages.js').RoomLine} RoomLine */

/** What the server sends to people who join later. A page that stays open all day must not keep more. */
const maxLines = 100;
const maxBytes = 16 * 1024;

const encoder = new TextEncoder();
/** @param {RoomLine} line */
const sizeOf = ({ displayName, text }) => encoder.encode(displayName + text).length;

export class RoomChat {
  /** @type {RoomLine[]} oldest first */
  lines = [];
  #bytes = 0;

  /** @param {RoomLine} line */
  add(line) {
    this.lines.push(line);
    this.#bytes += sizeOf(line);
    while (this.lines.length > maxLines || this.#bytes > maxBytes) {
      const first = this.lines.shift();
      if (!first) return;
      this.#bytes -= sizeOf(first);
    }
  }

  /**
   * Adds the lines that a rejoined room has, except those that are known. A room that began again has none of ours, which stay.
   * @param {RoomLine[]} lines
   * @returns {RoomLine[]} those that were not known
   */
  catchUp(lines) {
    const known = new Set(this.lines.map(keyOf));
    const fresh = lines.filter((line) => !known.has(keyOf(line)));
    for (const line of fresh) this.add(line);
    return fresh;
  }
}

/** @param {RoomLine} line */
const keyOf = ({ connectionId, text, at }) => `${connectionId} ${at} ${text}`;
