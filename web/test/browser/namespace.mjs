// A network of several machines inside this one, for bad network conditions that affect nothing else: each machine is a network
// namespace with its own address, connected to a switch on the server's machine. nftables rules on the switch drop packets,
// because a machine that drops its own packets notices, and its browser sends them again.
// Requires root on Linux. If that is missing or a container forbids it, `whyNoNetwork` returns the reason, and tests are
// skipped.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { launchChromium } from './chromium.mjs';
import { launchFirefox } from './firefox.mjs';
import { Child, removeFolder, tellUndertaker, temporaryFolder } from './process.mjs';

// Debian installs these commands in a directory that only root's PATH contains.
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };

/** The prefix of the machines' addresses. Any will do, because they are not visible outside. */
const prefix = '10.201.0';
/** The server's port. It is free, because no other process listens on the server's machine. */
const port = 8080;
/** The server's name. Browsers trust every name under `localhost`. */
const serverName = 'confab.localhost';

/** @param {string} command @param {string[]} args @param {string} [input] the command's standard input */
async function run(command, args, input) {
  const running = promisify(execFile)(command, args, { env });
  if (input !== undefined) running.child.stdin.end(input);
  return (await running).stdout;
}

const firstLine = ({ stderr, message }) => (stderr || message).trim().split('\n')[0];

/** Error texts of `ip`, `nft` and the kernel if a container or kernel does not allow namespaces. */
const forbidden = /not permitted|permission denied|read-only file system|not supported|unknown device type/i;
/** Bits of the effective capabilities: CAP_NET_ADMIN and CAP_SYS_ADMIN. */
const neededCapabilities = [12n, 21n];

async function mayAdminister() {
  const [, effective] = (await readFile('/proc/self/status', 'utf8')).match(/^CapEff:\s*([0-9a-f]+)$/m);
  return neededCapabilities.every((bit) => BigInt(`0x${effective}`) >> bit & 1n);
}

/**
 * Returns why such a network is impossible here, or undefined if it is possible. Only restrictions of the machine are a reason
 * to skip tests. Any other failure throws, because a missing tool or a bug must not skip tests unnoticed.
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
    // It may not exist.
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

  /** Removes all conditions between the machines. */
  async clear() {
    await Promise.all(this.clients.map((machine) => machine.clear()));
  }

  async close() {
    await Promise.all([this.server, ...this.clients].map((machine) => machine?.close()));
    await removeFolder(this.#folder);
  }
}

/** Runs inside the machine. Forwards connections from a socket file to the port named in their first line. */
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

/** Removes the rules of one cable. */
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
  /** The agent for HTTP requests from this process to the machine's loopback addresses. */
  agent = new http.Agent();
  #doorkeeper;
  #switch;
  #isSlow = false;

  /** @param {string} name of the namespace @param {string} door the path of the socket file to create */
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

  /** Returns the arguments with which `spawn` starts this command on the machine. @returns {[string, string[]]} */
  inside(command, args) {
    return ['ip', ['netns', 'exec', this.name, command, ...args]];
  }

  ip(...args) {
    return run('ip', ['-n', this.name, ...args]);
  }

  /** Replaces the machine's address, as when a phone changes networks. */
  async moveTo(address) {
    await this.ip('address', 'flush', 'dev', 'cable');
    await this.ip('address', 'add', `${address}/24`, 'dev', 'cable');
    // Browsers without camera permission use only the interface of the default route.
    await this.ip('route', 'replace', 'default', 'via', `${prefix}.1`);
    this.address = address;
  }

  // Network conditions between this machine and all others.

  /** @param {Machine} machine where the switch is @param {string} cable its name there */
  connect(machine, cable) {
    this.#switch = machine;
    this.cable = cable;
  }

  /** Drops a share of the UDP datagrams in each direction. @param {number} percent */
  lose(percent) {
    return this.#rain(`meta l4proto udp numgen random mod 100 < ${percent} counter drop`);
  }

  /** Drops all UDP, like a firewall that allows only the web. */
  loseDatagrams() {
    return this.#rain('meta l4proto udp counter drop');
  }

  /** Drops everything but TCP to and from this port, like the firewall of a hotel. @param {number} one */
  allowOnly(one) {
    return this.#rain(`tcp sport ${one} accept`, `tcp dport ${one} accept`, 'meta l4proto { tcp, udp } counter drop');
  }

  /**
   * Gives a UDP port of the machine another number, as a NAT that has lost its table does. Packets to the former number are lost.
   * @param {number} port @param {number} other
   */
  renumber(port, other) {
    const chain = (name, hook, rules) => [`chain ${name} {`, `type filter hook ${hook} device "${this.cable}" priority 0`, ...rules, '}'];
    return this.#nft([
      clearing(this.cable), `table netdev ${this.cable} {`,
      ...chain('sent', 'ingress', [`udp sport ${port} udp sport set ${other}`]),
      ...chain('received', 'egress', [`udp dport ${port} counter drop`, `udp dport ${other} udp dport set ${port}`]), '}',
    ].join('\n'));
  }

  /** Drops all packets silently. */
  loseEverything() {
    return this.#rain('ether type { ip, ip6 } counter drop');
  }

  /** Drops everything to and from this port. @param {number} one */
  losePort(one) {
    return this.#rain(...['sport', 'dport'].map((end) => `meta l4proto { tcp, udp } th ${end} ${one} counter drop`));
  }

  /** Drops everything between this machine and this address only. @param {string} address */
  loseAddress(address) {
    return this.#rain(...['saddr', 'daddr'].map((end) => `ip ${end} ${address} counter drop`));
  }

  /**
   * Limits the bitrate of everything that the machine sends or receives. What waits longer than 300 ms is dropped, like at a router.
   * @param {{sent?: number, received?: number}} rates in kbit/s
   */
  async slowDown({ sent, received }) {
    const queue = (rate) => ['root', 'tbf', 'rate', `${rate}kbit`, 'burst', '3000', 'latency', '300ms'];
    const limit = (machine, device, rate) => run('tc', ['-n', machine.name, 'qdisc', 'replace', 'dev', device, ...queue(rate)]);
    this.#isSlow = true;
    if (sent) await limit(this, 'cable', sent);
    if (received) await limit(this.#switch, this.cable, received);
  }

  async clear() {
    await this.#nft(clearing(this.cable));
    if (!this.#isSlow) return;
    this.#isSlow = false;
    // Only one of them may be limited.
    for (const [machine, device] of [[this, 'cable'], [this.#switch, this.cable]]) {
      await run('tc', ['-n', machine.name, 'qdisc', 'delete', 'dev', device, 'root']).catch(() => {});
    }
  }

  /**
   * Returns the number of packets that were dropped since the conditions last changed: those from the machine and those to it.
   */
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

  // Browsers on the machine. A page gets a camera only if its address is trusted. Chromium trusts the name, and Firefox needs a
  // preference.

  /** Returns the server's address for this browser. @param {{name: string}} browser */
  static serverURL(browser) {
    return `http://${browser.name === 'Chromium' ? serverName : `${prefix}.1`}:${port}`;
  }

  /** @param {Parameters<typeof launchChromium>[0]} [options] */
  chromium(options = {}) {
    const flags = [
      `--host-resolver-rules=MAP ${serverName} ${prefix}.1`,
      // With camera permission, a page's statistics contain its own addresses, which tests read.
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

  /** Closes only the access to the machine. The owners of processes on it must end them. */
  async close() {
    await this.#doorkeeper?.kill();
    // It may not exist.
    await run('ip', ['netns', 'delete', this.name]).catch(() => {});
    tellUndertaker(`-machine ${this.name}`);
  }
}
