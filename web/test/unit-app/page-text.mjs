import { readFile } from 'node:fs/promises';

const app = new URL('../../app/', import.meta.url);

/** The text of a page as the server sends it, with the files that it includes. @param {string} name */
export async function pageText(name) {
  const text = await readFile(new URL(`${name}/index.html`, app), 'utf8');
  const parts = new Map(await Promise.all(['head', 'top'].map(async (part) => [part, await readFile(new URL(`shared/${part}.html`, app), 'utf8')])));
  return text.replace(/<!-- include "([./]*)app\/shared\/(\w+)\.html" -->\n/g, (_, start, part) => parts.get(part).replaceAll('="app/', `="${start}app/`));
}
