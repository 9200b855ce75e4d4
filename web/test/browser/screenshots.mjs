// Pictures of the page for people to look at, in artifacts/screenshots/, which git ignores.
import path from 'node:path';
import { axe } from './axe.mjs';
import { repository } from './server.mjs';
import { isFull } from './tier.mjs';

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
 * Checks the page with axe and leaves it as it was; returns all faults found. A page must not scroll sideways either, which
 * axe does not know. The full tier does so in every look and takes a photograph of each; the first tier takes a phone by day
 * and a laptop by night, which have every width and every color between them.
 *
 * @param {import('./page.mjs').Page} page
 * @param {string} state
 * @param {{except?: string[]}} [options] see `axe`
 * @returns {Promise<string[]>}
 */
export async function inspect(page, state, options) {
  const { width, height, dark } = page;
  const faults = [];
  for (const look of isFull ? looks : [looks[0], looks[3]]) {
    const name = `${state}-${lookName(look)}`;
    await page.looking(look, async () => {
      if (isFull) await page.keepPicture(path.join(screenshotFolder, `${name}.png`));
      for (const fault of await axe(page, options)) faults.push(`${name}: ${fault}`);
      const wide = await page.evaluate('document.documentElement.scrollWidth');
      if (wide > look.width) faults.push(`${name}: the page is ${wide} wide and scrolls sideways`);
    });
  }
  await page.looking({ width, height, dark }, () => {});
  return faults;
}
