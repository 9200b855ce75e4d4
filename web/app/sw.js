// The service worker: wakes for a push, shows that somebody calls, and opens the page that rings. A push names nobody and
// says nothing else; who it is, the page learns from the server. Served at /sw.js, so that it may open every page. A plain
// script and no module: not every browser has service workers of modules.
'use strict';

(() => {
  const worker = /** @type {any} */ (self);

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
    event.waitUntil(open(event.notification.data?.callId));
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
    const pages = await nearbyPages();
    // A page that somebody looks at rings by itself.
    if (pages.some((page) => page.visibilityState === 'visible')) return;
    const rings = kind === 'incoming';
    await worker.registration.showNotification(words.title, {
      body: words[kind], tag: callId ?? 'call', icon: '/app/favicon.svg', data: { callId },
      requireInteraction: rings, renotify: rings, vibrate: rings ? [400, 200, 400, 200, 400] : [],
    });
  }

  /** @param {string | undefined} callId */
  async function open(callId) {
    const [page] = await nearbyPages();
    if (page) await page.focus();
    else await worker.clients.openWindow(callId ? `/nearby#call=${encodeURIComponent(callId)}` : '/nearby');
  }

  /** @returns {Promise<any[]>} */
  async function nearbyPages() {
    const all = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
    return all.filter((/** @type {{url: string}} */ { url }) => new URL(url).pathname === '/nearby');
  }
})();
