// The two tiers of browser tests. The first tier tests each behavior once, in the engine where it is most likely to break.
// `scripts/test` runs this tier. `scripts/test --all` runs everything.
import { test } from 'node:test';

/** True if the tests of both tiers run. */
export const isFull = process.env.CONFAB_BROWSER_TIER === 'all';

/**
 * Device pixels per CSS pixel. Without a graphics card, painting pages takes more CPU time than all video processing, so the
 * first tier paints a quarter of the pixels. Pages measure in CSS pixels, which stay the same.
 */
export const screenScale = isFull ? 1 : 0.5;

/**
 * Defines a test of the second tier, which runs only with `--all`. It repeats a behavior in another engine or over another
 * transport, or tests a behavior that a test without a browser also covers.
 *
 * @param {string} title
 * @param {string} provedBy the tests that prove the behavior in every run: file or suite, and title
 * @param {...unknown} rest options and body, as in `test`
 */
export function testInFull(title, provedBy, ...rest) {
  if (!provedBy) throw new Error(`which test proves "${title}" in the first tier?`);
  if (isFull) test(title, ...rest);
}
