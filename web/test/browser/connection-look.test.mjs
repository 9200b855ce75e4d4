// The indicator of the network on the tiles of a session: its looks in every level, and what pressing it says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { inspect } from './screenshots.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { NotYet } from './wait.mjs';

const { chromium } = sharedBrowsers();

/** Runs in every document: keeps the page's WebSocket, so that the test can add messages of the server. */
function keepSocket() {
  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(...args) {
      super(...args);
      window.__socket = this;
      this.addEventListener('message', ({ data }) => {
        const { seq, type, stream, streams, sessionId } = JSON.parse(data);
        if (seq) window.__seq = seq;
        if (type === 'session.published') Object.assign(window, { __own: stream.streamId, __session: sessionId });
        if (type === 'session.streamCreated') window.__theirs = stream.streamId;
        if (streams?.[0]) window.__theirs = streams[0].streamId;
      });
    }
  };
}

/**
 * Runs in the page: adds a message, as if the server had sent it. The server's next message is then a duplicate for the page, so a
 * test adds few.
 */
function pretend(whose, members) {
  window.__seq += 1;
  const message = { seq: window.__seq, ack: 0, sessionId: window.__session, streamId: window[whose], ...members };
  window.__socket.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(message) }));
}

async function join(t, server, session, color) {
  const token = await server.command('token', 'create', '--session', session, '--role', 'publisher');
  const page = await (await chromium()).newPage({ color, scripts: [`(${keepSocket})();`] });
  t.after(() => page.close());
  await page.goto(`${server.url}/try#session=${session}&token=${token}`);
  return page;
}

test('the network of each tile is shown in three levels, and one press says why', async (t) => {
  const server = await serve(t);
  const session = await server.command('session', 'create');
  const page = await join(t, server, session, 'red');
  const partner = await join(t, server, session, 'white');
  await page.find('button', 'Your connection: good');
  await page.find('button', 'Connection: good');
  assert.deepEqual(await inspect(page, 'network-good'), []);

  const quality = { type: 'session.streamQuality', level: 'fair', reason: 'loss' };
  await page.evaluate(pretend, '__theirs', quality);
  await page.evaluate(pretend, '__own', { ...quality, level: 'poor', reason: 'bandwidth' });
  await page.click('button', 'Connection: fair');
  const says = (pattern) => page.until(`the page says ${pattern}`, async () => {
    const text = await page.evaluate("document.getElementById('network-why')?.innerText ?? ''");
    if (!pattern.test(text)) throw new NotYet(`it says "${text}"`);
    return true;
  });
  await says(/their connection is unstable/i);
  assert.deepEqual(await inspect(page, 'network-fair'), []);
  await page.press('Escape');
  await says(/^$/);

  const own = await page.find('button', 'Your connection: poor');
  await own.focus();
  await page.press('Enter');
  await says(/your upload speed is low/i);
  assert.deepEqual(await inspect(page, 'network-poor'), []);
  await page.press('Enter');
  await says(/^$/);
  assertNothingThrown(page, partner);
});
