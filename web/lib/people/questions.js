// Sends the requests of `People` and `Calls`. After the loss of the connection, requests wait until `People` has sent
// `presence.appear` on a new connection, because the server would reject them before that.

import { deferred } from '../deferred.js';
import { isRestart } from '../errors.js';

/** @typedef {import('../signaling/messages.js').Message} Message */

export class Questions {
  #client;
  /**
   * What requests wait for after the loss of the connection; null if they need not wait.
   * @type {ReturnType<typeof deferred> | null}
   */
  #gate = null;

  /** @param {import('../signaling/client.js').Client} client */
  constructor(client) {
    this.#client = client;
  }

  /** Makes requests wait until `release`. Call this when the connection was lost. */
  hold() {
    this.#gate ??= deferred();
  }

  /**
   * Sends the waiting requests. Call this after `presence.appear` was sent again if necessary, or when the client is
   * closed.
   */
  release() {
    this.#gate?.resolve();
    this.#gate = null;
  }

  /** Resolves when requests need not wait. */
  async released() {
    await this.#gate?.promise;
  }

  /**
   * Sends a request, or waits for `release` first if requests must wait. If the connection is replaced before the
   * answer arrives, sends the request again. Exception: if `again` is false, rejects with `connection_restarted`.
   * @param {string} type
   * @param {Record<string, unknown>} [members]
   * @param {boolean} [again] false for requests that must not happen twice
   * @returns {Promise<Message>}
   */
  ask(type, members = {}, again = true) {
    const ask = () => this.#client.request(type, members);
    // Send immediately if requests need not wait, because callers rely on the order of their requests.
    const answer = this.#gate ? this.#gate.promise.then(ask) : ask();
    if (!again) return answer;
    return answer.catch((error) => {
      if (!isRestart(error)) throw error;
      return this.ask(type, members);
    });
  }
}
