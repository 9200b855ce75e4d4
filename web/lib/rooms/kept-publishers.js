// The publishers that a room sends. They belong to the application and outlive sessions: while they are kept, the end of a
// session does not destroy them.

/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/**
 * @typedef {object} KeptHooks
 * @property {(publisher: Publisher) => void} muted a host muted it
 * @property {(publisher: Publisher, reason: string) => void} dropped it is no longer published, and not because of us
 */

export class KeptPublishers {
  #hooks;
  /** @type {Map<Publisher, Record<string, (event: any) => void>>} with their handlers */
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
    // The screen or all devices stopped: the publisher ends.
    if (reason === 'mediaStopped') return this.#drop(publisher, reason);
    const isScreen = stream.videoType === 'screen';
    // A host ended it. The default action ends a screen share for good, so that the browser no longer says that it is shared.
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
