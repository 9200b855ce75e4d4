// The built server, as a child process of a test.
import { access, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child, removeFolder, temporaryFolder } from './process.mjs';

export const repository = fileURLToPath(new URL('../../..', import.meta.url));

const startTimeout = 60_000;

/** Settings for servers in tests. Several servers run at the same time, so none may use a fixed port. */
const ownPorts = { CONFAB_MEDIA_PORT: '0', CONFAB_METRICS_ENABLED: 'false' };

/**
 * The environment variables that are passed on to the server, to work on the pages without rebuilding and to debug failures.
 */
const passedOn = ['CONFAB_WEB_DIRECTORY', 'CONFAB_LOG_LEVEL'];

/**
 * Starts `confab serve` with a separate data directory on a free port of 127.0.0.1.
 *
 * @param {object} [options]
 * @param {Record<string, string | number>} [options.env] configuration, such as `CONFAB_CONNECTION_RESUME_GRACE: '3s'`
 * @param {number} [options.port] otherwise a free one
 * @param {string[]} [options.flags] more command line flags
 * @param {string} [options.binary] the executable; otherwise the variable CONFAB_BINARY names it
 * @param {import('./namespace.mjs').Machine} [options.machine] where it runs
 * @param {(dataFolder: string) => Promise<void>} [options.prepare] called before the first start, when the folder does not exist
 * @returns {Promise<Server>}
 */
export async function startServer({ env = {}, port = 0, flags = [], binary = process.env.CONFAB_BINARY, machine, prepare } = {}) {
  const advice = '"scripts/test browser" builds it and runs these tests; CONFAB_BINARY names one that is built';
  if (!binary) throw new Error(`which server? ${advice}`);
  await access(binary).catch(() => { throw new Error(`there is no server at ${binary}: ${advice}`); });
  const server = new Server(binary, env, port, flags, await temporaryFolder('server'), machine);
  try {
    await prepare?.(server.dataFolder);
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

class Server {
  /** The server's port, which is the same after every restart. */
  port = 0;
  /** @type {string} */
  url;
  /** The complete ready line, which also suggests what to try. */
  ready = '';
  #earlierLogs = [];

  constructor(binary, env, port, flags, folder, machine) {
    Object.assign(this, { binary, port, folder, flags, machine, dataFolder: path.join(folder, 'data') });
    // Ignore the user's own configuration.
    const inherited = Object.keys(process.env).filter((name) => name.startsWith('CONFAB_') && !passedOn.includes(name));
    const settings = Object.entries(env).map(([name, value]) => [name, String(value)]);
    this.env = { ...Object.fromEntries(inherited.map((name) => [name, undefined])), ...ownPorts, ...Object.fromEntries(settings) };
    this.configuration = path.join(folder, 'config.yaml');
  }

  /** Starts the server. A restart uses the same port and data, as after a crash or an update. */
  async start() {
    if (this.child && !this.child.ended) throw new Error('the server is running already');
    await writeFile(this.configuration, '# Everything is set by flags and variables.\nhost: 127.0.0.1\n');
    if (this.child) this.#earlierLogs.push(...this.child.log, '--- started again ---');
    else this.port ||= await freePort();
    this.child = new Child(this.binary, [
      'serve', '--port', String(this.port), '--data-dir', this.dataFolder,
      '--config', this.configuration, ...this.flags,
    ], { env: this.env, cwd: this.folder, machine: this.machine });
    const [line, url] = await this.child.line(/.*Confab is ready: (\S+).*/, startTimeout);
    this.ready = line;
    this.url = url.replace(/\/$/, '');
    // Flags may set another port. The port of a public URL is the proxy's.
    if (!this.env.CONFAB_PUBLIC_URL) this.port = Number(new URL(url).port);
    return this;
  }

  /** All output of the server, over all restarts. */
  get log() {
    return [...this.#earlierLogs, ...this.child.log];
  }

  /** Stops the server and returns its exit status. @param {NodeJS.Signals} [signal] */
  kill(signal = 'SIGKILL') {
    return this.child.kill(signal);
  }

  /** Runs another command of the executable on the same data, such as `command('token', 'create', …)`; returns its output. */
  async command(...args) {
    const child = new Child(this.binary, [...args, '--data-dir', this.dataFolder], { env: this.env, cwd: this.folder });
    const [{ code }] = await Promise.all([child.exited, child.silent]);
    if (code !== 0) throw new Error(`confab ${args.join(' ')} ended with status ${code}:\n${child.tail()}`);
    return child.log.join('\n').trim();
  }

  async close() {
    if (this.child) await this.child.kill();
    await removeFolder(this.folder);
  }
}

/**
 * Returns a free port below the range for outgoing connections (RFC 6335 §6 and
 * Linux's default from 32768), because a restarted server must find its port free, whatever else runs.
 */
export async function freePort() {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 20_000);
    const probe = net.createServer();
    const isFree = await new Promise((resolve) => {
      probe.once('listening', () => resolve(true)).once('error', () => resolve(false)).listen(port, '127.0.0.1');
    });
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
