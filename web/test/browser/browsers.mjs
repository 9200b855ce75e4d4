// The browsers of one test file: started when a test first wants them and shared, because every page has a profile of its
// own and starting a browser is what costs most.
import { after } from 'node:test';
import { launchChromium } from './chromium.mjs';
import { launchFirefox } from './firefox.mjs';

/**
 * Call it once at the top of a test file, or once for each machine. A browser that a test means to kill it launches itself.
 *
 * @param {Pick<import('./namespace.mjs').Machine, 'chromium' | 'firefox'>} [machine] where they run
 */
export function sharedBrowsers(machine = { chromium: launchChromium, firefox: launchFirefox }) {
  /** @type {Map<Function, Promise<any>>} */
  const started = new Map();
  const shared = (launch) => () => {
    if (!started.has(launch)) started.set(launch, launch());
    return started.get(launch);
  };
  after(async () => {
    // One that did not start has failed its test already.
    const browsers = await Promise.allSettled(started.values());
    await Promise.all(browsers.filter(({ status }) => status === 'fulfilled').map(({ value }) => value.close()));
  });
  return { chromium: shared(() => machine.chromium()), firefox: shared(() => machine.firefox()) };
}
