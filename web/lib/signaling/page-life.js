// Events of the page around a client: network changes, visibility, and leaving the page.

/**
 * @typedef {object} PageHooks
 * @property {() => void} online called when the browser has a network again: reconnect now, ignoring the backoff
 * @property {() => void} offline called when the browser has no network: check the socket. Browsers report this early,
 *   but sometimes wrongly (localhost works offline)
 * @property {() => void} shown called when the page is visible again; timers ran late while it was hidden
 * @property {() => void} left called when the page is unloading: leave now, because there is no later chance
 * @property {() => void} returned called when the page was restored from the back/forward cache
 */

/** @typedef {Pick<EventTarget, 'addEventListener' | 'removeEventListener'>} Page */

/**
 * Calls the hooks on the events of a page.
 * @param {Page | undefined} page the window; undefined to watch nothing
 * @param {PageHooks} hooks
 * @returns {() => void} a function that stops watching
 */
export function watchPage(page, hooks) {
  if (page === undefined) return () => {};
  /** @type {Record<string, (event: any) => void>} */
  const handlers = {
    online: () => hooks.online(),
    offline: () => hooks.offline(),
    pagehide: () => hooks.left(),
    pageshow: (event) => { if (event.persisted) hooks.returned(); },
    // This event bubbles from the document to the window.
    visibilitychange: () => { if (globalThis.document?.visibilityState !== 'hidden') hooks.shown(); },
  };
  for (const [name, handler] of Object.entries(handlers)) page.addEventListener(name, handler);
  return () => {
    for (const [name, handler] of Object.entries(handlers)) page.removeEventListener(name, handler);
  };
}
