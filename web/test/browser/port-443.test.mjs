// A network that lets out nothing but TCP to port 443. The page, its WebSocket and the media all use that port: nginx with the
// recommended configuration passes each TLS connection to the web server or to coturn, and coturn relays to the media port.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, afterEach, test } from 'node:test';
import { promisify } from 'node:util';
import { startNetwork, whyNoNetwork } from './namespace.mjs';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { repository } from './server.mjs';
import { arrive, assertNothingThrown, keepReceiving, meet, serve } from './stranger.mjs';
import { startTurn } from './turn.mjs';
import { NotYet, stopwatch, until } from './wait.mjs';

const skip = await whyNoNetwork();
const network = skip ? undefined : await startNetwork(['hotel', 'home']);
if (network) {
  after(() => network.close());
  afterEach(() => network.clear());
}
const [hotel, home] = network?.clients ?? [];

const names = { page: 'chat.confab.test', turn: 'turn.confab.test' };
const turnPort = 5349;

/** Makes a certificate for both names. Browsers get an option to accept it. */
async function certify(folder) {
  const [certificate, key] = ['certificate.pem', 'key.pem'].map((name) => path.join(folder, name));
  await promisify(execFile)('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', `/CN=${names.page}`,
    '-addext', `subjectAltName=DNS:${names.page},DNS:${names.turn}`, '-keyout', key, '-out', certificate,
  ]);
  return { certificate, key };
}

/** Starts nginx with both samples, changed as their comments say. */
async function startNginx(t, folder, { certificate, key }, server) {
  const sample = async (name, ...changes) => changes.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), `${name} contains ${from}`);
    return text.replaceAll(from, to);
  }, await readFile(path.join(repository, 'deploy', name), 'utf8'));
  const web = await sample('nginx.conf.sample', ['server 127.0.0.1:8080', `server ${server.address}:${server.port}`], ['listen 80;', `
    listen 127.0.0.1:8443 ssl proxy_protocol;
    set_real_ip_from 127.0.0.1;
    real_ip_header proxy_protocol;
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};`], ['chat.example.org', names.page]);
  const shared = await sample('nginx-turn-443.conf.sample', ['turn.example.org', names.turn], ['192.0.2.1:5349', `${server.address}:${turnPort}`]);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`);
  await writeFile(path.join(folder, 'web.conf'), web);
  await writeFile(path.join(folder, 'shared.conf'), shared);
  const main = path.join(folder, 'nginx.conf');
  await writeFile(main, `
    load_module /usr/lib/nginx/modules/ngx_stream_module.so;
    user root; daemon off; pid ${folder}/nginx.pid; error_log stderr warn; worker_processes 1;
    events { worker_connections 256; }
    include ${folder}/shared.conf;
    http { access_log ${folder}/access.log; ${temporary.join(' ')} include ${folder}/web.conf; }`);
  const child = new Child('nginx', ['-p', folder, '-c', main, '-e', 'stderr'], {
    machine: network.server, env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });
  t.after(async () => {
    for (const line of child.log) t.diagnostic(`nginx: ${line}`);
    await child.kill();
  });
  await until('nginx runs', async () => {
    if (child.ended) throw new Error(`nginx ended:\n${child.tail()}`);
    return readFile(path.join(folder, 'nginx.pid')).catch(() => { throw new NotYet('it has not written its pid'); });
  });
  return { child, accessLog: () => readFile(path.join(folder, 'access.log'), 'utf8') };
}

/** Returns how each of the page's connections reaches the server. */
function ways(page) {
  return page.evaluate(async () => {
    const found = [];
    for (const peer of window.__peers) {
      if (peer.connectionState === 'closed') continue;
      const stats = await peer.getStats();
      const transport = [...stats.values()].find(({ type }) => type === 'transport');
      const pair = stats.get(transport?.selectedCandidatePairId);
      const { candidateType, relayProtocol, url } = stats.get(pair?.localCandidateId) ?? {};
      const { address, port } = stats.get(pair?.remoteCandidateId) ?? {};
      found.push({ candidateType, relayProtocol, url, address, port, state: peer.connectionState });
    }
    return found;
  });
}

test('where only TCP port 443 is open, a routed chat goes through coturn over TLS', { skip }, async (t) => {
  const { address } = network.server;
  const folder = await temporaryFolder('port-443');
  t.after(() => removeFolder(folder));
  const files = await certify(folder);
  const turn = await startTurn(t, { address, machine: network.server, tls: { ...files, port: turnPort } });
  const settings = { ...turn.env(`turns:${names.turn}:443?transport=tcp`), CONFAB_TRUSTED_PROXIES: address };
  const server = await serve(t, settings, network.options);
  const nginx = await startNginx(t, folder, files, { address, port: server.port });
  const flags = [
    `--host-resolver-rules=MAP ${names.page} ${address}, MAP ${names.turn} ${address}`, '--ignore-certificate-errors',
    '--disable-features=WebRtcHideLocalIpsWithMdns',
  ];
  const [first, second] = await Promise.all([hotel, home].map((machine) => machine.chromium({ flags })));
  t.after(() => Promise.all([first.close(), second.close()]));
  await hotel.allowOnly(443);
  const url = `https://${names.page}`;
  const time = stopwatch();
  const red = await arrive(t, first, url, { color: 'red' });
  const green = await arrive(t, second, url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  t.diagnostic(`they saw each other ${time()} after the first page was opened`);
  await keepReceiving(red, green);
  const [blocked, open] = [await ways(red), await ways(green)];
  t.diagnostic(`hotel: ${JSON.stringify(blocked)}; home: ${JSON.stringify(open)}`);
  assert.equal(blocked.length, 2);
  for (const way of blocked) {
    assert.equal(way.candidateType, 'relay');
    assert.equal(way.relayProtocol, 'tls');
    assert.equal(way.address, address);
  }
  for (const { candidateType } of open) assert.notEqual(candidateType, 'relay', 'TURN is only used where it is needed');
  const lost = await hotel.lost();
  t.diagnostic(`packets lost at the hotel: ${JSON.stringify(lost)}`);
  assert.ok(lost.sent > 0, 'the browser tried the direct ways');
  const log = await until('nginx has logged the pages', () => nginx.accessLog());
  for (const machine of [hotel, home]) assert.ok(log.includes(machine.address), 'the web server knows who is there');
  assertNothingThrown(red, green);
});
