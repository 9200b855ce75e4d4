// Screenshots of the pages, in artifacts/screenshots/, which git ignores.
import assert from 'node:assert/strict';
import path from 'node:path';
import { axe } from './axe.mjs';
import { repository } from './server.mjs';
import { isFull } from './tier.mjs';

export const screenshotFolder = path.join(repository, 'artifacts', 'screenshots');

/** A phone, upright, and a laptop, light and dark. */
export const looks = [
  { width: 360, height: 740, dark: false },
  { width: 360, height: 740, dark: true },
  { width: 1280, height: 800, dark: false },
  { width: 1280, height: 800, dark: true },
];

/** A phone, turned. */
export const sideways = [{ width: 740, height: 360, dark: false }, { width: 740, height: 360, dark: true }];

function lookName({ width, dark }) {
  return `${width}-${dark ? 'dark' : 'light'}`;
}

/**
 * Checks the page with axe, restores it, and returns all violations. Also checks that the page does not scroll sideways, which
 * axe does not test. The full tier checks every size and scheme and takes screenshots; the first tier checks a light phone and
 * a dark laptop, which together cover all sizes and schemes.
 *
 * @param {import('./page.mjs').Page} page
 * @param {string} state
 * @param {{except?: string[]}} [options] see `axe`
 * @returns {Promise<string[]>}
 */
export async function inspect(page, state, options) {
  const { width, height, dark } = page;
  const faults = [];
  for (const look of isFull ? [...looks, ...sideways] : [looks[0], looks[3]]) {
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

/**
 * Returns a function that checks the page in a state, which names it in messages and on screenshots.
 *
 * @param {string} name what the names of the screenshots start with
 */
export function looksOf(name) {
  /** @param {import('node:test').TestContext} t @param {import('./page.mjs').Page} page @param {string} state */
  return async (t, page, state) => {
    const faults = await inspect(page, `${name}-${state}`);
    if (isFull) t.diagnostic(`photographs: ${path.relative(repository, screenshotFolder)}/${name}-${state}-*.png`);
    assert.deepEqual(faults, [], `faults in the state "${state}"`);
  };
}
