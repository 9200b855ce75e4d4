// A user of the page `/check`.

/** How long a check may take: all time limits of the page together. */
const checkTimeout = 60_000;

/** Starts a check with the keyboard, waits for its end, and returns the level of each row. @param {import('./page.mjs').Page} page */
export async function check(page) {
  await page.tabTo('button', 'Start the check');
  await page.press('Enter');
  await page.waitForStatus(/complete/i, { timeout: checkTimeout });
  return levelsOf(page);
}

/** Returns the level of each row by its name: `good`, `fair`, `bad` or `none`. @param {import('./page.mjs').Page} page */
export function levelsOf(page) {
  return page.evaluate(() => Object.fromEntries([...document.querySelectorAll('.row')].map(({ dataset }) => [dataset.row, dataset.level])));
}

/** Returns the sentence for support. @param {import('./page.mjs').Page} page */
export const sentenceOf = (page) => page.evaluate("document.getElementById('sentence').textContent");
