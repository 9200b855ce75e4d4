// A user of RouletteTok's page: their actions, and what they see. Only this file contains the page's texts.
import { deepEqual } from 'node:assert/strict';
import { seesColor } from '../media.mjs';
import { NotYet } from '../wait.mjs';

/** Texts of the page's notification. */
export const shows = {
  waiting: /nobody is there yet/i,
  fun: /have fun/i,
};

/**
 * Opens the page and closes it with the test.
 *
 * @param {import('node:test').TestContext} t
 * @param {{newPage: Function}} browser
 * @param {string} site
 * @param {{color: string, options?: object, server?: string, deafTo?: string, scripts?: string[]}} visitor `options` and
 *   `server` are passed to `io.connect`; `deafTo` is an event that the page ignores
 */
export async function visit(t, browser, site, { color, options = {}, server = '', deafTo = '', scripts = [] }) {
  const page = await browser.newPage({ color, scripts, label: `RouletteTok ${color}` });
  t.after(() => page.close());
  const query = new URLSearchParams({ options: JSON.stringify(options), server, deafTo });
  await page.goto(`${site}?${query}`);
  return page;
}

/** Waits until the page has received this event exactly this many times in total. */
export function hears(page, name, count = 1) {
  return page.until(`it heard ${name} ${count} times`, async () => {
    const all = await page.evaluate('window.heard');
    const times = all.filter((each) => each === name).length;
    if (times > count) throw new Error(`${page.label} heard ${all.join(', ')}`);
    if (times < count) throw new NotYet(`it heard ${all.join(', ')}`);
    return true;
  });
}

/** Checks that the page has received exactly these events on its socket. */
export async function expectHeard(page, ...events) {
  deepEqual(await page.evaluate('window.heard'), events, page.label);
}

/** Waits until the page is in a chat and shows a partner with this color, or with one of several. */
export async function meets(page, color) {
  await page.waitForStatus(shows.fun);
  return seesColor(page, color);
}

/** Waits until the page is waiting and shows no partner. */
export async function waits(page) {
  await page.waitForStatus(shows.waiting);
  await page.waitFor('no partner is shown', () => !document.querySelector('.OT_subscriber'));
}

/** Waits until our own page shows that this partner has no text chat. */
export function saysNoTextChat(page) {
  return page.until('it says that there is no text chat', async () => {
    const text = await page.evaluate('document.body.innerText');
    if (!/without text chat/.test(text)) throw new NotYet(`it says ${JSON.stringify(text)}`);
    return true;
  });
}

/**
 * Closes the tab as a user does, but keeps the profile. Normally a profile ends with its last tab, including pending requests.
 */
export async function closeTab(t, page) {
  const other = await page.browser.newPage({ sharing: page });
  t.after(() => other.close());
  await page.close();
}

/** Makes the page subscribe to its first partner again, with the old token. Returns the error, or nothing on success. */
export function rejoin(page) {
  return page.evaluate(() => new Promise((resolve) => {
    const { sessionId, token } = window.invitations[0];
    window.OT.initSession('1127', sessionId).connect(token, (error) => resolve(error ? error.name : null));
  }));
}
