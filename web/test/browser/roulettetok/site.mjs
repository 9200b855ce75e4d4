// A site that serves a page like RouletteTok's and forwards everything else to the server, including WebSockets. RouletteTok's
// page and server were one program.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';

const files = {
  '/': ['page.html', 'text/html; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
};

/**
 * Listens on a separate port of 127.0.0.1 until the test ends.
 *
 * @param {import('node:test').TestContext} t
 * @param {number} port the server's port
 * @param {object} [options]
 * @param {number} [options.sdkPort] the port of the node to which the SDK connects, in a cluster; default: `port`
 * @returns {Promise<string>} the address of the page
 */
export async function startSite(t, port, { sdkPort = port } = {}) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  const site = http.createServer((request, response) => {
    const file = files[new URL(request.url, 'http://site').pathname];
    if (file) serve(response, file);
    else forward(request, response, port);
  });
  site.on('upgrade', (request, socket, first) => {
    sockets.add(tunnel(request, socket, first, request.url.startsWith('/v1/socket') ? sdkPort : port));
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    site.closeAllConnections();
    site.close();
  });
  return `http://127.0.0.1:${site.address().port}/`;
}

async function serve(response, [name, type]) {
  const body = await readFile(new URL(name, import.meta.url));
  response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
}

function forward(request, response, port) {
  const { method, url: path, headers } = request;
  const passedOn = http.request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  // If one end closes, close the other.
  passedOn.on('error', () => response.destroy());
  response.on('close', () => passedOn.destroy());
  request.pipe(passedOn);
}

/** Forwards bytes in both directions, because the connection is no longer HTTP. */
function tunnel(request, socket, first, port) {
  const server = net.connect(port, '127.0.0.1');
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = rawHeaders.flatMap((text, index) => (index % 2 ? [] : [`${text}: ${rawHeaders[index + 1]}`]));
  server.write([`${method} ${url} HTTP/${httpVersion}`, ...lines, '', ''].join('\r\n'));
  server.write(first);
  for (const [from, to] of [[socket, server], [server, socket]]) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
  }
  return socket;
}
