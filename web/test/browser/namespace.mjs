// A network of several machines inside this one, for bad weather that touches nothing else: each machine is a network namespace
// with an address of its own, and cables go from the clients' to a switch at the server's. What happens to packets is up to
// nftables rules at the switch: a machine that loses its own packets knows, and its browser sends them again.
// This needs root on Linux. Elsewhere, and where a container forbids it, `whyNoNetwork` says why not, and the tests are skipped.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { launchChromium } from './chromium.mjs';
import { launchFirefox } from './firefox.mjs';
import { Child, removeFolder, tellUndertaker, temporaryFolder } from './process.mjs';

// Debian keeps them where only root's path leads.
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };

/** Nothing outside sees these addresses, so any will do. */
const prefix = '10.201.0';
/** Nobody else listens on the server's machine. */
const port = 8080;
/** Every name under `localhost` is trusted. */
const serverName = 'confab.localhost';

/** @param {string} command @param {string[]} args @param {string} [input] what it reads */
async function run(command, args, input) {
  const running = promisify(execFile)(command, args, { env });
  if (input !== undefined) running.child.stdin.end(input);
  return (await running).stdout;
}

const firstLine = ({ stderr, message }) => (stderr || message).trim().split('\n')[0];

/** What `ip`, `nft` and the kernel say where a container's rules or its kernel rule namespaces out. */
const forbidden = /not permitted|permission denied|read-only file system|not supported|unknown device type/i;
/** Bits of the effective capabilities: CAP_NET_ADMIN and CAP_SYS_ADMIN. */
const neededCapabilities = [12n, 21n];

async function mayAdminister() {
  const [, effective] = (await readFile('/proc/self/status', 'utf8')).match(/^CapEff:\s*([0-9a-f]+)$/m);
  return neededCapabilities.every((bit) => BigInt(`0x${effective}`) >> bit & 1n);
}

/**
 * Returns why there can be no such network here, or undefined where there can. Only what the machine rules out is a reason to
 * skip: any other failure throws, so that a missing tool or a fault of ours does not take these tests away unnoticed.
 */
export async function whyNoNetwork() {
  if (process.platform !== 'linux') return 'network namespaces are a thing of Linux';
  if (process.getuid() !== 0) return 'only root may make network namespaces';
  if (!await mayAdminister()) return 'root has not both CAP_NET_ADMIN and CAP_SYS_ADMIN here, as in a locked-down container';
  const probe = `confab-${process.pid}-probe`;
  try {
    await run('ip', ['netns', 'add', probe]);
    await run('ip', ['-n', probe, 'link', 'add', 'switch', 'type', 'bridge']);
    await run('ip', ['netns', 'exec', probe, 'nft', '-f', '-'], rain('switch', ['counter drop']));
  } catch (error) {
    const reason = firstLine(error);
    if (forbidden.test(reason)) return `this machine allows no network namespace with a switch and nftables: ${reason}`;
    throw new Error(`making a network namespace failed: ${reason}; "scripts/browser-setup" installs ip and nft`, { cause: error });
  } finally {
    // It may not have come to be.
    await run('ip', ['netns', 'delete', probe]).catch(() => {});
  }
}

/**
 * Makes a machine for the server and one for each of the given names.
 *
 * @param {string[]} names
 * @returns {Promise<Network>}
 */
export async function startNetwork(names) {
  const network = new Network();
  try {
    await network.start(names);
  } catch (error) {
    await network.close();
    throw error;
  }
  return network;
}

class Network {
  /** Where the server runs. @type {Machine} */
  server;
  /** @type {Machine[]} */
  clients = [];
  /** What `startServer` needs to run there and be reached. */
  options;
  #folder;

  async start(names) {
    this.#folder = await temporaryFolder('network');
    const make = (name) => new Machine(`confab-${process.pid}-${name}`, path.join(this.#folder, name));
    this.server = make('server');
    this.clients = names.map(make);
    await this.server.start();
    await this.server.ip('link', 'add', 'switch', 'type', 'bridge');
    await this.server.ip('address', 'add', `${prefix}.1/24`, 'dev', 'switch');
    await this.server.ip('link', 'set', 'switch', 'up');
    this.server.address = `${prefix}.1`;
    for (const [index, machine] of this.clients.entries()) {
      await machine.start();
      machine.connect(this.server, `cable${index}`);
      await this.server.ip('link', 'add', machine.cable, 'type', 'veth', 'peer', 'name', 'cable', 'netns', machine.name);
      await this.server.ip('link', 'set', machine.cable, 'master', 'switch', 'up');
      await machine.ip('link', 'set', 'cable', 'up');
      await machine.moveTo(`${prefix}.${index + 11}`);
    }
    this.options = { machine: this.server, flags: ['--host', this.server.address, '--port', String(port)] };
  }

  /** Good weather again. */
  async clear() {
    await Promise.all(this.clients.map((machine) => machine.clear()));
  }

  async close() {
    await Promise.all([this.server, ...this.clients].map((machine) => machine?.close()));
    await removeFolder(this.#folder);
  }
}

/** Inside the machine: passes on to the port that the first line names, for those outside who can only reach files. */
const doorkeeper = `
  const net = require('node:net');
  const [door] = process.argv.slice(1);
  net.createServer((outside) => {
    outside.on('error', () => {});
    outside.once('data', (first) => {
      const end = first.indexOf(10);
      const inside = net.connect(Number(first.subarray(0, end)), '127.0.0.1');
      inside.on('error', () => outside.destroy());
      outside.on('close', () => inside.destroy());
      inside.write(first.subarray(end + 1));
      outside.pipe(inside).pipe(outside);
    });
  }).listen(door, () => console.log('The door is open.'));
`;

/** Takes away the rules of one cable. */
const clearing = (cable) => `table netdev ${cable} {}\ndelete table netdev ${cable}\n`;

/** Rules of nftables for what comes out of a cable and what goes into it. @param {string} cable @param {string[]} drops */
function rain(cable, drops) {
  const chain = (name, hook) => [`chain ${name} {`, `type filter hook ${hook} device "${cable}" priority 0`, ...drops, '}'];
  const table = [`table netdev ${cable} {`, ...chain('sent', 'ingress'), ...chain('received', 'egress'), '}'];
  return `${clearing(cable)}${table.join('\n')}\n`;
}

export class Machine {
  /** @type {string} */
  address;
  /** For HTTP requests from here to addresses of its loopback. */
  agent = new http.Agent();
  #doorkeeper;
  #switch;

  /** @param {string} name of the namespace @param {string} door a file that is not there yet */
  constructor(name, door) {
    Object.assign(this, { name, door });
    this.agent.createConnection = (options) => {
      const socket = net.connect(door);
      socket.write(`${options.port}\n`);
      return socket;
    };
  }

  async start() {
    tellUndertaker(`+machine ${this.name}`);
    await run('ip', ['netns', 'add', this.name]);
    await this.ip('link', 'set', 'lo', 'up');
    this.#doorkeeper = new Child(process.execPath, ['-e', doorkeeper, this.door], { machine: this });
    await this.#doorkeeper.line(/The door is open/, 60_000);
  }

  /** How `spawn` starts this command on the machine. @returns {[string, string[]]} */
  inside(command, args) {
    return ['ip', ['netns', 'exec', this.name, command, ...args]];
  }

  ip(...args) {
    return run('ip', ['-n', this.name, ...args]);
  }

  /** Gives it this address and takes away the one it had, as when a phone goes from one network to another. */
  async moveTo(address) {
    await this.ip('address', 'flush', 'dev', 'cable');
    await this.ip('address', 'add', `${address}/24`, 'dev', 'cable');
    // Browsers that were not allowed a camera use the interface of the default route alone.
    await this.ip('route', 'replace', 'default', 'via', `${prefix}.1`);
    this.address = address;
  }

  // The weather between this machine and all others.

  /** @param {Machine} machine where the switch is @param {string} cable what it is called there */
  connect(machine, cable) {
    this.#switch = machine;
    this.cable = cable;
  }

  /** Some of the datagrams are lost, each way. @param {number} percent */
  lose(percent) {
    return this.#rain(`meta l4proto udp numgen random mod 100 < ${percent} counter drop`);
  }

  /** Datagrams do not get through, as behind a firewall that knows nothing but the web. */
  loseDatagrams() {
    return this.#rain('meta l4proto udp counter drop');
  }

  /** Nothing gets through, and nobody is told. */
  loseEverything() {
    return this.#rain('ether type { ip, ip6 } counter drop');
  }

  /** Nothing to and from this port gets through. @param {number} one */
  losePort(one) {
    return this.#rain(...['sport', 'dport'].map((end) => `meta l4proto { tcp, udp } th ${end} ${one} counter drop`));
  }

  /** Nothing to and from this address gets through: whoever is there can reach others, but not this machine. @param {string} address */
  loseAddress(address) {
    return this.#rain(...['saddr', 'daddr'].map((end) => `ip ${end} ${address} counter drop`));
  }

  async clear() {
    await this.#nft(clearing(this.cable));
  }

  /** How many packets were lost since the weather changed last: of those it sent and of those sent to it. */
  async lost() {
    const { nftables } = JSON.parse(await run(...this.#switch.inside('nft', ['--json', 'list', 'table', 'netdev', this.cable])));
    const count = { sent: 0, received: 0 };
    for (const { rule } of nftables) {
      for (const { counter } of rule?.expr ?? []) if (counter) count[rule.chain] += counter.packets;
    }
    return count;
  }

  #rain(...drops) {
    return this.#nft(rain(this.cable, drops));
  }

  #nft(input) {
    return run(...this.#switch.inside('nft', ['-f', '-']), input);
  }

  // Browsers on it. They give pages a camera only where they trust the address: Chromium by its name, and Firefox by a preference.

  /** The server's address as this browser shall open it. @param {{name: string}} browser */
  static serverURL(browser) {
    return `http://${browser.name === 'Chromium' ? serverName : `${prefix}.1`}:${port}`;
  }

  /** @param {Parameters<typeof launchChromium>[0]} [options] */
  chromium(options = {}) {
    const flags = [
      `--host-resolver-rules=MAP ${serverName} ${prefix}.1`,
      // Pages know their own addresses, as where a camera is allowed: tests read them in the statistics.
      '--disable-features=WebRtcHideLocalIpsWithMdns', ...options.flags ?? [],
    ];
    return launchChromium({ ...options, flags, machine: this });
  }

  /** @param {Parameters<typeof launchFirefox>[0]} [options] */
  firefox(options = {}) {
    const prefs = {
      'dom.securecontext.allowlist': `${prefix}.1`,
      'media.devices.insecure.enabled': true,
      'media.getusermedia.insecure.enabled': true,
      ...options.prefs,
    };
    return launchFirefox({ ...options, prefs, machine: this });
  }

  /** Ends nothing but the way in: who started something on it ends that. */
  async close() {
    await this.#doorkeeper?.kill();
    // It may not have come to be.
    await run('ip', ['netns', 'delete', this.name]).catch(() => {});
    tellUndertaker(`-machine ${this.name}`);
  }
}
