// A person at RouletteTok's page: what they do, and what they can tell happened. Its words are here and nowhere else.
import { deepEqual } from 'node:assert/strict';
import { seesColour } from '../media.mjs';
import { NotYet } from '../wait.mjs';

/** What the page's notification says, and when. */
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
 * @param {{colour: string, options?: object, server?: string, deafTo?: string, scripts?: string[]}} visitor `options`
 *   and `server` go to `io.connect`; `deafTo` is an event that the page does not mind
 */
export async function visit(t, browser, site, { colour, options = {}, server = '', deafTo = '', scripts = [] }) {
  const page = await browser.newPage({ colour, scripts, label: `RouletteTok ${colour}` });
  t.after(() => page.close());
  const query = new URLSearchParams({ options: JSON.stringify(options), server, deafTo });
  await page.goto(`${site}?${query}`);
  return page;
}

/** Waits until the page has heard this so many times in all; it must not be more. */
export function hears(page, name, count = 1) {
  return page.until(`it heard ${name} ${count} times`, async () => {
    const all = await page.evaluate('window.heard');
    const times = all.filter((each) => each === name).length;
    if (times > count) throw new Error(`${page.label} heard ${all.join(', ')}`);
    if (times < count) throw new NotYet(`it heard ${all.join(', ')}`);
    return true;
  });
}

/** All that the page heard on its socket so far is this. */
export async function expectHeard(page, ...events) {
  deepEqual(await page.evaluate('window.heard'), events, page.label);
}

/** Waits until the page is in a chat and shows a partner of this colour, or of one of these. */
export async function meets(page, colour) {
  await page.waitForStatus(shows.fun);
  return seesColour(page, colour);
}

/** Waits until the page waits and shows nobody. */
export async function waits(page) {
  await page.waitForStatus(shows.waiting);
  await page.waitFor('no partner is shown', () => !document.querySelector('.OT_subscriber'));
}

/** Waits until our own page says that with this partner there is no text chat. */
export function saysNoTextChat(page) {
  return page.until('it says that there is no text chat', async () => {
    const text = await page.evaluate('document.body.innerText');
    if (!/without text chat/.test(text)) throw new NotYet(`it says ${JSON.stringify(text)}`);
    return true;
  });
}

/** Closes the tab as people do, in a browser that goes on: here a profile ends with its last tab, requests and all. */
export async function closeTab(t, page) {
  const other = await page.browser.newPage({ sharing: page });
  t.after(() => other.close());
  await page.close();
}

/** The page tries to watch its first partner once more, with the token it had: why not, or nothing if it got in. */
export function rejoin(page) {
  return page.evaluate(() => new Promise((resolve) => {
    const { sessionId, token } = window.invitations[0];
    window.OT.initSession('1127', sessionId).connect(token, (error) => resolve(error ? error.name : null));
  }));
}
