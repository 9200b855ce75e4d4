// A user of the roulette page: mouse and keyboard actions, and what they see. Only this file contains the page's texts for the
// browser tests.
import assert from 'node:assert/strict';
import { peerDetails } from './in-page.mjs';
import { framesRise, remoteVideo, seesColor, soundArrives } from './media.mjs';
import { startNginx } from './nginx.mjs';
import { Element } from './page.mjs';
import { freePort, startServer } from './server.mjs';
import { NotYet } from './wait.mjs';

/** Texts of the status line. */
export const says = {
  ready: /connected\. (ready|agree)/i,
  looking: /looking for/i,
  /** In a video chat in which the partner's video has arrived. */
  talking: /you are talking with/i,
  /** In a text chat. */
  writing: /you are chatting with/i,
  /** The partner dropped and may come back. */
  away: /lost their connection/i,
  left: /\bleft\b/i,
  movedOn: /moved on/i,
  /** The partner pressed Stop, which looks like moving on. */
  stopped: /\bleft\b|moved on/i,
  /** The user's own connection dropped. */
  dropped: /connection lost\. reconnecting/i,
};

/**
 * Starts a server that runs until the test ends. Errors in the server's log are shown with the test's result.
 *
 * @param {Record<string, string | number>} [env] as in `startServer`, like `options`
 * @param {Parameters<typeof startServer>[0] & {path?: string}} [options] `path`: such as `/video`. The server is behind nginx below
 *   this path, and the test fails if anything outside of it was requested
 */
export async function serve(t, env = {}, { path = '', ...options } = {}) {
  const front = path || process.env.CONFAB_TEST_FRONT === 'nginx' ? { path, port: await freePort() } : null;
  const ofFront = {
    ...front ? { CONFAB_TRUSTED_PROXIES: '127.0.0.1' } : {}, ...path ? { CONFAB_PUBLIC_URL: `http://127.0.0.1:${front.port}${path}` } : {},
  };
  const server = await startServer({ ...options, env: { ...ofFront, ...env } });
  server.frontPort = server.port;
  if (front) await putNginxBefore(server, t, front);
  t.after(async () => {
    for (const line of server.log.filter((text) => /\b(error|critical|fatal)\b/i.test(text)).slice(0, 10)) {
      t.diagnostic(`server: ${line}`);
    }
    await server.close();
  });
  return server;
}

/** From here on the pages use only nginx's address for the server, also after a restart. */
async function putNginxBefore(server, t, { path, port }) {
  const nginx = await startNginx({ upstreamPort: server.port, port, path });
  t.after(async () => {
    const requests = [...(await nginx.accessLog()).matchAll(/"[A-Z]+ (\S+) HTTP/g)].map(([, target]) => target);
    await nginx.close();
    if (!path) return;
    assert.ok(requests.length > 0, 'nginx logged requests');
    // The test itself asked whether nginx was there.
    assert.deepEqual(requests.filter((target) => target !== path && !target.startsWith(`${path}/`)), [], 'only the server was asked');
  });
  server.frontPort = nginx.port;
  Object.defineProperty(server, 'url', { get: () => nginx.url, set() {} });
}

/** Opens the page and closes it with the test. @param {import('./page.mjs').PageOptions & {guest?: boolean}} options */
export async function arrive(t, browser, url, { guest, ...options }) {
  const page = await browser.newPage(options);
  t.after(() => page.close());
  await page.goto(`${url}/strangers${guest ? '?guest=1' : ''}`);
  await page.find('button', 'Start');
  return page;
}

/**
 * Fills in the first screen, agrees to the rules and presses Start.
 *
 * @param {{name?: string, interests?: string[], textOnly?: boolean}} [options]
 */
export async function begin(page, { name, interests = [], textOnly = false } = {}) {
  if (textOnly) await page.click('radio', 'Text only');
  if (name) await page.fill('textbox', 'Name', name);
  if (interests.length) await page.fill('textbox', 'Interests', `${interests.join(', ')},`);
  for (const handle of await page.query('checkbox')) {
    const box = new Element(page, handle, 'the checkbox of the rules');
    if (!await box.evaluate(function () { return this.checked; })) await box.click();
  }
  await page.click('button', 'Start');
}

/** The first starts and waits, so that the second is matched with it. */
export async function meet([one, itsColor], [other, otherColor]) {
  await begin(one);
  await one.waitForStatus(says.looking);
  await begin(other);
  await Promise.all([see(one, otherColor), see(other, itsColor)]);
}

/** Waits until the partner's video has this color. The video must be in the expected place and have the expected name. */
export async function see(page, color) {
  const seen = await seesColor(page, color);
  await page.waitForStatus(says.talking);
  assert.ok(await page.has('video', 'Partner'), `${page.label}: the partner's video is named Partner`);
  return seen;
}

/** Waits until more audio and video have arrived on every page. */
export function keepReceiving(...pages) {
  return Promise.all(pages.flatMap((page) => [framesRise(page), soundArrives(page)]));
}

/** Returns the only port that the page knows for media, which must be the server's own. */
export async function mediaPort(page) {
  const ports = new Set();
  for (const { remoteCandidates } of await page.evaluate(peerDetails)) {
    for (const { port, candidateType } of remoteCandidates) {
      ports.add(port);
      assert.equal(candidateType, 'host', `${page.label} knows the server's own candidates`);
    }
  }
  assert.equal(ports.size, 1, `${page.label} sends to one port: ${[...ports]}`);
  return [...ports][0];
}

/** Waits until no partner is shown. */
export function seesNobody(page) {
  return page.waitFor('no partner is shown', (selector) => {
    const video = document.querySelector(selector);
    return !video || !video.checkVisibility({ visibilityProperty: true });
  }, { args: [remoteVideo] });
}

/** Writes a message in the text chat. `by` chooses whether to send it with the button or the Enter key. */
export async function write(page, text, { by = 'Enter' } = {}) {
  await page.fill('textbox', 'Message', text);
  if (by === 'Enter') await page.press('Enter');
  else await page.click('button', by);
}

/** Waits until the chat's log contains this text. */
export function reads(page, text) {
  return page.until(`"${text}" is in the chat`, async () => {
    const log = await (await page.find('log')).text();
    if (!log.includes(text)) throw new NotYet(`the chat is ${JSON.stringify(log)}`);
    return true;
  });
}

/** One presses Keep in touch, and then the other. Waits until they are contacts. */
export async function keepInTouch(one, other) {
  await one.click('button', 'Keep in touch');
  await other.waitFor('the other person is notified', () => /would like to keep in touch/.test(document.getElementById('keep-words').textContent));
  await other.click('button', 'Keep in touch');
  await Promise.all([one, other].map((page) => page.find('link', 'Contacts')));
}

/** Checks that no page threw an error. Ignores errors on the console, because a browser logs one for each broken connection. */
export function assertNothingThrown(...pages) {
  for (const page of pages) assert.deepEqual(page.exceptions, [], page.label);
}

/** Checks for thrown errors and errors on the console. */
export function assertNoComplaints(...pages) {
  for (const page of pages) assert.deepEqual(page.complaints(), [], page.label);
}
