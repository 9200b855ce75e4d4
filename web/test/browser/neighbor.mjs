// A user of the page of people nearby: mouse and keyboard actions, locations, and what they see. Only this file contains the
// page's texts for the browser tests. In Chromium, people can move to other locations. In Firefox, they cannot.
import assert from 'node:assert/strict';
import { source, standAt } from './in-page.mjs';
import { remoteColor, seesColor } from './media.mjs';
import { Element } from './page.mjs';
import { serve } from './stranger.mjs';
import { isFull } from './tier.mjs';
import { NotYet } from './wait.mjs';

/** Texts of the status line. */
export const says = {
  here: /you are online as/i,
  calling: /^calling/i,
  ringing: /^ringing/i,
  rung: /is calling/i,
  talking: /you are talking with/i,
  away: /lost their connection and may/i,
  dropped: /connection lost\. reconnecting/i,
  hungUp: /ended the call/i,
  ended: /^the call ended/i,
  declined: /declined the call/i,
  cancelled: /hung up before/i,
  missed: /you missed a call/i,
  unanswered: /did not answer/i,
  busy: /is busy/i,
  unreachable: /cannot be reached/i,
  connectionLost: /was lost and the call ended/i,
  answeredElsewhere: /answered on another device/i,
};

/** Locations. The names say how far they are from the first. */
export const places = {
  town: { latitude: 51.5074, longitude: -0.1278 },
  /** About 1.5 miles away. */
  nextDoor: { latitude: 51.527, longitude: -0.12 },
  /** About 48 miles away. */
  nextTown: { latitude: 52.2053, longitude: 0.1218 },
  /** About 213 miles away, which is beyond the largest radius. */
  abroad: { latitude: 48.8566, longitude: 2.3522 },
};

/**
 * Starts a server like `serve`. In the first tier, the server updates lists ten times per second instead of once.
 *
 * @param {Record<string, string | number>} [env] like `startServer`
 * @param {Parameters<typeof serve>[2]} [options]
 */
export function serveNearby(t, env = {}, options = {}) {
  return serve(t, { ...(isFull ? {} : { CONFAB_NEARBY_UPDATE_INTERVAL: '100ms' }), ...env }, options);
}

/** @param {import('./page.mjs').Page} page @param {{latitude: number, longitude: number}} place */
export async function moveTo(page, place) {
  await page.send('Emulation.setGeolocationOverride', { ...place, accuracy: 20 });
}

/** Grants the page's permission requests. */
async function allow(page, url, permissions) {
  await page.browser.control.send('Browser.grantPermissions', {
    origin: new URL(url).origin, permissions, browserContextId: page.browserContextId,
  });
}

/**
 * Opens the page, and closes it with the test.
 *
 * @param {import('./page.mjs').PageOptions & {at?: {latitude: number, longitude: number} | null, hash?: string, guest?: boolean,
 *   permissions?: string[]}} options `at` null: no location
 */
export async function approach(t, browser, url, { at = places.town, hash = '', guest = false, permissions = [], ...options } = {}) {
  const canMove = browser.name === 'Chromium';
  const scripts = at && !canMove ? [source(standAt, at)] : [];
  const page = await browser.newPage({ ...options, scripts: [...scripts, ...options.scripts ?? []] });
  t.after(() => page.close());
  if (canMove) await allow(page, url, [...(at ? ['geolocation'] : []), ...permissions]);
  if (canMove && at) await moveTo(page, at);
  await page.goto(`${url}/nearby${guest ? '?guest=1' : ''}${hash}`);
  return page;
}

/** Fills in the first screen and goes online. */
export async function enter(page, { name, at = places.town } = {}) {
  if (name !== undefined) await page.fill('textbox', 'Name', name);
  const position = await page.find('checkbox', 'Show people near me');
  if (await position.evaluate(function () { return this.checked; }) !== (at !== null)) await position.click();
  for (const handle of await page.query('checkbox', 'I am 18 or older and agree to the rules')) {
    const box = new Element(page, handle, 'the checkbox of the rules');
    if (!await box.evaluate(function () { return this.checked; })) await box.click();
  }
  await page.click('button', 'Go online');
  await page.waitForStatus(says.here);
  page.personId = await page.evaluate("document.getElementById('own-link').textContent.slice(-32)");
}

/**
 * Opens the page and goes online, under a name and with a camera of one color.
 *
 * @param {Parameters<typeof approach>[3] & {name?: string}} options
 */
export async function come(t, browser, url, { name, ...options }) {
  const page = await approach(t, browser, url, { label: name, ...options });
  await enter(page, { name, at: options.at });
  return page;
}

/**
 * Opens the page in the tab of another page, such as that of strangers, and goes online without a location.
 *
 * @param {{name: string}} options
 */
export async function switchHere(page, url, { name }) {
  await allow(page, url, ['geolocation']);
  await page.goto(`${url}/nearby`);
  await enter(page, { name, at: null });
}

/** Waits until a person is in the list with this hint. */
export function lists(page, name, hint = /within \d+ (miles|km)/) {
  return page.until(`${name} is in the list, ${hint}`, async () => {
    const rows = await rowsOf(page);
    const row = rows.find((one) => one.name === name);
    if (!row) throw new NotYet(`the list has ${JSON.stringify(rows)}`);
    if (!hint.test(row.hint)) throw new NotYet(`the row says "${row.hint}"`);
    return true;
  });
}

/** Waits until a person is not in the list. */
export function listsNot(page, name) {
  return page.until(`${name} is not in the list`, async () => {
    const rows = await rowsOf(page);
    if (rows.some((one) => one.name === name)) throw new NotYet(`the list has ${JSON.stringify(rows)}`);
    return true;
  });
}

/** Returns the rows of a list: `people`, `contacts`, `log`, `devices`, `blocked` or `found`. */
export function rowsOf(page, list = 'people') {
  return page.evaluate((id) => [...document.getElementById(id).children].map((row) => ({
    name: row.querySelector('.row-name')?.textContent, hint: row.querySelector('.hint')?.textContent,
    missed: row.hasAttribute('data-missed'), online: row.querySelector('[data-online]')?.dataset.online,
  })), list);
}

/** Waits until the first row of a list matches. */
export function firstRow(page, list, expected) {
  return page.until(`the first row of ${list} is ${JSON.stringify(expected, (_, value) => (value instanceof RegExp ? String(value) : value))}`, async () => {
    const [row] = await rowsOf(page, list);
    const fits = row && Object.entries(expected).every(([key, value]) => (value instanceof RegExp ? value.test(row[key]) : value === row[key]));
    if (!fits) throw new NotYet(`it is ${JSON.stringify(row)}`);
    return true;
  });
}

export function turnTo(page, panel) {
  // Find the tab by its element, because its name may contain the number of missed calls.
  return page.evaluate((id) => document.querySelector(`[data-panel=${id}]`).click(), panel);
}

/** Opens the menu of a person in the list. */
export function openMenu(page, name) {
  return page.evaluate((label) => {
    [...document.querySelectorAll('summary')].find((one) => one.ariaLabel === label).click();
  }, `More options for ${name}`);
}

/** Searches for a person by id or link. */
export async function find(page, text) {
  await page.fill('textbox', 'Find by ID or link', text);
  await page.click('button', 'Find');
}

/** Searches for a person who cannot be found. */
export async function findNobody(page, id) {
  await find(page, id);
  await page.waitFor('no one is found', () => /no one has this id/i.test(document.getElementById('found-text').textContent));
}

/** Presses the green button next to a person. */
export async function call(page, name) {
  await page.click('button', `Call ${name}`);
}

/** Waits until the page rings, with the caller's name. */
export async function rings(page, name) {
  await page.find('button', 'Accept');
  const words = await page.evaluate(() => [document.getElementById('incoming-title'), document.getElementById('waiting-text')]
    .filter((element) => element.checkVisibility({ visibilityProperty: true })).map((element) => element.textContent).join(' '));
  assert.match(words, new RegExp(`${name}.*is calling|Voice call from .*${name}`), `${page.label} says who calls`);
}

/** Waits until the page no longer rings. */
export function isQuiet(page) {
  return page.until('nothing rings', async () => !await page.has('button', 'Accept'));
}

/** One calls the other, who accepts; both see each other. */
export async function talk([one, its], [other, others]) {
  await call(one, others.name);
  await rings(other, its.name);
  await one.waitForStatus(says.ringing);
  await other.click('button', 'Accept');
  await Promise.all([see(one, others), see(other, its)]);
}

/** Waits until the other person's video has this color, under the given name. */
export async function see(page, { name, color }) {
  await seesColor(page, color);
  await page.waitForStatus(says.talking);
  await page.until(`the other's video is named ${name}`, () => page.has('video', name));
}

/** Waits until no call is shown and the list is back. */
export async function isFree(page) {
  await page.until('the call is off the screen', async () => !await page.has('button', 'End') && !await page.has('button', 'Cancel'));
  assert.match(await remoteColor(page), /^no element|^no frame/);
}

export const ann = { name: 'Ann', color: 'red' };
export const bob = { name: 'Bob', color: 'green' };
export const cat = { name: 'Cat', color: 'blue' };
export const dan = { name: 'Dan', color: 'yellow' };
