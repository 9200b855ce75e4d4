// Web Push: wakes a browser for a call while the page is closed.

import { ConfabError } from '../errors.js';

/** @typedef {import('../signaling/client.js').Client} Client */
/** @typedef {{serviceWorker: ServiceWorkerRegistration}} PushOptions the service worker that shows the notification */
/** @typedef {'unsupported' | 'denied' | 'off' | 'on'} PushState */

/**
 * Returns whether push notifications are enabled in this browser. Call this after the client has connected, because
 * the server's key is not known before.
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<PushState>} `unsupported`: this browser or this server does not support push; `denied`: the user
 *   has blocked notifications in the browser; `on`: this browser is subscribed with the server's key; `off`: otherwise
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
 * server. Call this in a click handler, because browsers may reject a permission request that does not follow a click.
 * If push is enabled already, only registers with the server again.
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<void>} rejects with `push_unsupported`, `push_denied`, an error of connecting, or an error of the
 *   server, such as `push_not_allowed` or `push_invalid`
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
 * Ends this browser's push subscription and removes it from the server. Does nothing if there is no subscription.
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<void>} rejects if the server could not be notified; the browser is unsubscribed even then
 */
export async function disablePush(client, { serviceWorker }) {
  const subscription = await serviceWorker.pushManager?.getSubscription();
  if (!subscription) return;
  const { endpoint } = subscription;
  // Unsubscribe in the browser first, so that no push arrives even if the request to the server fails.
  await subscription.unsubscribe();
  await client.request('push.unregister', { endpoint });
}

/** @param {PushManager} manager @param {Uint8Array} key */
async function subscribe(manager, key) {
  const known = await manager.getSubscription();
  if (known && isFor(known, key)) return known;
  // An existing subscription has the key of another server, or an old key. A service worker can have only one
  // subscription, so replace it.
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
