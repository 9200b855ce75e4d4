// Notifications of a call: by this page while it is out of sight, by the service worker when there is no page.
import { disablePush, enablePush, pushState } from '../../lib/index.js';

/** @typedef {import('./types.js').Push} Push */

export class Notifications {
  /** @type {Promise<ServiceWorkerRegistration | null>} */
  #worker = Promise.resolve(null);
  /** @type {string | null} the call whose notification is shown */
  #shown = null;
  /** @type {Notification | null} */
  #plain = null;

  /** @param {import('./strings.js').NearbyStrings['notification']} words @param {boolean} guest its identity ends with its tab */
  constructor(words, guest) {
    this.words = words;
    this.guest = guest;
  }

  start() {
    if (!('serviceWorker' in navigator)) return;
    this.#worker = navigator.serviceWorker.register('/sw.js').catch(() => null);
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
   * To be called from a click.
   * @param {any} client @returns {Promise<Push>}
   */
  async enable(client) {
    if (await Notification.requestPermission() !== 'granted') return 'refused';
    const serviceWorker = await this.#worker;
    if (this.guest || !serviceWorker) return 'onPage';
    try {
      await enablePush(client, { serviceWorker });
      return 'on';
    } catch (error) {
      // A page that is open still notifies.
      if (/** @type {any} */ (error)?.code === 'push_unsupported') return 'onPage';
      throw error;
    }
  }

  /** @param {any} client @returns {Promise<Push>} */
  async disable(client) {
    const serviceWorker = await this.#worker;
    // The subscription is that of the person whose browser it is.
    if (serviceWorker && !this.guest) await disablePush(client, { serviceWorker });
    return 'off';
  }

  /**
   * Shows the call that rings while nobody sees the page, and takes it away again.
   * @param {{id: string, name: string} | null} call
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
    const options = { body: this.words.body(wanted.name), tag: wanted.id, icon: '/app/favicon.svg', requireInteraction: true, data: { callId: wanted.id, guest: this.guest } };
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
      // Phones notify through the worker alone, which is not there yet.
    }
  }
}
