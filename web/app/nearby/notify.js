// Notifications of a call: from this page while it is hidden, or from the service worker when a push arrives.
import { at } from '../shared/base.js';
import { disablePush, enablePush, pushState } from '../../lib/index.js';

/** @typedef {import('./types.js').Push} Push */

export class Notifications {
  /** @type {Promise<ServiceWorkerRegistration | null>} */
  #worker = Promise.resolve(null);
  /** @type {string | null} the id of the call whose notification is shown */
  #shown = null;
  /** @type {Notification | null} */
  #plain = null;

  /**
   * @param {import('./strings.js').NearbyStrings['notification']} words
   * @param {boolean} guest whether the user is a guest. A guest gets no push, because a guest's identity ends with
   *   the tab
   */
  constructor(words, guest) {
    this.words = words;
    this.guest = guest;
  }

  start() {
    if (!('serviceWorker' in navigator)) return;
    this.#worker = navigator.serviceWorker.register(at('/sw.js')).catch(() => null);
  }

  /** @param {any} client @param {boolean} wanted @returns {Promise<Push>} */
  async state(client, wanted) {
    if (!('Notification' in window)) return 'unavailable';
    if (Notification.permission === 'denied') return 'refused';
    if (!wanted || Notification.permission !== 'granted') return 'off';
    const serviceWorker = await this.#worker;
    if (this.guest || !serviceWorker) return 'onPage';
    return await pushState(client, { serviceWorker }) === 'on' ? 'on' : 'onPage';
  }

  /**
   * Asks the user for permission, and registers for pushes if possible. Call this in a click handler, because browsers
   * require a user gesture.
   * @param {any} client
   * @returns {Promise<Push>}
   */
  async enable(client) {
    if (await Notification.requestPermission() !== 'granted') return 'refused';
    const serviceWorker = await this.#worker;
    if (this.guest || !serviceWorker) return 'onPage';
    try {
      await enablePush(client, { serviceWorker });
      return 'on';
    } catch (error) {
      // Without push, the page can still show notifications while it is open.
      if (/** @type {any} */ (error)?.code === 'push_unsupported') return 'onPage';
      throw error;
    }
  }

  /** @param {any} client @returns {Promise<Push>} */
  async disable(client) {
    const serviceWorker = await this.#worker;
    // Keep the push subscription if a guest turns notifications off: it belongs to this browser's user, not to a
    // guest.
    if (serviceWorker && !this.guest) await disablePush(client, { serviceWorker });
    return 'off';
  }

  /**
   * Shows a notification for a call that rings while the page is hidden, and removes it afterwards.
   * @param {{id: string, name: string} | null} call the call that rings, or null
   */
  async show(call) {
    const wanted = call && document.hidden && 'Notification' in window && Notification.permission === 'granted' ? call : null;
    if (this.#shown === (wanted?.id ?? null)) return;
    const before = this.#shown;
    this.#shown = wanted?.id ?? null;
    const worker = await this.#worker;
    this.#plain?.close();
    this.#plain = null;
    if (before && worker) for (const old of await worker.getNotifications({ tag: before })) old.close();
    if (!wanted || this.#shown !== wanted.id) return;
    const options = { body: this.words.body(wanted.name), tag: wanted.id, icon: at('/app/favicon.svg'), requireInteraction: true, data: { callId: wanted.id, guest: this.guest } };
    if (worker?.active) await worker.showNotification(this.words.title, options).catch(() => {});
    else this.#showPlain(options);
  }

  /** @param {NotificationOptions} options */
  #showPlain(options) {
    try {
      const plain = this.#plain = new Notification(this.words.title, options);
      plain.addEventListener('click', () => {
        window.focus();
        plain.close();
      });
    } catch {
      // Phones notify only through the service worker, which is not ready yet.
    }
  }
}
