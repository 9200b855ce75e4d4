// What `People` and `Calls` ask the server. A question waits while the server does not know us: after our place there was lost,
// until `People` has said again who we are.

import { deferred } from '../deferred.js';
import { isRestart } from '../errors.js';

/** @typedef {import('../line/messages.js').Message} Message */

export class Questions {
  #client;
  /** @type {ReturnType<typeof deferred> | null} from the loss of our place until we are there again */
  #gate = null;

  /** @param {import('../line/client.js').Client} client */
  constructor(client) {
    this.#client = client;
  }

  /** Our place is lost: questions wait. */
  hold() {
    this.#gate ??= deferred();
  }

  /** The server knows us again, or there is nobody to ask any more. */
  release() {
    this.#gate?.resolve();
    this.#gate = null;
  }

  /** Settles when a question would go out at once. */
  async released() {
    await this.#gate?.promise;
  }

  /**
   * Asks once the server knows us. What it may not have heard, because the line began anew, is asked again.
   * @param {string} type
   * @param {Record<string, unknown>} [members]
   * @param {boolean} [again] not what must not happen twice
   * @returns {Promise<Message>}
   */
  ask(type, members = {}, again = true) {
    const ask = () => this.#client.request(type, members);
    // At once where nothing is in the way: whoever asks two things wants them in this order.
    const answer = this.#gate ? this.#gate.promise.then(ask) : ask();
    if (!again) return answer;
    return answer.catch((error) => {
      if (!isRestart(error)) throw error;
      return this.ask(type, members);
    });
  }
}
