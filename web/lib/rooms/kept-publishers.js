// The publishers that a room publishes. They belong to the application and outlive sessions: the end of a session does not destroy
// a publisher in this collection.

/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/**
 * @typedef {object} KeptHooks
 * @property {(publisher: Publisher) => void} muted called when a host has muted the publisher
 * @property {(publisher: Publisher, reason: string) => void} dropped called when the publisher is no longer published,
 *   unless a local request is the reason
 */

export class KeptPublishers {
  #hooks;
  /** @type {Map<Publisher, Record<string, (event: any) => void>>} the publishers and the handlers attached to them */
  #kept = new Map();

  /** @param {KeptHooks} hooks */
  constructor(hooks) {
    this.#hooks = hooks;
  }

  /** @returns {Publisher[]} */
  get all() {
    return [...this.#kept.keys()];
  }

  /** @param {Publisher} publisher */
  has(publisher) {
    return this.#kept.has(publisher);
  }

  /** @param {Publisher} publisher */
  add(publisher) {
    if (this.#kept.has(publisher)) return;
    const handlers = {
      muteForced: () => this.#hooks.muted(publisher),
      streamDestroyed: (/** @type {any} */ event) => this.#ended(publisher, event),
      destroyed: () => this.#drop(publisher, 'mediaStopped'),
    };
    this.#kept.set(publisher, handlers);
    publisher.on(handlers);
  }

  /** @param {Publisher} publisher */
  delete(publisher) {
    const handlers = this.#kept.get(publisher);
    if (!handlers) return;
    this.#kept.delete(publisher);
    for (const [name, handler] of Object.entries(handlers)) publisher.off(name, handler);
  }

  clear() {
    for (const publisher of this.all) this.delete(publisher);
  }

  /** @param {Publisher} publisher @param {any} event */
  #ended(publisher, event) {
    const { reason, stream } = event;
    // The screen share or all devices of the publisher stopped, so let the default action destroy it.
    if (reason === 'mediaStopped') return this.#drop(publisher, reason);
    const isScreen = stream.videoType === 'screen';
    // Prevent the default action, which destroys the publisher. Exception: if a host has ended a screen share, it must
    // be destroyed, so that the browser no longer shows the screen as shared.
    if (reason !== 'forceUnpublished' || !isScreen) event.preventDefault();
    if (reason === 'forceUnpublished') this.#drop(publisher, reason);
  }

  /** @param {Publisher} publisher @param {string} reason */
  #drop(publisher, reason) {
    if (!this.#kept.has(publisher)) return;
    this.delete(publisher);
    this.#hooks.dropped(publisher, reason);
  }
}
