// Clients that are not browsers: scripts in web/test/peers, which run as processes that a test controls with JSON lines.
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { repository } from './server.mjs';

/** The Python installations by option. @type {Map<string, Promise<string>>} */
const installations = new Map();

/**
 * A Python installation with the packages of the peers. The script that installs the browsers also downloads it into a cache.
 *
 * @param {'--peers' | '--peers-media'} option `--peers`: the client of 2015; `--peers-media`: aiortc
 */
export function python(option) {
  if (!installations.has(option)) {
    const setup = promisify(execFile)(path.join(repository, 'scripts', 'browser-setup'), [option]);
    installations.set(option, setup.then(({ stdout }) => stdout.trim()));
  }
  return installations.get(option);
}

export class PythonPeer {
  /** All events of the client, the latest last. @type {{event: string, args: any[]}[]} */
  reported = [];
  /** The client's other output, such as a traceback. @type {string[]} */
  errors = [];
  /** @type {{code: number | null, signal: string | null} | undefined} */
  ended;

  /** @param {string} command @param {string[]} script the name of the script, and its arguments @param {string} label */
  constructor(command, [script, ...args], label) {
    this.label = label;
    const file = path.join(repository, 'web', 'test', 'peers', script);
    this.process = spawn(command, ['-B', file, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.process.once('exit', (code, signal) => { this.ended = { code, signal }; });
    // The process may have ended already.
    this.process.stdin.on('error', () => {});
    createInterface({ input: this.process.stdout }).on('line', (line) => this.hear(line));
    createInterface({ input: this.process.stderr }).on('line', (line) => this.complain(line));
  }

  hear(line) {
    this.reported.push(JSON.parse(line));
  }

  complain(line) {
    this.errors.push(`    ${line}`);
  }

  do(command, more = {}) {
    this.process.stdin.write(`${JSON.stringify({ do: command, ...more })}\n`);
  }

  /** Sends SIGKILL, so the client cannot notify the server. */
  kill(signal = 'SIGKILL') {
    this.process.kill(signal);
  }

  explain() {
    const lines = this.reported.map((line) => `    ${JSON.stringify(line)}`).filter((line) => !line.includes('"answer"'));
    return [...lines.slice(-25), ...this.errors.slice(-25)].join('\n');
  }
}
