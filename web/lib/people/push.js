// Web Push: wakes a browser for a call while the page is closed.

import { ConfabError } from '../errors.js';

/** @typedef {import('../signaling/client.js').Client} Client */
/** @typedef {{serviceWorker: ServiceWorkerRegistration}} PushOptions the service worker that shows the notification */
/** @typedef {'unsupported' | 'denied' | 'off' | 'on'} PushState */

/**
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<PushState>} `unsupported`: by this browser or this server; `denied`: by the user, in the browser's settings
 */
export async function pushState(client, { serviceWorker }) {
  const key = client.welcome?.push?.vapidKey;
  if (key === undefined || !isSupported(serviceWorker)) return 'unsupported';
  if (Notification.permission === 'denied') return 'denied';
  const subscription = await serviceWorker.pushManager.getSubscription();
  return subscription && isFor(subscription, bytesOf(key)) && Notification.permission === 'granted' ? 'on' : 'off';
}

/**
 * Enables push notifications: requests permission from the user, subscribes, and registers the subscription with the
 * server. Call this in a click handler, because browsers require one for the request. If push is enabled already, only
 * registers with the server again.
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<void>} rejects with `push_unsupported`, `push_denied`, or the server's `push_not_allowed`, `push_invalid`
 */
export async function enablePush(client, { serviceWorker }) {
  await client.connect();
  const key = client.welcome?.push?.vapidKey;
  if (key === undefined || !isSupported(serviceWorker)) {
    const message = 'This browser does not support push notifications. Keep the page open to receive calls.';
    throw new ConfabError({ code: 'push_unsupported', message });
  }
  if (await Notification.requestPermission() !== 'granted') {
    const message = 'Notifications are blocked for this page. Allow them in the browser’s settings to receive calls.';
    throw new ConfabError({ code: 'push_denied', message });
  }
  const { endpoint, keys } = (await subscribe(serviceWorker.pushManager, bytesOf(key))).toJSON();
  await client.request('push.register', { kind: 'web', endpoint, p256dh: keys?.p256dh, auth: keys?.auth });
}

/**
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<void>}
 */
export async function disablePush(client, { serviceWorker }) {
  const subscription = await serviceWorker.pushManager?.getSubscription();
  if (!subscription) return;
  const { endpoint } = subscription;
  // Unsubscribe in the browser first: then no push arrives, even if the request fails.
  await subscription.unsubscribe();
  await client.request('push.unregister', { endpoint });
}

/** @param {PushManager} manager @param {Uint8Array} key */
async function subscribe(manager, key) {
  const known = await manager.getSubscription();
  if (known && isFor(known, key)) return known;
  // The existing subscription belongs to another server or an old key. A browser keeps only one, so replace it.
  await known?.unsubscribe();
  try {
    return await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch (cause) {
    const message = 'The browser’s push service did not respond. Try again later.';
    throw new ConfabError({ code: 'push_unsupported', message, retryable: true, cause });
  }
}

/** @param {ServiceWorkerRegistration} serviceWorker */
function isSupported(serviceWorker) {
  return 'pushManager' in serviceWorker && 'Notification' in globalThis;
}

/** @param {PushSubscription} subscription @param {Uint8Array} key */
function isFor({ options: { applicationServerKey } }, key) {
  const known = new Uint8Array(applicationServerKey ?? []);
  return known.length === key.length && known.every((byte, index) => byte === key[index]);
}

/** @param {string} text base64url */
function bytesOf(text) {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
