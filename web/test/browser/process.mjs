// Child processes and temporary folders that never outlive the test process, even if it is killed.
//
// Every child leads its own process group, because browsers consist of several processes. A small shell knows the groups and
// folders; when its standard input closes, because this process ended or was killed, it removes them.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { within } from './wait.mjs';

// Input lines: "+group 123", "-group 123", "+machine confab-1-a", "+folder /tmp/x" and so on. Folders go last and twice,
// because a process that is being killed may still finish writing a file.
const undertaker = String.raw`
nl='
'
list=$nl
while IFS= read -r line; do
  item=\${line#?}
  case $line in
    +*) list=$list$item$nl ;;
    -*) case $list in *"$nl$item$nl"*) list=\${list%%"$nl$item$nl"*}$nl\${list#*"$nl$item$nl"} ;; esac ;;
  esac
done
set -f
IFS=$nl
for item in $list; do case $item in "group "*) kill -s KILL -- "-\${item#group }" 2>/dev/null ;; esac; done
for item in $list; do case $item in "machine "*) PATH=$PATH:/usr/sbin:/sbin ip netns delete "\${item#machine }" 2>/dev/null ;; esac; done
for round in 1 2; do
  for item in $list; do case $item in "folder "*) rm -rf -- "\${item#folder }" 2>/dev/null ;; esac; done
done
`.replaceAll('\\$', '$');

let notary;

/** @param {string} line */
export function tellUndertaker(line) {
  if (!notary) {
    // The cleanup process is detached, so that an interrupt in the terminal reaches the tests but not the cleanup.
    notary = spawn('/bin/sh', ['-c', undertaker], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    notary.unref();
    notary.stdin.unref?.();
  }
  notary.stdin.write(`${line}\n`);
}

/** Creates an empty folder, which is removed when this process ends, if not before. */
export async function temporaryFolder(purpose) {
  const folder = await mkdtemp(path.join(tmpdir(), `confab-${purpose}-`));
  tellUndertaker(`+folder ${folder}`);
  return folder;
}

export async function removeFolder(folder) {
  // A killed browser's children may still be closing files.
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  tellUndertaker(`-folder ${folder}`);
}

/** The number of lines of a child's output that are kept for error messages. */
const keptLines = 2_000;

export class Child {
  /** The lines of its standard output and standard error. @type {string[]} */
  log = [];
  /** @type {{code: number | null, signal: string | null} | undefined} */
  ended;
  #watchers = new Set();

  /**
   * @param {string} command
   * @param {string[]} args
   * @param {{env?: Record<string, string | undefined>, cwd?: string, input?: boolean, machine?: import('./namespace.mjs').Machine}}
   *   [options] `input`: whether it reads from `write`; `machine`: where to run it, instead of here
   */
  constructor(command, args, { env = {}, cwd, input = false, machine } = {}) {
    this.name = path.basename(command);
    this.process = spawn(...(machine?.inside(command, args) ?? [command, args]), {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      stdio: [input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    });
    // A child that has ended reads nothing more. The test learns it from its log.
    this.process.stdin?.on('error', () => {});
    this.exited = new Promise((resolve) => {
      this.process.once('error', (error) => resolve(this.#end({ code: null, signal: null, error })));
      this.process.once('exit', (code, signal) => resolve(this.#end({ code, signal })));
    });
    // After `exit`, the child's last lines may still be in the pipe. After `close`, they have been read.
    this.silent = new Promise((resolve) => this.process.once('close', resolve));
    if (this.process.pid) tellUndertaker(`+group ${this.process.pid}`);
    for (const stream of [this.process.stdout, this.process.stderr]) {
      createInterface({ input: stream }).on('line', (line) => this.#hear(line));
    }
  }

  #hear(line) {
    this.log.push(line);
    if (this.log.length > keptLines) this.log.shift();
    for (const watch of this.#watchers) watch(line);
  }

  /** Writes a line to its standard input, which `input` has to allow. @param {string} line */
  write(line) {
    this.process.stdin.write(`${line}\n`);
  }

  #end(how) {
    this.ended = how;
    // The group's leader has ended. End its remaining children too, because they would slow down later tests.
    this.#signalGroup('SIGKILL');
    if (this.process.pid) tellUndertaker(`-group ${this.process.pid}`);
    return how;
  }

  #signalGroup(signal) {
    if (!this.process.pid) return;
    try {
      process.kill(-this.process.pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }

  /**
   * Returns the first matching line, including earlier lines.
   *
   * @param {RegExp} pattern
   * @param {number} timeout milliseconds
   * @returns {Promise<RegExpMatchArray>}
   */
  line(pattern, timeout) {
    let watch;
    const found = new Promise((resolve, reject) => {
      watch = (line) => {
        const match = line.match(pattern);
        if (match) resolve(match);
      };
      this.log.forEach(watch);
      this.#watchers.add(watch);
      Promise.all([this.exited, this.silent]).then(([how]) => {
        reject(new Error(`${this.name} ended (${describe(how)}) before it wrote ${pattern}:\n${this.tail()}`));
      });
    });
    return within(found, timeout, () => `${this.name} has not written ${pattern} yet:\n${this.tail()}`)
      .finally(() => this.#watchers.delete(watch));
  }

  /** Returns the end of the log, for error messages. */
  tail(lines = 25) {
    return this.log.slice(-lines).map((line) => `    ${line}`).join('\n') || '    (nothing was written)';
  }

  /**
   * Sends a signal and waits until the process has ended. SIGKILL goes to the whole group, other signals only to its leader.
   *
   * @param {NodeJS.Signals} [signal]
   */
  async kill(signal = 'SIGKILL') {
    if (!this.ended) {
      if (signal === 'SIGKILL') this.#signalGroup(signal);
      else this.process.kill(signal);
    }
    return within(this.exited, 30_000, () => `${this.name} has not ended after ${signal}:\n${this.tail()}`);
  }
}

function describe({ code, signal, error }) {
  if (error) return error.message;
  return signal ? `signal ${signal}` : `status ${code}`;
}
