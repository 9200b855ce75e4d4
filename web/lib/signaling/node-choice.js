// Chooses the node of a cluster for each socket (protocol §3.1). Uses no socket and no clock.

/** How long to try one node before a socket to any node (milliseconds), counted from the first attempt. */
export const nodeMs = 2000;
/** Maximum number of redirects within the period (milliseconds). Two nodes that name each other would otherwise never stop. */
export const maxRedirects = 3;
export const redirectPeriodMs = 30_000;

export class NodeChoice {
  /** @type {string | undefined} the node of the last welcome */
  #home;
  /** @type {string | undefined} the node to connect to; undefined for any */
  #wanted;
  /** @type {number | null} when to try any node instead; null before the first attempt */
  #until = null;
  /** @type {number[]} the times of the latest redirects */
  #redirects = [];

  /** The node that has the connection to resume; undefined if the server has no nodes. */
  get home() {
    return this.#home;
  }

  /** When the attempts to connect to one node end; null if the current attempt is not limited. */
  get until() {
    return this.#until;
  }

  /**
   * Returns the node for a socket that is opened now; undefined for any. After `nodeMs` without a welcome, one attempt may
   * go to any node. If that fails too, it was the network, so begin again: only the home node can resume.
   * @param {number} now
   */
  next(now) {
    if (this.#wanted === undefined) return undefined;
    if (this.#until !== null && this.#until <= now) {
      this.#until = null;
      return undefined;
    }
    this.#until ??= now + nodeMs;
    return this.#wanted;
  }

  /** @param {string | undefined} at the node that sent its welcome */
  welcomed(at) {
    this.#home = at;
    this.#wanted = at;
    this.#until = null;
  }

  /**
   * Forgets the node of the last welcome, because it has sent this client away and keeps no connection to resume. The next socket can go to
   * any node.
   */
  forget() {
    this.welcomed(undefined);
  }

  /** Gives the node its full time again, because the network changed. */
  hurry() {
    this.#until = null;
  }

  /**
   * Chooses the node that the server named.
   * @param {string} at
   * @param {{now: number, isConnected: boolean}} state
   * @returns {boolean} false if the client must not move
   */
  redirect(at, { now, isConnected }) {
    if (isConnected && at === this.#home) return false;
    this.#redirects = this.#redirects.filter((time) => now - time < redirectPeriodMs);
    if (this.#redirects.length >= maxRedirects) return false;
    this.#redirects.push(now);
    this.#wanted = at;
    this.#until = null;
    return true;
  }
}
