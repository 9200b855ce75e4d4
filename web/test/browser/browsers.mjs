// The browsers of one test file: started on first use and shared, because every page has its own profile and starting a browser
// is slow.
import { after } from 'node:test';
import { launchChromium } from './chromium.mjs';
import { launchFirefox } from './firefox.mjs';

/**
 * Call this function once at the top of a test file, or once per machine. A test that kills a browser launches a separate one.
 *
 * @param {Pick<import('./namespace.mjs').Machine, 'chromium' | 'firefox'>} [machine] where the browsers run
 */
export function sharedBrowsers(machine = { chromium: launchChromium, firefox: launchFirefox }) {
  /** @type {Map<Function, Promise<any>>} */
  const started = new Map();
  const shared = (launch) => () => {
    if (!started.has(launch)) started.set(launch, launch());
    return started.get(launch);
  };
  after(async () => {
    // A browser that did not start has already failed its test.
    const browsers = await Promise.allSettled(started.values());
    await Promise.all(browsers.filter(({ status }) => status === 'fulfilled').map(({ value }) => value.close()));
  });
  return { chromium: shared(() => machine.chromium()), firefox: shared(() => machine.firefox()) };
}
