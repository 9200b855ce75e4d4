// An application's site with the pages of `opentok-pages`. They are written against OpenTok's documentation, and load the script from
// the server, which has another origin.
import { createHmac, randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { repository } from './server.mjs';

const folder = path.join(repository, 'web', 'test', 'browser', 'opentok-pages');
const encoded = (object) => Buffer.from(JSON.stringify(object)).toString('base64url');

/** The server's project, which signs tokens as OpenTok's server SDKs do. */
export async function projectOf(server) {
  const text = await server.command('project', 'show');
  const key = /API key: +(\S+)/.exec(text)[1];
  const secret = /API secret: +(\S+)/.exec(text)[1];
  return {
    key,
    /** @param {string} session @param {{role?: string, data?: string}} [options] */
    token: (session, { role = 'publisher', data = '' } = {}) => {
      const now = Math.floor(Date.now() / 1000);
      const signed = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded({
        iss: key, ist: 'project', iat: now, exp: now + 600, nonce: randomInt(1e6), role, session_id: session, scope: 'session.connect',
        connection_data: data,
      })}`;
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
    },
  };
}

const html = (name, script, values) => `<!doctype html><html lang="en"><meta charset="utf-8"><title>${name}</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width">
<style>#publisher, #subscriber { width: 320px; height: 240px }</style>
<main><h1>${name}</h1><div id="publisher"></div><div id="subscriber"></div><pre id="log"></pre></main>
<script>
Object.assign(window, ${JSON.stringify(values).replaceAll('<', '\\u003c')});
function log(text) { document.getElementById('log').append(text + '\\n'); }
function handleError(error) { if (error) log('error: ' + error.name + ' ' + error.message); }
</script>
<script src="${script}"></script>
<script type="${name === 'module' ? 'module' : 'text/javascript'}" src="/pages/${name}.js"></script>`;

/**
 * Serves the pages until the test ends.
 *
 * @param {Record<string, string>} [files] other files, by path
 */
export async function opentokSite(t, files = {}) {
  const site = http.createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://site');
    const page = /^\/(\w[\w-]*)$/.exec(pathname)?.[1];
    const script = /^\/pages\/([\w-]+\.js)$/.exec(pathname)?.[1];
    if (page) {
      const { script: address, ...values } = Object.fromEntries(searchParams);
      response.setHeader('content-type', 'text/html');
      return response.end(html(page, address, { ...values, SCRIPT: address }));
    }
    const file = script ? path.join(folder, script) : files[pathname];
    if (!file) return response.writeHead(404).end();
    response.setHeader('content-type', file.endsWith('.js') ? 'text/javascript' : 'video/webm');
    return response.end(await readFile(file));
  });
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    site.closeAllConnections();
    site.close();
  });
  /** @param {string} name @param {{server: string, session?: string, key?: string, token?: string, as?: string}} values */
  return (name, { server, session = '', key = '', token = '', as = '' }) => `http://127.0.0.1:${site.address().port}/${name}?${new URLSearchParams({
    script: `${server}/v2/js/opentok.min.js`, API_KEY: key, SESSION_ID: session, TOKEN: token, NAME: as,
  })}`;
}
