// A phone: the model of the iOS app with a simulated device, as a process. It shows and does what the app would, including the
// system's call screen; its camera is a film, and it counts the frames that it would show.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { Child, removeFolder, temporaryFolder } from './process.mjs';
import { NotYet, until } from './wait.mjs';

const run = promisify(execFile);

/**
 * Starts a phone, which goes online and shares its location, and which is off after the test.
 *
 * @param {object} person
 * @param {string} person.name
 * @param {string} person.color what its camera sees
 */
export async function startPhone(t, server, { name, color }) {
  const program = path.join(path.dirname(server.binary), 'AppHost');
  await access(program).catch(() => { throw new Error(`there is no ${program}: "swift build --product AppHost" builds it`); });
  const folder = await temporaryFolder('phone');
  t.after(() => removeFolder(folder));
  const phone = new Phone(new Child(program, await film(folder, color), { input: true }), name);
  t.after(() => phone.child.kill());
  phone.do(`server ${server.url}`);
  await phone.shows(/The rules/);
  phone.do(`agree ${name}`);
  await phone.until('it is online', ({ isOnline }) => isOnline);
  phone.do('nearby');
  return phone;
}

/** Makes a video of one color and a tone, and returns the files. */
async function film(folder, color) {
  const [video, audio] = [path.join(folder, 'film.ivf'), path.join(folder, 'film.ogg')];
  const make = (...args) => run('ffmpeg', ['-nostdin', '-v', 'error', '-f', 'lavfi', ...args]);
  await Promise.all([
    make('-i', `color=c=${color}:s=320x240:r=20`, '-t', '2', '-c:v', 'libvpx', '-g', '20', '-auto-alt-ref', '0', '-pix_fmt', 'yuv420p', video),
    make('-i', 'sine=frequency=600:duration=2:sample_rate=48000', '-c:a', 'libopus', audio),
  ]);
  return [video, audio];
}

class Phone {
  /** @param {Child} child */
  constructor(child, name) {
    Object.assign(this, { child, name });
  }

  /** Gives a command of `Tests/AppHost`. @param {string} command */
  do(command) {
    this.child.write(command);
  }

  /** The newest state. @returns {{isOnline: boolean, screen: string[], system: any[], endings: number[], faults: string[], isSounding: boolean, frames: number}} */
  get state() {
    const line = this.child.log.findLast((text) => text.startsWith('{'));
    return line ? JSON.parse(line) : { isOnline: false, screen: [], system: [], endings: [], faults: [], isSounding: false, frames: 0 };
  }

  /** Waits until the state fits. @param {string} description @param {(state: Phone['state']) => unknown} fits */
  until(description, fits) {
    return until(`${this.name}'s phone: ${description}`, () => {
      if (this.child.ended) throw new Error(`the phone has ended:\n${this.child.tail()}`);
      const { state } = this;
      if (!fits(state)) throw new NotYet(`it shows ${JSON.stringify(state, null, 1)}`);
      return state;
    });
  }

  /** Waits until a line of the screen matches. @param {RegExp} text */
  shows(text) {
    // Names in sentences are isolated from the direction of the sentence.
    return this.until(`the screen shows ${text}`, ({ screen }) => screen.some((line) => text.test(line.replace(/[\u2068\u2069]/g, ''))));
  }

  /** Waits until the system's call screen shows exactly these calls. @param {object[]} calls members of each */
  systemShows(...calls) {
    const fits = (/** @type {any} */ shown, /** @type {object} */ call) => Object.entries(call).every(([key, value]) => shown[key] === value);
    return this.until(`the system shows ${JSON.stringify(calls)}`, ({ system }) => (
      system.length === calls.length && calls.every((call, index) => fits(system[index], call))));
  }

  /** Waits until this many more frames of the other person's video have arrived. */
  async framesRise(by = 20) {
    const { frames } = this.state;
    // Another video is counted from 0.
    let least = frames;
    await this.until(`${by} more frames arrive`, (state) => {
      least = Math.min(least, state.frames);
      return state.frames - least >= by;
    });
  }

  /** Checks that the app did nothing that the system would not accept. */
  assertNoFaults() {
    assert.deepEqual(this.state.faults, [], `${this.name}'s phone`);
  }
}
