// A user of the page of a room: mouse and keyboard actions, and what they see. Only this file contains the page's texts for the
// browser tests.
import { colorName } from './media.mjs';
import { NotYet } from './wait.mjs';

/** Texts of the status line. */
export const says = {
  ready: /ready to join/i,
  alone: /only one here/i,
  here: /^you and \d+ other/i,
  waiting: /waiting for a host/i,
  joined: /joined\.$/i,
  left: /left\.$/i,
  outside: /not in the room/i,
  dropped: /connection lost\. reconnecting/i,
  host: /you are now a host of this room/i,
  muted: /a host muted you/i,
  shareStopped: /a host stopped your screen share/i,
  copied: /link copied/i,
};

/** Texts at the end of a visit. */
export const endings = {
  left: 'You left the room',
  full: 'This room is full',
  locked: 'This room is locked',
  removed: 'A host removed you from the room',
  refused: 'A host did not let you in',
  invitation: 'You cannot join with this invitation',
};

/**
 * Opens the page of a room and closes it with the test.
 *
 * @param {import('./page.mjs').PageOptions & {room: string, guest?: boolean, mesh?: boolean}} options
 */
export async function approach(t, browser, url, { room, guest = false, mesh = false, ...options }) {
  const page = await browser.newPage(options);
  t.after(() => page.close());
  const query = new URLSearchParams({ ...guest ? { guest: '1' } : {}, ...mesh ? { media: 'mesh' } : {} });
  await page.goto(`${url}/room/${encodeURIComponent(room)}${query.size ? `?${query}` : ''}`);
  await page.find('button', 'Join');
  return page;
}

/** Fills in the first screen and presses Join. */
export async function press(page, { name, password } = {}) {
  if (name !== undefined) await page.fill('textbox', 'Your name', name);
  if (password !== undefined) {
    await page.find('textbox', 'Password');
    await page.fill('textbox', 'Password', password);
  }
  await page.click('button', 'Join');
}

/** Joins, and waits until the user is in the room. */
export async function enter(page, options) {
  await press(page, options);
  await page.find('button', 'Leave');
}

/**
 * Opens the page of a room and joins it.
 *
 * @param {Parameters<typeof approach>[3] & {name?: string, password?: string}} options
 */
export async function come(t, browser, url, { name, password, ...options }) {
  const page = await approach(t, browser, url, { label: name, ...options });
  await enter(page, { name, password });
  return page;
}

/**
 * Waits until the tiles show exactly these colors, each in a tile with the person's name.
 *
 * @param {Record<string, string> | [string, string][]} people colors by name, or pairs where names repeat
 */
export function seesAll(page, people, { timeout } = {}) {
  const wanted = list(Array.isArray(people) ? people : Object.entries(people));
  return page.until(`the tiles are ${wanted}`, async () => {
    const shown = list((await page.evaluate(tiles)).map(({ name, rgb, missing }) => [name, missing ?? colorName(rgb)]));
    if (shown !== wanted) throw new NotYet(`they are ${shown}`);
    return true;
  }, { timeout });
}

/** @param {[string, string][]} pairs */
const list = (pairs) => JSON.stringify(pairs.map(([name, color]) => `${name}: ${color}`).sort());

/** Runs in the page. Returns the name of each visible tile and the color in the middle of its video. */
function tiles() {
  const size = 8;
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: size, height: size });
  const context = canvas.getContext('2d', { willReadFrequently: true });
  return [...document.querySelectorAll('.person-tile:not([hidden])')].map((tile) => {
    const name = tile.getAttribute('aria-label');
    const video = tile.querySelector('video');
    if (!video) return { name, missing: 'no video' };
    if (video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA || !video.videoWidth) return { name, missing: 'no frame' };
    if (!video.checkVisibility({ visibilityProperty: true })) return { name, missing: 'hidden' };
    const { videoWidth: width, videoHeight: height } = video;
    context.drawImage(video, width * 3 / 8, height * 3 / 8, width / 4, height / 4, 0, 0, size, size);
    const { data } = context.getImageData(0, 0, size, size);
    const sum = [0, 0, 0];
    for (let at = 0; at < data.length; at += 4) for (let channel = 0; channel < 3; channel += 1) sum[channel] += data[at + channel];
    return { name, rgb: sum.map((total) => Math.round(total / (size * size))) };
  });
}

/** Waits until the visit has ended, with this title. */
export function ended(page, title) {
  return page.waitFor(`the page says "${title}"`, (text) => document.getElementById('over-title').textContent === text, {
    args: [title], why: () => page.evaluate("document.getElementById('over-title').textContent"),
  });
}

export async function leave(page) {
  await page.click('button', 'Leave');
  await ended(page, endings.left);
}

/** Returns whether a toggle, such as "mute", is on. */
export const isPressed = (page, id) => page.evaluate((which) => document.getElementById(which).getAttribute('aria-pressed') === 'true', id);

/** Opens the menu of a person in the panel of people, and presses an item. */
export async function moderate(page, name, item) {
  if (!await page.evaluate("document.body.dataset.panel === 'people'")) await page.click('button', 'People');
  await page.waitFor(`the panel has ${name}`, (label) => {
    const summary = document.querySelector(`summary[aria-label="${label}"]`);
    if (summary && !summary.parentElement.open) summary.click();
    return summary !== null;
  }, { args: [`Options for ${name}`] });
  await page.click('button', item);
}

/** Chooses a device in the settings while in the room. @param {string} what such as "Camera" */
export async function choose(page, what, device) {
  await page.click('button', 'More');
  await page.click('button', 'Settings');
  await page.find('combobox', what);
  await page.evaluate((label, wanted) => {
    const picker = [...document.querySelectorAll('#settings-dialog select')].find((select) => select.labels[0].textContent.startsWith(label));
    picker.value = [...picker.options].find(({ text }) => text === wanted).value;
    picker.dispatchEvent(new Event('change'));
  }, what, device);
  await page.click('button', 'Close');
}

/** Changes a switch of the room's settings, such as "locked". */
export async function setOption(page, option, on) {
  await page.click('button', 'More');
  await page.click('button', 'Room settings');
  await page.waitFor(`${option} can be set`, (id) => document.getElementById(id).checkVisibility(), { args: [`option-${option}`] });
  await page.evaluate((id, is) => {
    const box = document.getElementById(id);
    if (box.checked !== is) box.click();
  }, `option-${option}`, on);
  await page.click('button', 'Close');
}

/** Sets the room's password. */
export async function setPassword(page, password) {
  await page.click('button', 'More');
  await page.click('button', 'Room settings');
  await page.fill('textbox', 'Room password', password);
  await page.click('button', 'Set password');
  await page.waitFor('the room has the password', () => /has a password/.test(document.getElementById('password-is').textContent));
  await page.click('button', 'Close');
}

/** Writes a message in the chat, and waits until each of these pages has it. */
export async function write(page, text, ...readers) {
  await openChat(page);
  await page.fill('textbox', 'Message', text);
  await page.press('Enter');
  await Promise.all([page, ...readers].map((reader) => reads(reader, text)));
}

export async function openChat(page) {
  if (!await page.evaluate("document.body.dataset.panel === 'chat'")) await page.click('button', 'Chat');
}

/** Waits until the chat's log has this text. */
export function reads(page, text) {
  return page.until(`"${text}" is in the chat`, async () => {
    const log = await page.evaluate("document.getElementById('log').textContent");
    if (!log.includes(text)) throw new NotYet(`the chat is ${JSON.stringify(log)}`);
    return true;
  });
}

/** Sends a file from the chat. @param {string} name @param {number[]} bytes */
export async function sendFile(page, name, bytes) {
  await openChat(page);
  await page.find('button', 'Attach a file');
  await page.evaluate((fileName, content) => {
    const chosen = new DataTransfer();
    chosen.items.add(new File([new Uint8Array(content)], fileName));
    const picker = document.getElementById('file-input');
    picker.files = chosen.files;
    picker.dispatchEvent(new Event('change'));
  }, name, bytes);
}

/** Drops files on an element. Returns whether the page handles it itself. @param {string} selector @param {string[]} names */
export function drop(page, selector, ...names) {
  return page.evaluate((where, fileNames) => {
    const dataTransfer = new DataTransfer();
    for (const name of fileNames) dataTransfer.items.add(new File(['x'], name));
    return !document.querySelector(where).dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
  }, selector, names);
}

/** Saves the last file of the chat, and returns what the browser would write: its name, type and bytes. */
export async function saveFile(page) {
  await page.evaluate(() => {
    window.saved = null;
    const make = URL.createObjectURL;
    let last;
    URL.createObjectURL = (blob) => {
      last = blob;
      return make.call(URL, blob);
    };
    // Instead of a download, which would leave a file on this machine.
    HTMLAnchorElement.prototype.click = async function () {
      const bytes = [...new Uint8Array(await last.arrayBuffer())];
      window.saved = { name: this.download, type: last.type, bytes };
    };
    [...document.querySelectorAll('#log .file-link:not(.file-remove)')].at(-1).click();
  });
  await page.waitFor('the file is saved', () => window.saved !== null);
  return page.evaluate('window.saved');
}

/** Removes the last file of the chat with a double click, and waits until it is gone. */
export async function removeFile(page) {
  const id = await page.waitFor('the last file can be removed', () => {
    const remove = [...document.querySelectorAll('#log .file-remove')].at(-1);
    if (!remove?.checkVisibility()) return null;
    remove.id = `removed-${document.querySelectorAll('#log .file-remove').length}`;
    remove.focus();
    remove.click();
    remove.click();
    return remove.id;
  });
  await page.waitFor('the file is gone', (removed) => document.getElementById(removed) === null, { args: [id] });
}

/** Waits until the chat has no file. */
export const hasNoFile = (page) => page.waitFor('the chat has no file', () => document.querySelector('#log .file-link') === null);

/**
 * Lets several people join who only send a picture, all in one page, because a page for each would be too much for a test.
 *
 * @param {{room: string, people: {name: string, color: string}[]}} who
 */
export async function crowd(t, browser, url, { room, people }) {
  const page = await browser.newPage({ label: 'the crowd' });
  t.after(() => page.close());
  await page.goto(`${url}/try`);
  for (const person of people) await page.evaluate(joinCrowd, { room, ...person });
  return page;
}

/** Runs in the page. */
async function joinCrowd({ room, name, color }) {
  const { Client, OT } = await import('/lib/index.js');
  const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 240 });
  const context = canvas.getContext('2d');
  let turn = 0;
  setInterval(() => {
    context.fillStyle = color;
    context.fillRect(0, 0, 320, 240);
    context.fillStyle = 'white';
    context.fillRect((turn += 8) % 300, 8, 20, 20);
  }, 200);
  const client = new Client({});
  await client.connect();
  const { sessionId, token } = await client.request('room.join', { name: room, displayName: name });
  const session = OT.initSession('', sessionId, { client });
  await new Promise((resolve, reject) => { session.connect(token, (error) => (error ? reject(error) : resolve())); });
  const [videoSource] = canvas.captureStream(5).getVideoTracks();
  await new Promise((resolve, reject) => {
    session.publish(document.createElement('div'), { videoSource, audioSource: null }, (error) => (error ? reject(error) : resolve()));
  });
}
