// Pictures of the page for people to look at, in artifacts/screenshots/, which git ignores.
import path from 'node:path';
import { axe } from './axe.mjs';
import { repository } from './server.mjs';

export const screenshotFolder = path.join(repository, 'artifacts', 'screenshots');

/** A phone and a laptop, by day and by night. */
export const looks = [
  { width: 360, height: 740, dark: false },
  { width: 360, height: 740, dark: true },
  { width: 1280, height: 800, dark: false },
  { width: 1280, height: 800, dark: true },
];

function lookName({ width, dark }) {
  return `${width}-${dark ? 'dark' : 'light'}`;
}

/**
 * Photographs the page in every look and leaves it as it was.
 *
 * @param {import('./page.mjs').Page} page
 * @param {string} state the name of what it shows, such as "waiting"
 * @returns {Promise<string[]>} the files
 */
export async function photograph(page, state) {
  const files = [];
  for (const look of looks) {
    const file = path.join(screenshotFolder, `${state}-${lookName(look)}.png`);
    await page.screenshot(file, look);
    files.push(file);
  }
  return files;
}

/**
 * Photographs the page and checks it with axe in every look; returns all faults found. A page must not scroll sideways in
 * any of them either, which axe does not know.
 *
 * @param {import('./page.mjs').Page} page
 * @param {string} state
 * @param {{except?: string[]}} [options] see `axe`
 * @returns {Promise<string[]>}
 */
export async function inspect(page, state, options) {
  const { width, height, dark } = page;
  const faults = [];
  for (const look of looks) {
    const file = path.join(screenshotFolder, `${state}-${lookName(look)}.png`);
    const name = `${state} ${lookName(look)}`;
    await page.screenshot(file, look);
    await page.looking(look, async () => {
      for (const fault of await axe(page, options)) faults.push(`${name}: ${fault}`);
      const wide = await page.evaluate('document.documentElement.scrollWidth');
      if (wide > look.width) faults.push(`${name}: the page is ${wide} wide and scrolls sideways`);
    });
  }
  await page.looking({ width, height, dark }, () => {});
  return faults;
}
