// What happens to the page around a client: the network comes and goes, the tab is hidden and shown, the page is left.

/**
 * @typedef {object} PageHooks
 * @property {() => void} online try now, whatever the backoff says
 * @property {() => void} offline doubt the socket: a browser says so early, but also wrongly (localhost works offline)
 * @property {() => void} shown timers ran late while hidden
 * @property {() => void} left the person goes: tell the others now, there is no later
 * @property {() => void} returned the page was kept whole by the browser's back button cache
 */

/** @typedef {Pick<EventTarget, 'addEventListener' | 'removeEventListener'>} Page */

/**
 * @param {Page | undefined} page the window; nothing is watched where there is none
 * @param {PageHooks} hooks
 * @returns {() => void} stops watching
 */
export function watchPage(page, hooks) {
  if (page === undefined) return () => {};
  /** @type {Record<string, (event: any) => void>} */
  const handlers = {
    online: () => hooks.online(),
    offline: () => hooks.offline(),
    pagehide: () => hooks.left(),
    pageshow: (event) => { if (event.persisted) hooks.returned(); },
    // It bubbles from the document to the window.
    visibilitychange: () => { if (globalThis.document?.visibilityState !== 'hidden') hooks.shown(); },
  };
  for (const [name, handler] of Object.entries(handlers)) page.addEventListener(name, handler);
  return () => {
    for (const [name, handler] of Object.entries(handlers)) page.removeEventListener(name, handler);
  };
}
