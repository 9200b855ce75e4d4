// Web Push: a browser whose page is closed is woken when it is called.

import { ConfabError } from '../errors.js';

/** @typedef {import('../line/client.js').Client} Client */
/** @typedef {{serviceWorker: ServiceWorkerRegistration}} PushOptions the worker shows the notification */
/** @typedef {'unsupported' | 'denied' | 'off' | 'on'} PushState */

/**
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<PushState>} `unsupported` by this browser or this server; `denied` by the person, in the browser's settings
 */
export async function pushState(client, { serviceWorker }) {
  const key = client.welcome?.push?.vapidKey;
  if (key === undefined || !isSupported(serviceWorker)) return 'unsupported';
  if (Notification.permission === 'denied') return 'denied';
  const subscription = await serviceWorker.pushManager.getSubscription();
  return subscription && isFor(subscription, bytesOf(key)) && Notification.permission === 'granted' ? 'on' : 'off';
}

/**
 * Asks for permission, so call it where the person pressed something; later calls only tell the server again.
 * @param {Client} client
 * @param {PushOptions} options
 * @returns {Promise<void>} rejects with `push_unsupported`, `push_denied`, or the server's `push_not_allowed`, `push_invalid`
 */
export async function enablePush(client, { serviceWorker }) {
  await client.connect();
  const key = client.welcome?.push?.vapidKey;
  if (key === undefined || !isSupported(serviceWorker)) {
    const message = 'This browser cannot be woken for calls. Keep the page open to be reached.';
    throw new ConfabError({ code: 'push_unsupported', message });
  }
  if (await Notification.requestPermission() !== 'granted') {
    const message = 'The browser may not show notifications of this page. Allow them in its settings to be reached.';
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
  // First here: then nothing comes any more, whatever becomes of the question.
  await subscription.unsubscribe();
  await client.request('push.unregister', { endpoint });
}

/** @param {PushManager} manager @param {Uint8Array} key */
async function subscribe(manager, key) {
  const known = await manager.getSubscription();
  if (known && isFor(known, key)) return known;
  // Of another server, or of a key that is no more: a browser keeps one subscription, for one key.
  await known?.unsubscribe();
  try {
    return await manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch (cause) {
    const message = 'The browser’s push service did not answer. Try again later.';
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
