// Makes the picture in README: a room, a chat with a stranger and a call on a phone. `scripts/readme-picture` runs this.
import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { launchChromium } from '../browser/chromium.mjs';
import { framesRise } from '../browser/media.mjs';
import * as neighbor from '../browser/neighbor.mjs';
import { Child, temporaryFolder } from '../browser/process.mjs';
import * as roommate from '../browser/roommate.mjs';
import { repository } from '../browser/server.mjs';
import * as stranger from '../browser/stranger.mjs';
import { NotYet } from '../browser/wait.mjs';
import { camera, join } from './camera.mjs';
import { cast } from './cast.mjs';

const [result, ...only] = process.argv.slice(2);
/** The folder for the pictures of the pages. */
const folder = process.env.CONFAB_PICTURES ?? await temporaryFolder('picture');
/** What the helpers of the tests need of a test. */
const ends = [];
const scene = { after: (end) => { ends.unshift(end); }, diagnostic: console.error };

/** Cameras of laptops, and of a phone. */
const [small, large, upright] = [{ width: 854, height: 480 }, { width: 960, height: 720 }, { width: 576, height: 1072 }];
const who = (name, size) => ({ label: name, scripts: [camera(cast[name], size)] });

/**
 * Waits until this many videos of others are sharp and their connections are good, and takes a picture.
 *
 * @param {import('../browser/page.mjs').Page} page @param {string} name
 * @param {{width: number, height: number, dark?: boolean, videos: number, lines: number}} look `lines`: of a sharp video
 */
async function shoot(page, name, { width, height, dark = false, videos, lines }) {
  await page.emulateMedia({ dark });
  // The fonts of most readers' machines are not in Debian. These are similar, if they are installed.
  await page.evaluate(() => document.documentElement.style.setProperty('--sans', 'Inter, system-ui, sans-serif'));
  // For screens with many pixels. A page requests videos in the size in which it shows them.
  await page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 2, mobile: false });
  // Away from controls that a mouse would show, and without a caret.
  await page.evaluate('document.activeElement.blur()');
  await page.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: width / 2, y: 1 });
  // The first frames in a new size have less detail.
  await framesRise(page, { by: 60 * videos, timeout: 120_000 });
  await page.until(`${videos} videos are sharp`, async () => {
    const [heights, levels] = await page.evaluate(() => [
      [...document.querySelectorAll('.OT_subscriber video')].map((video) => video.videoHeight),
      [...document.querySelectorAll('.network')].map((element) => element.dataset.level),
    ]);
    if (heights.filter((high) => high >= lines).length < videos) throw new NotYet(`their heights are ${heights}`);
    if (levels.some((level) => level !== 'good')) throw new NotYet(`their connections are ${levels}; is the machine busy?`);
    return true;
  }, { timeout: 120_000 });
  await page.keepPicture(path.join(folder, `${name}.png`));
}

async function room(browser, url) {
  const page = await roommate.come(scene, browser, url, { room: 'Book club', name: 'Maya', ...who('Maya', small) });
  const others = await browser.newPage({ label: 'the others' });
  await others.goto(`${url}/try`);
  for (const name of ['Jonas', 'Amara', 'Kenji', 'Layla', 'Rosa']) {
    await join(others, { room: 'Book club', name, person: cast[name], size: small });
  }
  await shoot(page, 'room', { width: 1120, height: 700, videos: 5, lines: 360 });
  for (const one of [page, others]) await one.close();
}

async function chat(browser, url) {
  const [sofia, daniel] = [await stranger.arrive(scene, browser, url, who('Sofia', large)), await stranger.arrive(scene, browser, url, who('Daniel', large))];
  for (const [page, name] of [[sofia, 'Sofia'], [daniel, 'Daniel']]) {
    await page.fill('textbox', 'Interests', 'chess, travel,');
    await stranger.begin(page, { name });
  }
  await Promise.all([sofia, daniel].map((page) => page.waitForStatus(stranger.says.talking)));
  for (const [page, other, text] of [
    [daniel, sofia, 'Hi! Where are you from?'],
    [sofia, daniel, 'Lisbon. And you?'],
    [daniel, sofia, 'Toronto! Up for chess?'],
    [sofia, daniel, "Yes, let's play!"],
  ]) {
    await stranger.write(page, text);
    await stranger.reads(other, text);
  }
  await shoot(sofia, 'chat', { width: 860, height: 519, videos: 1, lines: large.height });
  for (const page of [sofia, daniel]) await page.close();
}

async function phone(browser, url) {
  const [lena, omar] = [
    await neighbor.come(scene, browser, url, { name: 'Lena', width: 390, height: 844, ...who('Lena', small) }),
    await neighbor.come(scene, browser, url, { name: 'Omar', at: neighbor.places.nextDoor, ...who('Omar', upright) }),
  ];
  await neighbor.lists(omar, 'Lena');
  await neighbor.call(omar, 'Lena');
  await neighbor.rings(lena, 'Omar');
  await lena.click('button', 'Accept');
  await lena.waitForStatus(neighbor.says.talking);
  await shoot(lena, 'phone', { width: 390, height: 800, dark: true, videos: 1, lines: upright.height });
  for (const page of [lena, omar]) await page.close();
}

/** Puts the pictures of the pages together. */
async function compose(browser) {
  const here = path.join(repository, 'web/test/picture/frames.html');
  for (const file of [here, path.join(repository, 'web/app/favicon.svg')]) await copyFile(file, path.join(folder, path.basename(file)));
  const page = await browser.newPage({ label: 'frames' });
  await page.goto(`file://${folder}/frames.html`);
  await page.send('Emulation.setDeviceMetricsOverride', { width: 1920, height: 1270, deviceScaleFactor: 1, mobile: false });
  await page.evaluate(() => Promise.all([...document.images].map((image) => image.decode())));
  await page.keepPicture(path.join(folder, 'frames.png'));
  const ffmpeg = new Child('ffmpeg', ['-nostdin', '-v', 'error', '-y', '-i', path.join(folder, 'frames.png'), '-pix_fmt', 'yuvj444p', '-q:v', '2', result]);
  const { code } = await ffmpeg.exited;
  if (code !== 0) throw new Error(`ffmpeg failed:\n${ffmpeg.tail()}`);
}

try {
  const server = await stranger.serve(scene);
  const browser = await launchChromium({ flags: ['--autoplay-policy=no-user-gesture-required'] });
  ends.unshift(() => browser.close());
  for (const make of [room, chat, phone]) if (only.length === 0 || only.includes(make.name)) await make(browser, server.url);
  await compose(browser);
} finally {
  for (const end of ends) await end();
}
