// Tests the environment of the browser tests: server process, proxy, nginx, and cleanup. Needs no Confab server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { launchChromium } from './chromium.mjs';
import { launchFirefox } from './firefox.mjs';
import { colorName, colors } from './media.mjs';
import { adapt, startNginx } from './nginx.mjs';
import { removeFolder, temporaryFolder } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { WebSocketServer } from './remote-control.mjs';
import { startServer } from './server.mjs';
import { testInFull } from './tier.mjs';
import { NotYet, seconds, stopwatch, until } from './wait.mjs';

const { chromium } = sharedBrowsers();

/** A web server whose WebSocket echoes messages, and which records how each connection was closed. */
async function startEcho(t) {
  const closings = [];
  const server = http.createServer((request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(`<!doctype html><title>Echo</title><p>${request.headers['x-forwarded-for'] ?? 'direct'}</p>`);
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => {
    socket.on('message', (data) => socket.send(`echo ${data}`));
    socket.on('close', (code) => closings.push(code));
    socket.on('error', () => {}); // `close` follows
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  });
  return { port: server.address().port, closings, sockets };
}

/** Runs in a page: opens a WebSocket, stores it in `window.socket`, and returns once it is open. */
function connect() {
  window.heard = [];
  window.socket = new WebSocket(location.origin.replace('http', 'ws'));
  socket.onmessage = ({ data }) => heard.push(data);
  socket.onclose = ({ code }) => { window.closeCode = code; };
  return new Promise((resolve, reject) => {
    socket.onopen = () => resolve(true);
    socket.onerror = () => reject(new Error('no WebSocket connection'));
  });
}

async function hears(page, text) {
  await page.evaluate((message) => socket.send(message), text);
  await page.waitFor(`the echo of ${text} is back`, (message) => heard.includes(`echo ${message}`), { args: [text], why: 'heard' });
}

test('a cut proxy resets its connections and rejects new ones, until it is restored', async (t) => {
  const echo = await startEcho(t);
  const proxy = await startProxy(echo.port);
  t.after(() => proxy.close());
  const page = await (await chromium()).newPage();
  t.after(() => page.close());
  await page.goto(proxy.url);
  await page.evaluate(connect);
  await hears(page, 'one');
  assert.ok(proxy.bytes.up > 0 && proxy.bytes.down > 0, JSON.stringify(proxy.bytes));

  await proxy.cut();
  await page.waitFor('the page notices', 'window.closeCode === 1006', { why: 'window.closeCode ?? null' });
  await until('the server notices', () => echo.closings.includes(1006));
  await assert.rejects(page.evaluate(connect), /no WebSocket connection/);

  await proxy.heal();
  await page.evaluate(connect);
  await hears(page, 'two');
});

testInFull('a stalled proxy drops bytes and closes nothing, until it is restored',
  'the first tier stalls no proxy', async (t) => {
  const echo = await startEcho(t);
  const proxy = await startProxy(echo.port);
  t.after(() => proxy.close());
  const page = await (await chromium()).newPage();
  t.after(() => page.close());
  await page.goto(proxy.url);
  await page.evaluate(connect);

  proxy.stall();
  const { up } = proxy.bytes;
  await page.evaluate("socket.send('lost')");
  await until('the message is swallowed', () => proxy.swallowed > 0);
  assert.equal(proxy.bytes.up, up);
  assert.equal(await page.evaluate('socket.readyState'), 1, 'the page’s connection is still open');
  assert.deepEqual(echo.closings, []);

  await proxy.heal();
  await page.waitFor('the page notices', 'window.closeCode === 1006', { why: 'window.closeCode ?? null' });
  await page.evaluate(connect);
  await hears(page, 'three');
  assert.deepEqual(await page.evaluate('heard'), ['echo three']);
});

async function saysGoodbye(t, launch) {
  const echo = await startEcho(t);
  const browser = await launch();
  t.after(() => browser.close());
  const url = `http://127.0.0.1:${echo.port}/`;
  const page = await browser.newPage();
  await page.goto(url);
  for (const [how, leave, expected] of [
    ['reloaded', () => page.reload(), 1001],
    ['closed', () => page.close(), 1001],
    ['killed', () => browser.kill(), 1006],
  ]) {
    const witness = how === 'killed' ? await browser.newPage() : page;
    if (how === 'killed') await witness.goto(url);
    await witness.evaluate(connect);
    echo.closings.length = 0;
    const time = stopwatch();
    await leave();
    await until(`the server notices that the page was ${how}`, () => echo.closings.length > 0);
    assert.deepEqual(echo.closings, [expected], how);
    t.diagnostic(`${how}: close code ${echo.closings} after ${time()}`);
  }
}

test('Chromium says goodbye when a tab closes or reloads, and cannot when it is killed', (t) => saysGoodbye(t, launchChromium));

testInFull('Firefox says goodbye when a tab closes or reloads, and cannot when it is killed',
  'roulette.test.mjs "Firefox leaves when its tab closes"', (t) => saysGoodbye(t, launchFirefox));

testInFull('nginx passes pages and WebSockets on with the configuration of a sample', 'roulette-nginx.test.mjs', async (t) => {
  const echo = await startEcho(t);
  const nginx = await startNginx({ upstreamPort: echo.port, sample, substitutions: [['chat.example.org', 'localhost']] });
  t.after(() => nginx.close());
  const page = await (await chromium()).newPage();
  t.after(() => page.close());
  await page.goto(nginx.url);
  assert.equal(await page.evaluate('document.body.innerText'), '127.0.0.1');
  await page.evaluate(connect);
  await hears(page, 'through nginx');
  assert.match(await nginx.accessLog(), /GET \/ HTTP/);
});

const sample = `# A sample; with a brace in a comment: }
map $http_upgrade $connection_upgrade { default upgrade; '' close; }
upstream confab { server 127.0.0.1:8080; keepalive 8; }
server {
  listen 80;
  listen [::]:80;
  server_name chat.example.org;
  return 301 https://$host$request_uri;
}
server {
  listen 443 ssl http2; # TLS
  listen [::]:443 ssl http2;
  server_name chat.example.org;
  ssl_certificate /etc/ssl/chat.pem;
  ssl_certificate_key /etc/ssl/chat.key;
  include /etc/letsencrypt/options-ssl-nginx.conf;
  location / {
    proxy_pass http://confab;
    proxy_http_version 1.1;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    proxy_set_header X-Forwarded-For $remote_addr;
  }
}
`;

test('converting a sample for nginx removes TLS and ports, and nothing else', () => {
  const adapted = adapt(`http { ${sample} }`, 1234, 5678);
  assert.doesNotMatch(adapted, /ssl|\b443\b|\b8080\b|301|listen \[/);
  assert.match(adapted, /listen 127\.0\.0\.1:1234;/);
  assert.match(adapted, /server 127\.0\.0\.1:5678; keepalive 8;/);
  for (const kept of ['map $http_upgrade', 'server_name chat.example.org', 'proxy_set_header X-Forwarded-For']) {
    assert.ok(adapted.includes(kept), kept);
  }
});

/** Behaves like `confab serve` as far as tests start and stop it. */
const standIn = `#!/usr/bin/env node
import http from 'node:http';
const option = (name) => process.argv[process.argv.indexOf(name) + 1];
if (process.argv[2] === 'token') { console.log('token for ' + option('--user')); process.exit(0); }
if (process.env.CONFAB_BROKEN) { console.error('a reason'); process.exit(3); }
const server = http.createServer((request, response) => response.end(JSON.stringify(
  Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('CONFAB_'))))));
process.on('SIGTERM', () => process.exit(0));
server.listen(Number(option('--port')), '127.0.0.1', () => {
  console.error('Confab is ready: http://127.0.0.1:' + server.address().port + '/ (try /?guest=1 in two tabs)');
});
`;

test('a server starts on a free port, stops on request, and starts again on the same port', async (t) => {
  const folder = await temporaryFolder('stand-in');
  t.after(() => removeFolder(folder));
  const binary = path.join(folder, 'confab.mjs');
  await writeFile(binary, standIn);
  await chmod(binary, 0o755);
  process.env.CONFAB_LEAKED = 'from the tester';
  t.after(() => { delete process.env.CONFAB_LEAKED; });

  const server = await startServer({ binary, env: { CONFAB_CONNECTION_RESUME_GRACE: '3s' } });
  t.after(() => server.close());
  const { url } = server;
  assert.match(server.ready, /guest=1/);
  const variables = await (await fetch(url)).json();
  assert.equal(variables.CONFAB_CONNECTION_RESUME_GRACE, '3s');
  assert.equal(variables.CONFAB_LEAKED, undefined);
  assert.equal(await server.command('token', 'create', '--user', 'ann'), 'token for ann');
  assert.equal((await server.kill('SIGTERM')).code, 0);
  await server.start();
  assert.equal(server.url, url);
  assert.equal((await server.kill()).signal, 'SIGKILL');
  assert.equal(server.log.filter((line) => line.includes('ready')).length, 2);
});

test('a server that does not start says why', async (t) => {
  const folder = await temporaryFolder('stand-in');
  t.after(() => removeFolder(folder));
  const binary = path.join(folder, 'confab.mjs');
  await writeFile(binary, standIn);
  await chmod(binary, 0o755);
  await assert.rejects(startServer({ binary, env: { CONFAB_BROKEN: '1' } }), /status 3[^]*a reason/);
  await assert.rejects(startServer({ binary: path.join(folder, 'nothing') }), /no server at .*CONFAB_BINARY/);
});

test('processes and folders are gone when the test process is killed', async () => {
  const module = new URL('./process.mjs', import.meta.url).href;
  const victim = spawn(process.execPath, ['--input-type=module', '-e', `
    import { Child, temporaryFolder } from ${JSON.stringify(module)};
    const folder = await temporaryFolder('victim');
    const short = new Child('true', []);
    await short.exited;
    const child = new Child('sh', ['-c', 'sleep 600 & sleep 601'], { cwd: folder });
    console.log(child.process.pid + ' ' + folder);
  `], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface({ input: victim.stdout }), 'line');
  const [group, folder] = line.split(' ');
  process.kill(-Number(group), 0);
  await access(folder);
  victim.kill('SIGKILL');
  await until('its children are gone', () => {
    try {
      process.kill(-Number(group), 0);
    } catch (error) {
      if (error.code === 'ESRCH') return true;
      throw error;
    }
    throw new NotYet('the group still exists');
  });
  await until('its folder is gone', () => access(folder).then(() => false, () => true));
});

test('a failed wait reports how long it waited and why', async () => {
  const never = until('it rains', () => { throw new NotYet('the sky is clear'); }, { timeout: 150, why: () => ({ clouds: 0 }) });
  await assert.rejects(never, /waited \d+\.\d s until it rains: the sky is clear\n {2}{"clouds":0}/);
  await assert.rejects(until('it works', () => { throw new TypeError('a fault'); }), TypeError);
  assert.equal(seconds(1499), '1.5 s');
});

test('colors get their common names, even when a codec changes them', () => {
  for (const [name, rgb] of Object.entries(colors)) assert.equal(colorName(rgb), name);
  assert.equal(colorName([231, 12, 20]), 'red');
  assert.equal(colorName([10, 96, 14]), 'green');
  assert.equal(colorName([128, 128, 128]), 'gray');
});

test('the installer reports at once that there is nothing to do, and where axe is', async () => {
  const script = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../../../scripts/browser-setup');
  const child = spawn(script, ['--axe'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  assert.match(await readFile(line, 'utf8'), /axe/);
});
