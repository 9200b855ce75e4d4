// Learns from the server when a view of the operator's page has changed. The server sends a stream of lines. While there is none, because
// the server has no place left or a proxy holds the lines back, the page loads its views every few seconds as it does at first.

/** Without a line for this time (milliseconds), the stream counts as held back: the server sends one at least every 5 s. */
export const silence = 15_000;
/** How long to wait before asking again after a stream has ended (milliseconds). */
export const pause = 5000;
/** The same if there was no line: another attempt will probably fail too. */
export const longPause = 60_000;
/** The maximum length of a line. */
const longest = 1000;

/**
 * Splits text that arrives in pieces into the views that its lines name. Throws if a line is too long, or is not one of the server's.
 * @returns {(piece: string) => string[][]}
 */
export function lineReader() {
  let rest = '';
  return (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > longest) throw new Error('The line is too long.');
    return lines.map((line) => {
      const { changed } = JSON.parse(line);
      if (!Array.isArray(changed)) throw new Error('The line names no views.');
      return changed.map(String);
    });
  };
}

/**
 * @typedef {object} Tools
 * @property {(signal: AbortSignal) => Promise<ReadableStreamDefaultReader<Uint8Array>>} open requests the stream; rejects if there is none
 * @property {(views: string[]) => void} changed called with each line
 * @property {import('../../lib/clock.js').Clock} clock
 */

export class Changes {
  #tools;
  /** @type {AbortController | null} the running stream, or the wait for the next one */
  #running = null;
  #lastLine = -Infinity;

  /** @param {Tools} tools */
  constructor(tools) { this.#tools = tools; }

  /** Whether the server sends lines, so that nothing has to be loaded without one. */
  get isLive() { return this.#running !== null && this.#tools.clock.now() - this.#lastLine < silence; }

  /** @param {boolean} wanted whether to listen; the stream is closed otherwise */
  want(wanted) {
    if (wanted === (this.#running !== null)) return;
    this.#running?.abort();
    this.#running = null;
    this.#lastLine = -Infinity;
    if (!wanted) return;
    this.#running = new AbortController();
    this.#run(this.#running.signal);
  }

  /** @param {AbortSignal} signal */
  async #run(signal) {
    const { clock } = this.#tools;
    while (!signal.aborted) {
      const start = clock.now();
      await this.#listen(signal).catch(() => {});
      if (signal.aborted) return;
      await wait(this.#lastLine >= start ? pause : longPause, clock, signal);
    }
  }

  /** @param {AbortSignal} signal */
  async #listen(signal) {
    const { open, changed, clock } = this.#tools;
    // Ends a stream that is held back, also if it never begins.
    const own = new AbortController();
    const end = () => own.abort();
    signal.addEventListener('abort', end);
    let timer = clock.setTimeout(end, silence);
    try {
      const reader = await open(own.signal);
      const read = lineReader();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || own.signal.aborted) return;
        for (const views of read(decoder.decode(value, { stream: true }))) {
          this.#lastLine = clock.now();
          clock.clearTimeout(timer);
          timer = clock.setTimeout(end, silence);
          changed(views);
        }
      }
    } finally {
      own.abort();
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  }
}

/**
 * Waits, but not longer than until the signal.
 * @param {number} ms @param {import('../../lib/clock.js').Clock} clock @param {AbortSignal} signal @returns {Promise<void>}
 */
function wait(ms, clock, signal) {
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => end(), ms);
    const end = () => {
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    signal.addEventListener('abort', end);
  });
}
