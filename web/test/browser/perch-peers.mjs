// Clients of PerchRTC's protocol (`../peers/perch_peer.py`), and pages that join a room with the SDK alone.
import { middleColor } from './in-page.mjs';
import { colorName, colors } from './media.mjs';
import { python, PythonPeer } from './python-peer.mjs';
import { NotYet, until } from './wait.mjs';

/** The credential of these tests' servers. */
export const credential = { ident: 'perch', secret: 'shipped-with-the-app' };
export const settings = { CONFAB_PERCH_IDENT: credential.ident, CONFAB_PERCH_SECRET: credential.secret };

export class Phone extends PythonPeer {
  /** @param {'flat' | 'layered'} envelope */
  static async join(t, server, { room, name, envelope, color }) {
    const { ident, secret } = credential;
    const script = ['perch_peer.py', server.url, ident, secret, room, name, envelope, colors[color].join(',')];
    const phone = new Phone(await python('--peers-media'), script, `${name} (${envelope})`);
    t.after(() => phone.kill());
    return phone;
  }

  leave() {
    this.do('leave');
  }

  /** Waits until it tells an event whose arguments pass the check; returns them. */
  tells(event, check = (..._) => true) {
    return until(`${this.label} tells ${event}`, () => {
      const fault = this.reported.find(({ event: name }) => name === 'fault');
      if (fault) throw new Error(`${this.label}: ${JSON.stringify(fault)}`);
      const found = this.reported.findLast(({ event: name, args }) => name === event && check(...args));
      if (!found) throw new NotYet('it has not');
      return found.args;
    }, { why: () => this.explain() });
  }

  /** Waits until it sees each of these users in this color. @param {Record<string, string>} expected */
  async sees(expected) {
    for (const [user, color] of Object.entries(expected)) {
      await this.tells('sees', (who, ...rgb) => who === user && colorName(rgb) === color);
    }
  }
}

/** Runs in the page: joins a room with camera and microphone, and shows each of the others. */
async function enter(name, displayName, options) {
  const { Client, OT, Rooms } = await import('/lib/index.js');
  const client = new Client();
  const rooms = new Rooms(client, {
    subscriberTarget: () => {
      const tile = document.createElement('div');
      tile.className = 'seen';
      tile.style.cssText = 'width: 160px; height: 120px';
      return document.body.appendChild(tile);
    },
  });
  const room = await rooms.join({ name, displayName, options });
  const own = document.body.appendChild(document.createElement('div'));
  room.publish(OT.initPublisher(own, { width: 160, height: 120 }));
  window.__room = room;
  return [...room.people.values()].map((person) => person.displayName);
}

/** Opens a page without an interface and joins a room. */
export async function joinFromPage(t, browser, server, { room, name, color, options }) {
  const page = await browser.newPage({ color });
  t.after(() => page.close());
  await page.goto(`${server.url}/try`);
  await page.press('Tab');
  await page.evaluate(enter, room, name, options);
  return page;
}

/** Waits until a page sees exactly these colors. @param {string[]} expected */
export function pageSees(page, expected) {
  return page.until(`it sees ${expected.join(', ')}`, async () => {
    const count = await page.evaluate('document.querySelectorAll(".seen").length');
    const seen = [];
    for (let index = 0; index < count; index += 1) {
      const mark = `document.querySelectorAll(".seen")[${index}].id = "seen-${index}"`;
      await page.evaluate(mark);
      const { rgb, missing } = await page.evaluate(middleColor, `#seen-${index} video`);
      if (!missing) seen.push(colorName(rgb));
    }
    if ([...seen].sort().join() !== [...expected].sort().join()) throw new NotYet(`it sees ${seen.join(', ') || 'nobody'}`);
    return true;
  });
}
