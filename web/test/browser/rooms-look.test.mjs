// Every state of a room's page, checked with axe: phone and laptop, light and dark; and the room with the keyboard alone, and with the
// mouse. With `--all` also on a phone sideways, photographed, and with 1 to 9 and 25 people.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { axe } from './axe.mjs';
import { sharedBrowsers } from './browsers.mjs';
import { failMedia, keepGiven, notAskedYet, source } from './in-page.mjs';
import { approach, come, crowd, endings, ended, enter, isPressed, moderate, press, reads, says, seesAll, sendFile, setOption } from './roommate.mjs';
import { looks, looksOf, screenshotFolder, sideways } from './screenshots.mjs';
import { repository } from './server.mjs';
import { assertNoComplaints, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();
const room = 'garden';
const looksRight = looksOf('room');

test('the page looks right before the room, without a camera, with a password, and at the end', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const host = await come(t, browser, url, { room, name: 'Ann', color: 'red' });
  await host.evaluate(async () => {
    document.getElementById('more-options').click();
    document.getElementById('option-password').value = 'secret';
    document.getElementById('password-set').click();
  });
  await host.waitFor('the room has a password', () => /has a password/.test(document.getElementById('password-is').textContent));
  const page = await approach(t, browser, url, { room, color: 'teal', label: 'Bob' });
  await looksRight(t, page, 'before');
  await press(page, { name: 'Bob' });
  await page.find('textbox', 'Password');
  await looksRight(t, page, 'password');
  const blind = await approach(t, browser, url, { room: 'other', label: 'a blind', scripts: [source(notAskedYet), source(failMedia, 'NotAllowedError')] });
  await enter(blind, { name: 'Eve' });
  await blind.until('it says that the camera is blocked', async () => /are blocked for this page/.test(await blind.alerts()));
  await looksRight(t, blind, 'camera-refused');
  await blind.click('button', 'Leave');
  await ended(blind, endings.left);
  await looksRight(t, blind, 'left');
});

test('the room looks right: alone, with others, its panels, its dialogs and a knock', async (t) => {
  const { url } = await serve(t, { CONFAB_RECORDING_MODERATORS_MAY_RECORD: 'true' });
  const browser = await chromium();
  const page = await come(t, browser, url, { room, name: 'Ann', color: 'red' });
  await looksRight(t, page, 'alone');
  const other = await come(t, browser, url, { room, name: 'Bob', color: 'green' });
  await seesAll(page, { Bob: 'green' });
  await looksRight(t, page, 'two');
  await other.click('button', 'Raise hand');
  await other.click('button', 'Mute');
  await other.click('button', 'Camera off');
  await page.waitFor('the hand is shown', "document.querySelector('.person-tile[data-hand][data-muted]:not([data-video])')");
  await looksRight(t, page, 'hand');
  await page.click('button', 'Chat');
  await page.fill('textbox', 'Message', 'A line that is long enough to need more than one on a telephone, and in a narrow panel.');
  await page.press('Enter');
  await reads(page, 'long enough');
  await looksRight(t, page, 'chat');
  await sendFile(other, 'Plan for the summer party – with the list of everyone who brings something (final).pdf', Array(1_234_567).fill(7));
  await reads(page, 'final');
  await sendFile(page, 'photo.jpg', Array(70_000).fill(7));
  await reads(page, 'photo.jpg');
  await looksRight(t, page, 'files');
  await holdUploads(page);
  await sendFile(page, 'A film of the garden, which is long enough to need a while.mp4', Array(70_000).fill(7));
  await page.find('button', 'Cancel upload');
  await looksRight(t, page, 'sending');
  await page.resize(390, 780);
  const cancel = await (await page.find('button', 'Cancel upload')).evaluate(function () { return this.getBoundingClientRect().right; });
  assert.ok(cancel <= 390, `a long name pushes the button out of the panel, to ${cancel}`);
  await page.resize(1280, 720);
  await page.click('button', 'Cancel upload');
  await page.waitFor('the upload is canceled', () => document.getElementById('file-progress').hidden);
  await page.click('button', 'Invite');
  await page.waitFor('the QR code is shown', "document.querySelector('#invite-qr img')?.naturalWidth > 0");
  await looksRight(t, page, 'invite');
  await page.press('Escape');
  await setOption(page, 'lobby', true);
  const third = await approach(t, browser, url, { room, color: 'blue', label: 'Cat' });
  await press(third, { name: 'Cat' });
  await third.waitForStatus(says.waiting);
  await looksRight(t, third, 'lobby');
  await page.click('button', 'People');
  await page.find('button', 'Admit');
  await looksRight(t, page, 'people');
  await page.click('button', 'People');
  await page.find('button', 'Admit');
  await looksRight(t, page, 'knock');
  await page.click('button', 'React');
  await looksRight(t, page, 'react');
  await page.press('Escape');
  await page.click('button', 'More');
  await page.find('button', 'Record this room');
  await looksRight(t, page, 'record');
  await page.click('button', 'Record this room');
  await page.waitForStatus(/This session is being recorded\./);
  await other.waitForStatus(/This session is being recorded\./);
  await page.click('button', 'More');
  await page.find('button', 'Stop recording');
  await looksRight(t, page, 'recorded');
  await page.click('button', 'Stop recording');
  await other.waitForStatus(/The recording has stopped\./);
  await page.press('?');
  await page.find('dialog');
  await looksRight(t, page, 'keys');
  await page.press('Escape');
  await page.click('button', 'More');
  await page.click('button', 'Settings');
  await page.find('combobox', 'Camera');
  await looksRight(t, page, 'settings');
  await page.press('Escape');
  await moderate(page, 'Bob', 'Remove');
  await page.find('dialog');
  await looksRight(t, page, 'remove');
  await page.press('Escape');
  // The chat covers the room on a phone, but not the knock.
  await page.resize(390, 780);
  await page.click('button', 'Chat');
  await page.click('button', 'Deny');
  await ended(third, endings.refused);
});

test('a room can be used with the keyboard alone', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const other = await come(t, browser, url, { room, name: 'Bob', color: 'green' });
  const page = await approach(t, browser, url, { room, color: 'red', label: 'Ann' });
  await page.tabTo('textbox', 'Your name');
  await page.type('Ann');
  await page.press('Enter');
  await seesAll(other, { Ann: 'red' });

  await page.tabTo('group', 'You');
  await page.press('ArrowLeft');
  await page.press('ArrowUp');
  const corner = await (await page.find('group', 'You')).evaluate(function () { return [parseFloat(this.style.left), parseFloat(this.style.top)]; });
  assert.ok(corner[0] < 50 && corner[1] < 50, `the own picture is at ${corner}`);
  await page.press('Enter');
  await pressedIs(page, 'Mute', 'true');
  await page.press('m');
  await pressedIs(page, 'Mute', 'false');

  await page.tabTo('button', 'Pin Bob');
  await page.press('Enter');
  await pressedIs(page, 'Pin Bob', 'true');
  await page.press('c');
  await page.type('typed, not a shortcut: m');
  await page.press('Enter');
  await reads(other, 'typed, not a shortcut: m');
  await page.press('Escape');
  await focusIsOn(page, 'chat');

  await page.tabTo('button', 'React');
  await page.press('Enter');
  await page.tabTo('button', 'React with applause');
  await page.press('Enter');
  await focusIsOn(page, 'react');
  await page.tabTo('button', 'More');
  await page.press('Enter');
  await page.tabTo('button', 'Keyboard shortcuts');
  await page.press('Enter');
  await page.find('dialog');
  await page.press('Escape');
  await focusIsOn(page, 'more');
  await page.tabTo('button', 'Raise hand');
  await page.press('Enter');
  await other.waitForStatus(/Ann.* raised their hand/);
  await page.tabTo('button', 'Leave');
  await page.press('Enter');
  await ended(page, endings.left);
});

test('with the mouse: a double click shows all of a picture or fills its tile, a click on the own picture mutes, and dragging moves it to another corner', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const one = await come(t, browser, url, { room, name: 'Ann', color: 'red', scripts: [source(keepGiven)] });
  await one.click('button', 'Copy link'); // On the card for those who are alone.
  await one.waitForStatus(says.copied);
  const other = await come(t, browser, url, { room, name: 'Bob', color: 'green' });
  await Promise.all([seesAll(one, { Bob: 'green' }), seesAll(other, { Ann: 'red' })]);

  const fit = () => one.evaluate("getComputedStyle(document.querySelector('.person-tile video')).objectFit");
  const tile = await one.find('group', 'Bob');
  const fits = [await fit()];
  for (const times of [2, 2, 1]) {
    await tile.click({ times });
    fits.push(await fit());
  }
  assert.deepEqual(fits, ['cover', 'contain', 'cover', 'cover'], 'a double click changes it, and one click does not');

  const turned = (selector) => one.evaluate((what) => new DOMMatrix(getComputedStyle(document.querySelector(what)).transform).a, selector);
  assert.deepEqual([await turned('#self video'), await turned('.person-tile video')], [-1, 1], 'only the own picture is mirrored');
  const own = await one.find('group', 'You');
  await own.click();
  await other.waitFor('Ann is muted', "document.querySelector('.person-tile[data-muted]')");
  await own.drag(-700, -300);
  await one.waitFor('the own picture is in the other corner', () => {
    const [self, stage] = ['self', 'stage'].map((id) => document.getElementById(id).getBoundingClientRect());
    return self.left - stage.left < 50 && self.top - stage.top < 50;
  }, { why: () => JSON.stringify(document.getElementById('self').getBoundingClientRect()) });
  assert.ok(await isPressed(one, 'mute'), 'dragging is no click');
  await own.click();
  await other.waitFor('Ann is heard', "document.querySelector('.person-tile:not([data-muted])')");

  await one.click('button', 'More');
  await one.click('button', 'Picture in Picture');
  assert.deepEqual(await one.evaluate('window.__given'), [['clipboard', `${url}/room/${room}`], ['float', 'Bob']]);
  assertNoComplaints(one, other);
});

/** Lets uploads of this page send nothing, and shows two fifths of their progress. */
function holdUploads(page) {
  return page.evaluate(() => {
    XMLHttpRequest.prototype.send = function () {
      this.upload.dispatchEvent(new ProgressEvent('progress', { loaded: 2, total: 5 }));
      this.abort = () => this.dispatchEvent(new ProgressEvent('abort'));
    };
  });
}

/** Waits until what the user did has closed, and the button that opened it has the focus. */
function focusIsOn(page, id) {
  return page.waitFor(`the focus is on "${id}"`, (wanted) => document.activeElement?.id === wanted && !document.querySelector('dialog[open]'), { args: [id] });
}

function pressedIs(page, name, value) {
  return page.waitFor(`${name} is ${value}`, (label, wanted) => [...document.querySelectorAll('button')].some((element) => (
    (element.getAttribute('aria-label') ?? element.textContent.trim()) === label && element.getAttribute('aria-pressed') === wanted)), { args: [name, value] });
}

testInFull('the rest looks right: menus, the settings of a room, a shared screen, and how visits end',
  'rooms-look.test.mjs "the room looks right: alone, with others, its panels, its dialogs and a knock"; rooms.test.mjs', async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const page = await come(t, browser, url, { room, name: 'Ann', color: 'red' });
  const other = await come(t, browser, url, { room, name: 'Bob', color: 'green', screen: { color: 'magenta', tone: 660 } });
  await come(t, browser, url, { room, name: 'Cat with a name that is too long for a tile', color: 'teal' });
  await page.waitFor('both are shown', () => document.querySelectorAll('.OT_subscriber:not(.OT_loading) video').length === 2);
  await page.click('button', 'More');
  await looksRight(t, page, 'more');
  await page.press('Escape');
  await page.press('l');
  await page.press('l');
  await looksRight(t, page, 'speaker');
  await page.press('l');
  await other.click('button', 'Share screen');
  await page.waitFor('the screen is shown', () => document.querySelectorAll('.OT_subscriber:not(.OT_loading) video').length === 3);
  await looksRight(t, page, 'screen');
  await looksRight(t, other, 'sharing');
  await page.click('button', 'People');
  await page.waitFor('the menu of Bob is open', () => {
    const summary = document.querySelector('summary[aria-label="Options for Bob"]');
    if (summary && !summary.parentElement.open) summary.click();
    return summary !== null;
  });
  await looksRight(t, page, 'menu');
  await page.press('Escape');
  await page.click('button', 'People');
  await setOption(page, 'locked', true);
  const third = await approach(t, browser, url, { room, color: 'blue', label: 'Dan' });
  await press(third, { name: 'Dan' });
  await ended(third, endings.locked);
  await looksRight(t, third, 'locked');
  await page.click('button', 'More');
  await page.click('button', 'Room settings');
  await page.find('textbox', 'Room password');
  await looksRight(t, page, 'options');
  await page.press('Escape');
  await moderate(page, 'Bob', 'Remove');
  await page.find('dialog');
  await page.evaluate("[...document.querySelectorAll('dialog[open] button')].find(({ textContent }) => textContent.trim() === 'Remove').click()");
  await ended(other, endings.removed);
  await looksRight(t, other, 'removed');
});

testInFull('a room with 1 to 9 and with 25 people, on a laptop and a phone, upright and sideways',
  'rooms-look.test.mjs "the room looks right: alone, with others, its panels, its dialogs and a knock"; unit/layout', { timeout: 600_000 }, async (t) => {
  const { url } = await serve(t);
  const browser = await chromium();
  const page = await come(t, browser, url, { room, name: 'Ann', color: 'red' });
  const names = ['Bob', 'Cat', 'Dan', 'Eve', 'Fay', 'Gus', 'Hal', 'Ivy', ...Array.from({ length: 16 }, (_, index) => `Guest ${index + 10}`)];
  const shades = ['green', 'blue', 'teal', 'purple', 'olive', 'navy', 'brown', 'gray'];
  let count = 1;
  for (const size of [1, 2, 3, 4, 5, 6, 7, 8, 9, 25]) {
    const people = names.slice(count - 1, size - 1).map((name, index) => ({ name, color: shades[(count + index) % shades.length] }));
    if (people.length) await crowd(t, browser, url, { room, people });
    count = size;
    await page.waitFor(`${size - 1} pictures are shown`, (wanted) => document.querySelectorAll('.OT_subscriber:not(.OT_loading) video').length >= wanted, {
      args: [Math.min(size - 1, 9)], timeout: 60_000,
    });
    for (const look of [...looks, ...sideways]) {
      await page.looking(look, async () => {
        const file = `room-of-${size}-${look.width}x${look.height}-${look.dark ? 'dark' : 'light'}.png`;
        await page.keepPicture(path.join(screenshotFolder, file));
        const { scrollWidth, scrollHeight } = await page.evaluate(() => {
          const { scrollWidth: wide, scrollHeight: high } = document.documentElement;
          return { scrollWidth: wide, scrollHeight: high };
        });
        assert.ok(scrollWidth <= look.width && scrollHeight <= look.height, `${file} scrolls: ${scrollWidth}×${scrollHeight}`);
      });
    }
    await page.looking({ width: 1280, height: 720, dark: false }, () => {});
    const time = stopwatch();
    assert.deepEqual(await axe(page), [], `faults in a room of ${size}`);
    t.diagnostic(`axe took ${time()} in a room of ${size}`);
  }
  t.diagnostic(`photographs: ${path.relative(repository, screenshotFolder)}/room-of-*.png`);
});
