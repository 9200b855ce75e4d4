// Sends the requests of `People` and `Calls`. After the connection was replaced, they wait until `People` has sent
// `presence.appear` again, because the server rejects them before that.

import { deferred } from '../deferred.js';
import { isRestart } from '../errors.js';

/** @typedef {import('../signaling/messages.js').Message} Message */

export class Questions {
  #client;
  /** @type {ReturnType<typeof deferred> | null} pending from the loss of the connection until we have appeared again */
  #gate = null;

  /** @param {import('../signaling/client.js').Client} client */
  constructor(client) {
    this.#client = client;
  }

  /** Makes requests wait, because the connection was lost. */
  hold() {
    this.#gate ??= deferred();
  }

  /** Lets requests continue, because this person is online again or the client is closed. */
  release() {
    this.#gate?.resolve();
    this.#gate = null;
  }

  /** Settles when a request would be sent immediately. */
  async released() {
    await this.#gate?.promise;
  }

  /**
   * Sends a request, after waiting until this person is online again if necessary. Sends it again if the connection is
   * replaced before the answer, unless `again` is false.
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
