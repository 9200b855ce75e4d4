// Reads the files of the checkout and what changed in it, for tools that run only the tests that a change can affect.
import { execFileSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { posix as path } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {object} Checkout all paths are relative to its root
 * @property {string[]} changed including deleted files
 * @property {string[]} files all files
 * @property {Map<string, string>} [links] symbolic links and their targets
 * @property {(file: string) => string} read returns the text of a file, or an empty string if it does not exist
 */

export const root = fileURLToPath(new URL('..', import.meta.url));

/** @param {string[]} args */
function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Returns git's output, or undefined if git fails. @param {string[]} args */
function asked(...args) {
  try {
    return git(...args).trim();
  } catch {
    return undefined;
  }
}

/** @param {string} revision */
export function exists(revision) {
  return asked('rev-parse', '--verify', '--quiet', `${revision}^{commit}`) !== undefined;
}

/** Returns the default revision to compare with. */
export function usualBase() {
  const isMain = asked('symbolic-ref', '--quiet', 'HEAD') === 'refs/heads/main';
  return [...(isMain ? [] : ['main']), 'origin/main'].find(exists) ?? 'HEAD';
}

/** Returns the checkout and its differences from a revision. @param {string} base @returns {Checkout} */
export function changeSince(base) {
  const paths = (/** @type {string[]} */ ...args) => git(...args).split('\0').filter(Boolean);
  const start = asked('merge-base', base, 'HEAD') ?? base;
  const untracked = paths('ls-files', '-z', '--others', '--exclude-standard');
  const changed = [...paths('diff', '-z', '--name-only', '--no-renames', start, '--'), ...untracked];
  /** @type {Map<string, string>} */
  const links = new Map();
  const status = (/** @type {string} */ file) => lstatSync(root + file, { throwIfNoEntry: false });
  const files = [...new Set([...paths('ls-files', '-z', '--cached'), ...untracked])].filter(status);
  for (const file of files) {
    if (status(file)?.isSymbolicLink()) links.set(file, path.join(path.dirname(file), readlinkSync(root + file)));
  }
  // Deleted files and links have no text.
  const read = (/** @type {string} */ file) => (status(file)?.isFile() ? readFileSync(root + file, 'utf8') : '');
  return { changed: [...new Set(changed)], files, links, read };
}

/** Returns Package.swift as data. With its own scratch folder, SwiftPM does not wait for a running build. @returns {any} */
export function dumpPackage() {
  const scratch = mkdtempSync(path.join(tmpdir(), 'confab-package-'));
  const args = ['package', 'dump-package', '--package-path', root, '--scratch-path', scratch];
  try {
    return JSON.parse(execFileSync('swift', args, { encoding: 'utf8', maxBuffer: 2 ** 28 }));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
