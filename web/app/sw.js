// The service worker: receives a push, shows a notification for the call, and opens the page. A push names no caller; the page
// gets the name from the server. Served beside the pages, at /sw.js, so that its scope covers all of them. A classic script, because
// not every browser supports modules in service workers.
'use strict';

(() => {
  const worker = /** @type {any} */ (self);

  /** The path under which the server is deployed, without a slash at its end, as in `shared/base.js`. */
  const base = new URL('.', worker.location.href).pathname.slice(0, -1);

  /** How long an open page has to answer (milliseconds). */
  const answerTimeout = 1000;

  /** The worker has its own text, because the pages' catalogs are modules, which it cannot load. */
  const en = {
    title: 'Confab',
    incoming: 'Incoming call. Open to answer.',
    missed: 'You missed a call.',
    ended: 'A call to you has ended. Open Confab to see your calls.',
  };
  /** @type {Record<string, typeof en>} */
  const catalogs = { en };
  const language = worker.navigator.languages?.map((/** @type {string} */ tag) => tag.split('-')[0]).find((/** @type {string} */ tag) => tag in catalogs);
  const words = catalogs[language ?? 'en'];

  worker.addEventListener('install', () => worker.skipWaiting());
  worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

  worker.addEventListener('push', (/** @type {any} */ event) => event.waitUntil(pushed(read(event.data))));
  worker.addEventListener('notificationclick', (/** @type {any} */ event) => {
    event.notification.close();
    event.waitUntil(open(event.notification.data ?? {}));
  });

  /**
   * Reads a push. An unreadable one counts as `ended`, because browsers require a notification for every push.
   * @param {any} data
   * @returns {{callId?: string, kind: 'incoming' | 'missed' | 'ended'}}
   */
  function read(data) {
    try {
      const { callId, kind } = data.json();
      // `over` means that the call was answered elsewhere or canceled. Browsers require a notification for this push
      // too.
      const known = { incoming: 'incoming', missed: 'missed', over: 'ended' };
      return {
        callId: typeof callId === 'string' ? callId : undefined,
        kind: /** @type {any} */ (known)[kind] ?? 'ended',
      };
    } catch {
      return { kind: 'ended' };
    }
  }

  /** @param {{callId?: string, kind: 'incoming' | 'missed' | 'ended'}} push */
  async function pushed({ callId, kind }) {
    // Remove the old notification: this call no longer rings.
    if (callId && kind !== 'incoming') {
      for (const old of await worker.registration.getNotifications({ tag: callId })) old.close();
    }
    // Do not notify if a visible page is online, because that page rings.
    const looked = (await nearbyPages()).filter((/** @type {any} */ { visibilityState }) => visibilityState === 'visible');
    if ((await Promise.all(looked.map(answerOf))).includes(true)) return;
    const rings = kind === 'incoming';
    await worker.registration.showNotification(words.title, {
      body: words[kind], tag: callId ?? 'call', icon: `${base}/app/favicon.svg`, data: { callId },
      requireInteraction: rings, renotify: rings, vibrate: rings ? [400, 200, 400, 200, 400] : [],
    });
  }

  /** @param {{callId?: string, guest?: boolean}} about guest: whether a guest's page showed the notification, through this worker */
  async function open({ callId, guest = false }) {
    const [page] = await nearbyPages(guest);
    if (page) {
      // If the user went offline on that page, it goes online again, so that the call can be answered.
      page.postMessage({ type: 'call', callId });
      await page.focus();
    } else {
      await worker.clients.openWindow(base + (callId && !guest ? `/nearby#call=${encodeURIComponent(callId)}` : '/nearby'));
    }
  }

  /**
   * Asks a page whether it is online and rings for calls.
   * @param {any} page
   * @returns {Promise<boolean | null>} null if the page does not answer in time
   */
  function answerOf(page) {
    return new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      const answered = (/** @type {boolean | null} */ is) => {
        clearTimeout(timer);
        port1.close();
        resolve(is);
      };
      const timer = setTimeout(() => answered(null), answerTimeout);
      port1.onmessage = ({ data }) => answered(data === true);
      page.postMessage({ type: 'rings' }, [port2]);
    });
  }

  /**
   * Returns the open pages that can ring for calls: by default those of the browser's user, or, if `guest` is true,
   * those of guests, who are different people.
   * @param {boolean} [guest]
   * @returns {Promise<any[]>}
   */
  async function nearbyPages(guest = false) {
    const all = /** @type {any[]} */ (await worker.clients.matchAll({ type: 'window', includeUncontrolled: true }));
    const at = (/** @type {string} */ path) => all.filter((/** @type {{url: string}} */ { url }) => {
      const { pathname, searchParams } = new URL(url);
      return pathname === base + path && searchParams.has('guest') === guest;
    });
    // If only one feature is enabled, its page can be at / too. Other pages at / do not answer.
    const home = at('/');
    const answers = await Promise.all(home.map(answerOf));
    return [...at('/nearby'), ...home.filter((_page, index) => answers[index] !== null)];
  }
})();
