// The recommended configuration of HAProxy, which shares port 443 between the page and coturn. It needs no browser: servers in this
// process stand for Confab and for coturn.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { sampleOf, startHAProxy } from './haproxy.mjs';
import { removeFolder, temporaryFolder } from './process.mjs';
import { freePort } from './server.mjs';

const run = promisify(execFile);
const names = { page: 'chat.confab.test', turn: 'turn.confab.test' };

/** Makes a certificate for one name. */
async function certify(folder, name) {
  const [certificate, key] = ['certificate', 'key'].map((part) => path.join(folder, `${name}.${part}.pem`));
  await run('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', `/CN=${name}`,
    '-addext', `subjectAltName=DNS:${name}`, '-keyout', key, '-out', certificate,
  ]);
  return { cert: await readFile(certificate), key: await readFile(key) };
}

/** Listens on a free port of this machine. */
async function listen(t, server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return server.address().port;
}

/** Stands for Confab: tells what arrived, and by which connection. Accepts upgrades only in the first request of a connection. */
function confab() {
  const connections = new Map();
  const numberOf = (socket) => connections.get(socket) ?? connections.set(socket, { number: connections.size + 1, requests: 0 }).get(socket);
  const server = http.createServer((request, response) => {
    const connection = numberOf(request.socket);
    connection.requests += 1;
    response.end(JSON.stringify({ headers: request.headers, connection: connection.number }));
  });
  server.on('upgrade', (request, socket) => {
    const connection = numberOf(request.socket);
    connection.requests += 1;
    if (connection.requests > 1) return socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n');
    // RFC 6455 §4.2.2. HAProxy refuses an answer without it.
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    return socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  });
  return server;
}

/** Starts HAProxy with the sample, in which only names, addresses and files are changed. */
async function startSample(t, changes) {
  const folder = await temporaryFolder('haproxy');
  t.after(() => removeFolder(folder));
  const page = await certify(folder, names.page);
  const bundle = path.join(folder, 'page.pem');
  await writeFile(bundle, Buffer.concat([page.cert, page.key]));
  const port = await freePort();
  const inner = await freePort();
  const text = await sampleOf('haproxy-turn-443.cfg.sample', [
    ['    log /dev/log local0\n    chroot /var/lib/haproxy\n    user haproxy\n    group haproxy\n    daemon\n', ''], ['    log global\n', ''],
    ['maxconn 20000', 'maxconn 100'], ['    bind :443\n    bind :::443 v6only\n', `    bind 127.0.0.1:${port}\n`], ['127.0.0.1:8443', `127.0.0.1:${inner}`],
    ['crt /etc/haproxy/chat.example.org.pem', `crt ${bundle}`], ['turn.example.org', names.turn], ...changes,
  ]);
  await startHAProxy(t, text, port);
  return { port, page };
}

test('HAProxy passes TURN on by name or ALPN, and the rest to Confab with the client’s address', async (t) => {
  const folder = await temporaryFolder('turn');
  t.after(() => removeFolder(folder));
  const turn = await certify(folder, names.turn);
  const relay = tls.createServer({ ...turn, ALPNProtocols: ['stun.turn'] }, (socket) => socket.end('TURN'));
  relay.on('tlsClientError', () => {});
  const [relayPort, confabPort] = [await listen(t, relay), await listen(t, confab())];
  const { port, page } = await startSample(t, [['192.0.2.1:5349', `127.0.0.1:${relayPort}`], ['127.0.0.1:8080', `127.0.0.1:${confabPort}`]]);

  /** Connects over TLS, and returns the first data. */
  const greeting = async (options) => {
    const socket = tls.connect({ port, host: '127.0.0.1', ca: [turn.cert, page.cert], ...options });
    const [data] = await once(socket, 'data');
    socket.destroy();
    return String(data);
  };
  // The certificate is coturn's, so HAProxy has not opened the connection.
  assert.equal(await greeting({ servername: names.turn, ca: turn.cert }), 'TURN');
  assert.equal(await greeting({ servername: names.turn.toUpperCase(), ca: turn.cert, checkServerIdentity: () => undefined }), 'TURN');
  assert.equal(await greeting({ servername: 'other.test', ALPNProtocols: ['stun.turn'], ca: turn.cert, checkServerIdentity: () => undefined }), 'TURN');

  // One connection of the client, as browsers keep it.
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ask = async (headers = {}) => {
    const request = https.get({ agent, port, host: '127.0.0.1', servername: names.page, ca: page.cert, headers: { Host: names.page, ...headers } });
    const [event, value] = await Promise.race(['response', 'upgrade'].map(async (name) => [name, (await once(request, name))[0]]));
    const socket = request.socket;
    if (event === 'upgrade') return { status: value.statusCode, socket };
    let body = '';
    for await (const chunk of value) body += chunk;
    return { status: value.statusCode, socket, body: body && JSON.parse(body) };
  };
  const first = await ask({ 'X-Forwarded-For': '198.51.100.7', Forwarded: 'for=198.51.100.7' });
  assert.equal(first.status, 200);
  const { headers } = first.body;
  assert.deepEqual([headers['x-forwarded-for'], headers.forwarded, headers['x-forwarded-proto'], headers.host], ['127.0.0.1', undefined, 'https', names.page]);
  const second = await ask();
  assert.equal(second.socket, first.socket, 'the client’s connection is kept');
  assert.notEqual(second.body.connection, first.body.connection, 'and the one to Confab is not');
  const upgraded = await ask({ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==' });
  assert.equal(upgraded.socket, first.socket);
  assert.equal(upgraded.status, 101);

  // What does not speak TLS is cut off.
  const plain = net.connect(port, '127.0.0.1');
  plain.on('error', () => {});
  plain.write('GET / HTTP/1.1\r\n\r\n');
  await once(plain, 'close');
});
