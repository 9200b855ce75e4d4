// The service worker: wakes for a push, shows that somebody calls, and opens the page that rings. A push names nobody and
// says nothing else; who it is, the page learns from the server. Served at /sw.js, so that it may open every page. A plain
// script and no module: not every browser has service workers of modules.
'use strict';

(() => {
  const worker = /** @type {any} */ (self);

  /** So long an open page has to answer (milliseconds). */
  const patience = 1000;

  /** Its own words: the pages' catalogues are modules. */
  const en = {
    title: 'Confab',
    incoming: 'Somebody is calling you. Open to answer.',
    missed: 'You missed a call.',
    ended: 'Somebody called you.',
  };
  /** @type {Record<string, typeof en>} */
  const catalogues = { en };
  const language = worker.navigator.languages?.map((/** @type {string} */ tag) => tag.split('-')[0]).find((/** @type {string} */ tag) => tag in catalogues);
  const words = catalogues[language ?? 'en'];

  worker.addEventListener('install', () => worker.skipWaiting());
  worker.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));

  worker.addEventListener('push', (/** @type {any} */ event) => event.waitUntil(pushed(read(event.data))));
  worker.addEventListener('notificationclick', (/** @type {any} */ event) => {
    event.notification.close();
    event.waitUntil(open(event.notification.data ?? {}));
  });

  /** @param {any} data @returns {{callId?: string, kind: 'incoming' | 'missed' | 'ended'}} whatever came, something is shown: browsers insist */
  function read(data) {
    try {
      const { callId, kind } = data.json();
      // A call that is over was answered elsewhere, or taken back: something must be shown all the same.
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
    // It rings no more, whoever shows what became of it.
    if (callId && kind !== 'incoming') {
      for (const old of await worker.registration.getNotifications({ tag: callId })) old.close();
    }
    // A page that somebody looks at rings by itself, if one is there for others on it.
    const looked = (await nearbyPages()).filter((/** @type {any} */ { visibilityState }) => visibilityState === 'visible');
    if ((await Promise.all(looked.map(isPresent))).includes(true)) return;
    const rings = kind === 'incoming';
    await worker.registration.showNotification(words.title, {
      body: words[kind], tag: callId ?? 'call', icon: '/app/favicon.svg', data: { callId },
      requireInteraction: rings, renotify: rings, vibrate: rings ? [400, 200, 400, 200, 400] : [],
    });
  }

  /** @param {{callId?: string, guest?: boolean}} about a guest's page shows its own notifications through this worker */
  async function open({ callId, guest = false }) {
    const [page] = await nearbyPages(guest);
    if (page) {
      // Who had gone offline there is present again for the call.
      page.postMessage({ type: 'call', callId });
      await page.focus();
    } else {
      await worker.clients.openWindow(callId && !guest ? `/nearby#call=${encodeURIComponent(callId)}` : '/nearby');
    }
  }

  /**
   * Asks the page; one that does not answer is taken to be deaf.
   * @param {any} page @returns {Promise<boolean>}
   */
  function isPresent(page) {
    return new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      const answered = (/** @type {boolean} */ is) => {
        clearTimeout(timer);
        port1.close();
        resolve(is);
      };
      const timer = setTimeout(() => answered(false), patience);
      port1.onmessage = ({ data }) => answered(data === true);
      page.postMessage({ type: 'rings' }, [port2]);
    });
  }

  /**
   * Those of the person who is woken: a guest is somebody else.
   * @param {boolean} [guest] @returns {Promise<any[]>}
   */
  async function nearbyPages(guest = false) {
    const all = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
    return all.filter((/** @type {{url: string}} */ { url }) => {
      const { pathname, searchParams } = new URL(url);
      return pathname === '/nearby' && searchParams.has('guest') === guest;
    });
  }
})();
