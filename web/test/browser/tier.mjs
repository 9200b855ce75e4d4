// The two tiers of browser tests. The first tests each behavior once, in the engine where it is most likely to break, and
// is what `scripts/test` runs. `scripts/test --all` runs everything.
import { test } from 'node:test';

/** True if everything runs. */
export const isFull = process.env.CONFAB_BROWSER_TIER === 'all';

/**
 * Device pixels per CSS pixel. Without a graphics card, painting pages needs more CPU time than all video, so the first tier
 * paints a quarter of the pixels. Pages measure in CSS pixels, which stay the same.
 */
export const screenScale = isFull ? 1 : 0.5;

/**
 * Defines a test of the second tier: it repeats a behavior in another engine or over another transport, or a test without a
 * browser covers it. Runs only with `--all`.
 *
 * @param {string} title
 * @param {string} provedBy the tests that prove the behavior in every run: file or suite, and title
 * @param {...unknown} rest options and body, as in `test`
 */
export function testInFull(title, provedBy, ...rest) {
  if (!provedBy) throw new Error(`which test proves "${title}" in the first tier?`);
  if (isFull) test(title, ...rest);
}
