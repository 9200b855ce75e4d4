// Push notifications while no page is open, shown by the service worker in Chromium. There is no push service in these tests.
// The browser gets the decrypted data directly.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { launchChromium, wholeChromium } from './chromium.mjs';
import { launchFirefox } from './firefox.mjs';
import { ann, approach, bob, call, come, lists, rings, serveNearby } from './neighbor.mjs';
import { NotYet, until } from './wait.mjs';

// The headless shell, which the first tier uses elsewhere, always denies notifications.
const { chromium } = sharedBrowsers({ chromium: () => launchChromium({ command: wholeChromium }), firefox: launchFirefox });

const callId = 'c0ffee'.padEnd(32, '0');

/**
 * The service worker of a profile, for the duration of the test.
 *
 * @param {import('./page.mjs').Page} page any page of the profile; it may be closed afterwards
 */
async function workerOf(t, page) {
  const { control } = page.browser;
  // An empty tab keeps the profile alive when the last page closes.
  const empty = await page.browser.newPage({ label: 'an empty', sharing: page });
  t.after(() => empty.close());
  const { sessionId } = empty;
  /** @type {Map<string, {registrationId: string, scopeURL: string}>} */
  const registrations = new Map();
  control.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: all }, from) => {
    if (from === sessionId) for (const one of all) registrations.set(one.registrationId, one);
  });
  await empty.send('ServiceWorker.enable');
  const registration = await until('the service worker is registered', () => [...registrations.values()][0]);
  const origin = new URL(registration.scopeURL).origin;
  return {
    scope: registration.scopeURL,
    /** Delivers the decrypted data of a push. */
    push: (data) => empty.send('ServiceWorker.deliverPushMessage', {
      origin, registrationId: registration.registrationId, data: typeof data === 'string' ? data : JSON.stringify(data),
    }),
    /** Runs an expression in the worker, which a push has started. */
    evaluate: async (expression) => {
      const { targetInfos } = await control.send('Target.getTargets', { filter: [{ type: 'service_worker' }] });
      const target = targetInfos.find((one) => one.url.startsWith(origin) && one.browserContextId === page.browserContextId);
      if (!target) throw new NotYet(`no service worker runs; there are ${targetInfos.map(({ url }) => url)}`);
      const { sessionId: worker } = await control.send('Target.attachToTarget', { targetId: target.targetId, flatten: true });
      try {
        const { result, exceptionDetails } = await control.send('Runtime.evaluate', {
          expression, awaitPromise: true, returnByValue: true,
        }, { sessionId: worker });
        if (exceptionDetails) throw new NotYet(exceptionDetails.text);
        return result.value;
      } finally {
        await control.send('Target.detachFromTarget', { sessionId: worker }).catch(() => {});
      }
    },
  };
}

const notifications = `self.registration.getNotifications().then((all) => all.map(({ title, body, tag, data, requireInteraction }) => (
  { title, body, tag, data, requireInteraction })))`;

/** Waits until the worker shows exactly this notification. */
function shows(worker, expected) {
  return until(`the notification is ${JSON.stringify(expected)}`, async () => {
    const all = await worker.evaluate(notifications);
    const fits = all?.length === 1 && Object.entries(expected).every(([key, value]) => JSON.stringify(all[0][key]) === JSON.stringify(value));
    if (!fits) throw new NotYet(`the notifications are ${JSON.stringify(all)}`);
    return all[0];
  });
}

test('below a path of a site and without an open page, a push shows a notification without a name, and the outcome of the call replaces it', async (t) => {
  const { url } = await serveNearby(t, {}, { path: '/video' });
  const page = await approach(t, await chromium(), url, { ...ann, permissions: ['notifications'] });
  await page.waitFor('the worker is active', () => navigator.serviceWorker.ready.then(() => true));
  const worker = await workerOf(t, page);
  assert.equal(worker.scope, `${url}/`);
  const { url: manifest, errors } = await page.send('Page.getAppManifest');
  assert.deepEqual([manifest, errors], [`${url}/app/manifest.webmanifest`, []]);
  await page.close();
  await worker.push({ type: 'call', callId, kind: 'incoming' });
  const shown = await shows(worker, { title: 'Confab', tag: callId, data: { callId }, requireInteraction: true });
  assert.match(shown.body, /incoming call/i);
  await worker.push({ type: 'call', callId, kind: 'over' });
  assert.match((await shows(worker, { tag: callId, requireInteraction: false })).body, /call to you has ended/i);
  await worker.push({ type: 'call', callId, kind: 'missed' });
  await until('the call is said to be missed', async () => {
    const { body } = await shows(worker, { tag: callId });
    if (!/missed/i.test(body)) throw new NotYet(`it says "${body}"`);
    return true;
  });
});

test('an unreadable push still shows a notification, as browsers require', async (t) => {
  const { url } = await serveNearby(t);
  const page = await approach(t, await chromium(), url, { ...ann, permissions: ['notifications'] });
  await page.waitFor('the worker is active', () => navigator.serviceWorker.ready.then(() => true));
  const worker = await workerOf(t, page);
  await page.close();
  await worker.push('not JSON');
  await shows(worker, { tag: 'call', title: 'Confab' });
});

test('a visible page shows the call itself, without a notification from the worker', async (t) => {
  const { url } = await serveNearby(t);
  const browser = await chromium();
  const [a, b] = await Promise.all([
    come(t, browser, url, ann), come(t, browser, url, { ...bob, permissions: ['notifications'] }),
  ]);
  await b.waitFor('the worker is active', () => navigator.serviceWorker.ready.then(() => true));
  const worker = await workerOf(t, b);
  await Promise.all([lists(a, 'Bob'), lists(b, 'Ann')]);
  await call(a, 'Bob');
  await rings(b, 'Ann');
  await worker.push({ type: 'call', callId, kind: 'incoming' });
  await worker.push({ type: 'call', callId, kind: 'incoming' });
  assert.deepEqual(await until('the worker answers', () => worker.evaluate(notifications)), []);
});
