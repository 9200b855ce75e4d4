// Runs axe-core in a page: an automatic check for accessibility violations.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { repository } from './server.mjs';

let axeSource;

/** The text of axe.min.js, fetched once into a cache by the script that also installs the browsers. */
async function loadAxe() {
  const { stdout } = await promisify(execFile)(path.join(repository, 'scripts', 'browser-setup'), ['--axe']);
  return readFile(stdout.trim(), 'utf8');
}

/**
 * Checks the page in its current state and returns the violations, each as a readable text. Tests expect an empty list.
 *
 * @param {import('./page.mjs').Page} page
 * @param {{except?: string[]}} [options] `except`: the IDs of rules to skip; explain each at the call
 * @returns {Promise<string[]>}
 */
export async function axe(page, { except = [] } = {}) {
  axeSource ??= loadAxe();
  if (!await page.evaluate('Boolean(window.axe)')) {
    await page.run(`(async () => { ${await axeSource}; return 'loaded'; })()`);
  }
  const violations = await page.evaluate(runAxe, except);
  return violations.map(({ id, impact, help, nodes }) => {
    const places = nodes.map(({ target, html, summary }) => `    ${target}: ${html}\n      ${summary.replaceAll('\n', '\n      ')}`);
    return `${impact} ${id}: ${help}\n${places.join('\n')}`;
  });
}

/** Runs in the page. */
async function runAxe(except) {
  const { violations } = await window.axe.run(document, {
    resultTypes: ['violations'],
    rules: Object.fromEntries(except.map((id) => [id, { enabled: false }])),
  });
  return violations.map(({ id, impact, help, nodes }) => ({
    id, impact, help,
    nodes: nodes.slice(0, 5).map(({ target, html, failureSummary }) => ({
      target: target.join(' '), html: html.slice(0, 160), summary: failureSummary,
    })),
  }));
}
