// A page of another origin, such as an application's, which shows a page of the server in a frame.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { repository } from './server.mjs';

/** What the element of the documentation grants the page in the frame. */
const [, granted] = /<iframe [^>]*allow="([^"]+)"/.exec(readFileSync(path.join(repository, 'docs', 'rest.md'), 'utf8'));

/**
 * Serves a page with one frame until the test ends.
 *
 * @returns {Promise<{origin: string, frame: string}>} `frame`: the address in the frame, to be set before the page is opened
 */
export async function siteWithFrame(t) {
  const site = { origin: '', frame: 'about:blank' };
  const server = http.createServer((request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    // An empty icon, because the browser asks for one.
    response.end(`<!doctype html><title>An application</title><link rel="icon" href="data:,">
      <iframe src="${site.frame}" allow="${granted}" style="width: 100%; height: 600px; border: 0"></iframe>`);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  site.origin = `http://127.0.0.1:${server.address().port}`;
  return site;
}
