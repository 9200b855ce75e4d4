// The two tiers of browser tests. The first proves each behavior once, in the engine where it is most likely to break, and
// is what `scripts/test` runs. `scripts/test --all` runs the whole matrix.
import { test } from 'node:test';

/** Whether the whole matrix runs. */
export const isFull = process.env.CONFAB_BROWSER_TIER === 'all';

/**
 * Pixels of the screen for each CSS pixel. Without a graphics card, painting pages takes more of the processor than all
 * video, so the first tier paints a quarter of the pixels. What a page measures is in CSS pixels and stays the same.
 */
export const screenScale = isFull ? 1 : 0.5;

/**
 * A test of the second tier: it repeats a behavior in another engine or over another transport, or a test without a browser
 * proves the rule. It runs with `--all` only.
 *
 * @param {string} title
 * @param {string} provedBy the tests that prove the behavior in every run: file or suite, and title
 * @param {...unknown} rest options and body, as in `test`
 */
export function testInFull(title, provedBy, ...rest) {
  if (!provedBy) throw new Error(`which test proves "${title}" in the first tier?`);
  if (isFull) test(title, ...rest);
}
