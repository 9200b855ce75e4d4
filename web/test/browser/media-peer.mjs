// Clients with aiortc in a routed session, and pages at the other end.
import { colorName, colors } from './media.mjs';
import { python, PythonPeer } from './python-peer.mjs';
import { serve } from './stranger.mjs';
import { NotYet, until } from './wait.mjs';

/** Tones that are far enough apart. A tone is detected for each second, and a second may begin or end in silence. */
const hertzNear = 25;

/** A server with a routed session, and a function that creates tokens for it. */
export async function routed(t, env, options) {
  const server = await serve(t, env, options);
  const session = await server.command('session', 'create', '--media', 'routed');
  const token = (role) => server.command('token', 'create', '--session', session, '--role', role);
  return { server, session, token };
}

/** The page `/try` in that session. */
export async function open(t, launch, { server, session, token }, role, options = {}) {
  const browser = await launch();
  const page = await browser.newPage(options);
  t.after(() => page.close());
  await page.goto(`${server.url}/try#session=${session}&token=${await token(role)}`);
  // Without a user gesture, the page's microphone stays silent.
  await page.press('Tab');
  return page;
}

export class MediaPeer extends PythonPeer {
  /** The events after which nothing more is expected of the client. */
  faults = ['fault', 'failed'];

  /** Starts a client that runs until the test ends. @param {string[]} args */
  static async start(t, script, args, label) {
    const peer = new this(await python('--peers-media'), [script, ...args], label);
    t.after(() => peer.kill());
    return peer;
  }

  publish(color, hertz, codec = 'VP8') {
    this.do('publish', { color: colors[color], hertz, codec });
  }

  /** Waits until the latest of these events passes the check, which throws `NotYet`; returns its first argument, if any. */
  tells(event, check = () => {}) {
    return until(`${this.label} tells ${event}`, () => {
      const trouble = this.reported.find(({ event: name }) => this.faults.includes(name));
      if (this.ended || trouble) throw new Error(`${this.label} failed or ended:
${this.explain()}`);
      const latest = this.reported.findLast(({ event: name }) => name === event);
      if (!latest) throw new NotYet('it has not');
      check(latest.args[0]);
      return latest.args[0] ?? true;
    }, { why: () => this.explain() });
  }

  sees(color, more = 0) {
    let from;
    return this.tells('picture', ({ rgb, frames }) => {
      from ??= frames;
      if (colorName(rgb) !== color) throw new NotYet(`the picture is ${colorName(rgb)}`);
      if (frames < from + more) throw new NotYet(`${frames - from} more pictures came`);
    });
  }

  hears(hertz) {
    return this.tells('sound', ({ hertz: heard, level }) => {
      if (level < 0.01 || Math.abs(heard - hertz) > hertzNear) throw new NotYet(`it hears ${heard} Hz at ${level}`);
    });
  }
}
