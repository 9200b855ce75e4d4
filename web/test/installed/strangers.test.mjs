// Two strangers meet on a server that runs already, such as one that a package has installed. `scripts/dist-test` runs this.
// CONFAB_INSTALLED_URL is the server's address. CONFAB_INSTALLED_HOSTS are rules for the names of hosts, such as
// "MAP chat.example.org 203.0.113.10". Any certificate is accepted.
import { test } from 'node:test';
import { sharedBrowsers } from '../browser/browsers.mjs';
import { launchChromium } from '../browser/chromium.mjs';
import { launchFirefox } from '../browser/firefox.mjs';
import { arrive, assertNoComplaints, keepReceiving, meet, reads, write } from '../browser/stranger.mjs';

const url = process.env.CONFAB_INSTALLED_URL;
const flags = ['--ignore-certificate-errors', `--host-resolver-rules=${process.env.CONFAB_INSTALLED_HOSTS ?? ''}`];
const { chromium } = sharedBrowsers({ chromium: () => launchChromium({ flags }), firefox: launchFirefox });

test('two strangers meet on the installed server', { skip: !url && 'CONFAB_INSTALLED_URL is not set' }, async (t) => {
  const browser = await chromium();
  const red = await arrive(t, browser, url, { color: 'red', guest: true });
  const green = await arrive(t, browser, url, { color: 'green', guest: true });
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  await write(red, 'Hello from the installed server.');
  await reads(green, 'Hello from the installed server.');
  assertNoComplaints(red, green);
});
