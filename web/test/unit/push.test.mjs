import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ConfabError } from '../../lib/errors.js';
import { disablePush, enablePush, pushState } from '../../lib/people/push.js';

const key = `B${'A'.repeat(85)}M`;
const bytes = [4, ...new Array(63).fill(0), 3];

/** @type {any} */
let client;
/** @type {any} */
let notification;
/** @type {any} */
let options;
/** @type {any[]} */
let asked;

beforeEach(() => {
  asked = [];
  client = {
    welcome: { push: { vapidKey: key } },
    connect: async () => {},
    request: async (/** @type {string} */ type, /** @type {any} */ members) => { asked.push({ type, ...members }); },
  };
  notification = { permission: 'default', answer: 'granted', requestPermission: async () => (notification.permission = notification.answer) };
  Object.defineProperty(globalThis, 'Notification', { value: notification, configurable: true, writable: true });
  options = worker();
});

/** A service worker with its push service. */
function worker() {
  const manager = {
    made: 0,
    /** @type {any} */
    subscription: null,
    /** @type {Error | null} */
    refusal: null,
    getSubscription: async () => manager.subscription,
    subscribe: async (/** @type {any} */ { userVisibleOnly, applicationServerKey }) => {
      if (manager.refusal) throw manager.refusal;
      assert.equal(userVisibleOnly, true);
      const endpoint = `https://push.example/${manager.made += 1}`;
      const keys = { p256dh: 'p', auth: 'a' };
      manager.subscription = {
        endpoint, options: { applicationServerKey: applicationServerKey.buffer },
        toJSON: () => ({ endpoint, keys }),
        unsubscribe: async () => { manager.subscription = null; },
      };
      return manager.subscription;
    },
  };
  return { serviceWorker: { pushManager: manager } };
}

/** @param {Promise<unknown>} promise @returns {Promise<any>} */
const rejection = (promise) => promise.then(() => assert.fail('it was not rejected'), (error) => error);

describe('A browser', () => {
  test('with permission registers with the server', async () => {
    assert.equal(await pushState(client, options), 'off');
    await enablePush(client, options);
    assert.deepEqual(asked, [{ type: 'push.register', kind: 'web', endpoint: 'https://push.example/1', p256dh: 'p', auth: 'a' }]);
    assert.deepEqual([...new Uint8Array(options.serviceWorker.pushManager.subscription.options.applicationServerKey)], bytes);
    assert.equal(await pushState(client, options), 'on');
  });

  test('that is already subscribed registers again', async () => {
    await enablePush(client, options);
    await enablePush(client, options);
    assert.deepEqual(asked.map(({ endpoint }) => endpoint), ['https://push.example/1', 'https://push.example/1']);
  });

  test('that is subscribed with another server’s key subscribes again', async () => {
    await enablePush(client, options);
    client.welcome.push.vapidKey = `B${'A'.repeat(85)}Q`;
    assert.equal(await pushState(client, options), 'off');
    await enablePush(client, options);
    assert.equal(asked[1].endpoint, 'https://push.example/2');
    assert.equal(await pushState(client, options), 'on');
  });

  test('without permission is not registered, and the error names the settings', async () => {
    notification.answer = 'denied';
    assert.equal((await rejection(enablePush(client, options))).code, 'push_denied');
    assert.deepEqual([asked, await pushState(client, options)], [[], 'denied']);
  });

  test('or a server without push reports that', async () => {
    assert.equal(await pushState(client, /** @type {any} */ ({ serviceWorker: {} })), 'unsupported');
    assert.equal((await rejection(enablePush(client, /** @type {any} */ ({ serviceWorker: {} })))).code, 'push_unsupported');
    client.welcome = {};
    assert.equal(await pushState(client, options), 'unsupported');
    assert.equal((await rejection(enablePush(client, options))).code, 'push_unsupported');
  });

  test('whose push service is down may try again', async () => {
    options.serviceWorker.pushManager.refusal = new Error('no service');
    const error = await rejection(enablePush(client, options));
    assert.deepEqual([error instanceof ConfabError, error.code, error.retryable], [true, 'push_unsupported', true]);
  });

  test('that turns push off is no longer registered', async () => {
    await disablePush(client, options);
    assert.deepEqual(asked, []);
    await enablePush(client, options);
    await disablePush(client, options);
    assert.deepEqual(asked[1], { type: 'push.unregister', endpoint: 'https://push.example/1' });
    assert.equal(await pushState(client, options), 'off');
  });
});
