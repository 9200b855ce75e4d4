// Starts HAProxy with one of the samples in `deploy/`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { freePort, repository } from './server.mjs';
import { NotYet, until } from './wait.mjs';

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };

/** Returns a sample with changes. Each change must apply, so that the test runs the sample and not something else. */
export async function sampleOf(name, changes) {
  const sample = await readFile(path.join(repository, 'deploy', name), 'utf8');
  return changes.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), `the sample contains ${from}`);
    return text.replaceAll(from, to);
  }, sample);
}

/**
 * Checks a configuration, which must cause no warning, and runs HAProxy with it until the end of the test.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} text the configuration
 * @param {number} port on which HAProxy then listens
 */
export async function startHAProxy(t, text, port) {
  const folder = await temporaryFolder('haproxy');
  t.after(() => removeFolder(folder));
  const file = path.join(folder, 'haproxy.cfg');
  await writeFile(file, text);
  await chmod(file, 0o600);
  const { stdout, stderr } = await promisify(execFile)('haproxy', ['-c', '-f', file], { env });
  t.diagnostic(`haproxy -c: ${stdout}${stderr}`.trim());
  assert.doesNotMatch(`${stdout}${stderr}`, /WARNING|ALERT/);
  const child = new Child('haproxy', ['-db', '-f', file], { env });
  t.after(() => child.kill());
  await until('HAProxy listens', async () => {
    if (child.ended) throw new Error(`HAProxy ended:\n${child.tail()}`);
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect').catch(() => { throw new NotYet('its port is closed'); });
    socket.destroy();
    return true;
  });
}

/**
 * Runs HAProxy with the sample for several servers, in front of two, until the end of the test.
 *
 * @param {import('node:test').TestContext} t
 * @param {{port: number}} first
 * @param {{port: number}} second
 * @returns {Promise<number>} HAProxy's port
 */
export async function startHAProxyOfNodes(t, first, second) {
  const port = await freePort();
  await startHAProxy(t, await sampleOf('haproxy.cfg', [
    ['    log /dev/log local0\n    chroot /var/lib/haproxy\n    user haproxy\n    group haproxy\n', ''], ['    log global\n', ''],
    ['    stats socket /run/haproxy/admin.sock mode 660 level operator\n', ''], ['maxconn 20000', 'maxconn 200'],
    ['bind :443 ssl crt /etc/haproxy/chat.example.org.pem alpn http/1.1', `bind 127.0.0.1:${port}`],
    ['192.0.2.11:8080', `127.0.0.1:${first.port}`], ['192.0.2.12:8080', `127.0.0.1:${second.port}`],
  ]), port);
  return port;
}
