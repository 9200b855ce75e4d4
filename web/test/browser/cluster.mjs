// Servers that are nodes of one cluster, with a separate PostgreSQL and Redis.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { access, copyFile, mkdir, readdir } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { freePort } from './server.mjs';
import { serve } from './stranger.mjs';
import { NotYet, until } from './wait.mjs';

/** What all nodes of a cluster share. */
const keys = ['project.json', 'server.key', 'push.pem'];

const relayed = 'confab_media_packets_relayed_total';

/**
 * Starts nodes that run until the test ends, and waits until their media is connected.
 *
 * @param {import('node:test').TestContext} t
 * @param {number} count
 * @param {Record<string, string | number>} [env] configuration of all nodes, as in `startServer`
 * @returns {Promise<Awaited<ReturnType<typeof serve>>[]>}
 */
export async function serveCluster(t, count, env = {}) {
  const [storage, redis] = await Promise.all([startPostgres(t), startRedis(t)]);
  const nodes = [];
  for (let number = 1; number <= count; number += 1) {
    const metricsPort = await freePort();
    const node = await serve(t, {
      CONFAB_CLUSTER_NODE: number, CONFAB_CLUSTER_REDIS: redis, CONFAB_CLUSTER_RELAYS: 'true', CONFAB_STORAGE_URL: storage,
      // One loop, so that there is one relay for each pair of nodes.
      CONFAB_MEDIA_LOOPS: 1, CONFAB_METRICS_ENABLED: 'true', CONFAB_METRICS_PORT: metricsPort,
      ...env,
    }, { prepare: (data) => copyKeys(nodes[0]?.dataFolder, data) });
    nodes.push(Object.assign(node, { metricsPort }));
  }
  await Promise.all(nodes.map((node, index) => until(`the relays of node ${index + 1} are connected`, async () => {
    // The metrics port can open later than the main port.
    const connected = await metric(node, 'confab_cluster_relays{state="connected"}').catch(({ message }) => { throw new NotYet(message); });
    if (connected !== count - 1) throw new NotYet(`${connected} are`);
    return true;
  })));
  return nodes;
}

async function copyKeys(from, to) {
  if (!from) return;
  await mkdir(to, { mode: 0o700 });
  await Promise.all(keys.map((name) => copyFile(path.join(from, name), path.join(to, name))));
}

/** Returns the value of a metric of a node, or undefined. @param {string} name with its labels */
export async function metric(node, name) {
  const answer = await fetch(`http://127.0.0.1:${node.metricsPort}/metrics`);
  const line = (await answer.text()).split('\n').find((text) => text.startsWith(`${name} `));
  return line && Number(line.slice(name.length + 1));
}

/**
 * Waits until each node has sent more media to others. This shows that no page was redirected: it would be on its partner's node, and no
 * media would cross.
 *
 * @param {number} [by] the number of packets
 */
export function mediaCrosses(nodes, { by = 30 } = {}) {
  return Promise.all(nodes.map(async (node) => {
    const before = await metric(node, relayed) ?? 0;
    return until(`${by} more packets cross from ${node.url} to another node`, async () => {
      const more = (await metric(node, relayed) ?? 0) - before;
      if (more < by) throw new NotYet(`${more} so far`);
      return true;
    });
  }));
}

/** Starts PostgreSQL with only a socket in its own folder. Returns its URL. */
async function startPostgres(t) {
  const base = '/usr/lib/postgresql';
  const versions = (await readdir(base)).map(Number).filter((version) => version >= 15).sort((a, b) => b - a);
  const binaries = path.join(base, String(versions[0]), 'bin');
  await access(binaries);
  const folder = await temporaryFolder('postgres');
  /** @type {Child | undefined} */
  let server;
  // One hook, because hooks run in the order in which they were added, and the server must end before its folder is removed.
  t.after(async () => {
    await server?.kill('SIGINT');
    await removeFolder(folder);
  });
  // PostgreSQL refuses to run as root.
  const isRoot = process.getuid() === 0;
  if (isRoot) await promisify(execFile)('chown', ['postgres:postgres', folder]);
  const prefix = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : [];
  const start = (name, ...args) => {
    const [command, ...rest] = [...prefix, path.join(binaries, name), ...args];
    return new Child(command, rest, { cwd: folder });
  };
  const data = path.join(folder, 'data');
  const initialize = start('initdb', `--pgdata=${data}`, '--auth=trust', '--username=confab', '--encoding=UTF8', '--locale=C', '--no-sync');
  const [{ code }] = await Promise.all([initialize.exited, initialize.silent]);
  if (code !== 0) throw new Error(`initdb ended with status ${code}:\n${initialize.tail()}`);
  server = start('postgres', '-D', data, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${folder}`, '-c', 'fsync=off');
  await server.line(/database system is ready to accept connections/, 30_000);
  return `postgresql:///postgres?host=${folder}&user=confab`;
}

/** Starts Redis, which keeps nothing on disk. Returns its URL. */
async function startRedis(t) {
  const port = await freePort();
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'];
  const child = new Child('redis-server', args);
  t.after(() => child.kill());
  await until('Redis listens', async () => {
    if (child.ended) throw new Error(`Redis ended:\n${child.tail()}`);
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect').catch(() => { throw new NotYet('its port is closed'); });
    socket.destroy();
    return true;
  });
  return `redis://127.0.0.1:${port}`;
}
