// Legacy clients that are not browsers meet users in Chromium, on our page and on one like RouletteTok's. They send no video,
// so tests check the texts of the pages.
import { test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { engineKinds, kinds, startPeer } from './roulettetok/peer.mjs';
import { startSite } from './roulettetok/site.mjs';
import { closeTab, hears, saysNoTextChat, shows, visit, waits } from './roulettetok/visitor.mjs';
import { arrive, assertNoComplaints, begin, says, serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

const { chromium } = sharedBrowsers();

/** Settings with which the same two people are not matched again. The timeout for video is short. */
const settings = {
  CONFAB_ROULETTE_REMATCH_WAIT: '300s', CONFAB_ROULETTE_SKIP_WINDOW: '0s', CONFAB_ROULETTE_STREAM_TIMEOUT: '300ms',
  CONFAB_SOCKET_IO_HEARTBEAT_INTERVAL: '1s', CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '4s',
  CONFAB_SOCKET_IO_CLOSE_TIMEOUT: '3s', CONFAB_SOCKET_IO_POLL_DURATION: '1s', CONFAB_CONNECTION_PING_INTERVAL: '1s',
};

/** Waits until our page shows a partner without media and without text chat. */
async function showsPartner(page) {
  await page.waitForStatus(/no audio or video from/i);
  await saysNoTextChat(page);
}

for (const kind of [...kinds, ...engineKinds]) {
  const title = `${kind} and a user of our page meet, and each learns that the other left`;
  const body = async (t) => {
    const { url, port } = await serve(t, settings);
    const green = await arrive(t, await chromium(), url, { color: 'green' });
    await begin(green);
    await green.waitForStatus(says.looking);
    const meetPeer = async (label) => {
      const peer = await startPeer(t, port, kind, { label });
      await peer.hears('initial');
      peer.next();
      await peer.hears('subscribe');
      await showsPartner(green);
      return peer;
    };

    const first = await meetPeer('the first');
    await green.click('button', 'Next');
    await first.hears('disconnectPartner');
    first.kill();

    const second = await meetPeer('the second');
    second.part();
    await green.waitForStatus(says.movedOn);
    await second.hears('disconnectPartner');
    second.kill();

    const third = await meetPeer('the third');
    const time = stopwatch();
    third.kill();
    await green.waitForStatus(says.left);
    t.diagnostic(`a killed partner was missed after ${time()}`);

    const fourth = await meetPeer('the fourth');
    await green.close();
    await fourth.hears('disconnectPartner');
    assertNoComplaints(green);
  };
  if (kind === 'ios') test(title, body);
  else testInFull(title, 'the same with ios; SignalingTests LegacyClientTests; ServerTests SocketIOConnectionTests', body);

  testInFull(`${kind} and a user of RouletteTok's page meet, and each is notified when the other leaves`,
    'roulettetok: two at RouletteTok’s page meet, part and go; roulettetok-peers: every kind meets', async (t) => {
    const { port } = await serve(t, settings);
    const red = await visit(t, await chromium(), await startSite(t, port), { color: 'red' });
    await waits(red);
    const meetPeer = async (label) => {
      const peer = await startPeer(t, port, kind, { label });
      await peer.hears('initial');
      peer.next();
      await peer.hears('subscribe');
      await red.waitForStatus(shows.fun);
      // The page would treat a chat that ended before it joined as a failure.
      await red.waitFor('it is in the partner\'s session', () => window.isWatching());
      return peer;
    };

    const first = await meetPeer('the first');
    await red.click('button', 'Next');
    await first.hears('disconnectPartner');
    await waits(red);
    first.kill();

    const second = await meetPeer('the second');
    second.part();
    await Promise.all([second.hears('disconnectPartner'), hears(red, 'disconnectPartner', 2)]);
    await waits(red);
    second.kill();

    const third = await meetPeer('the third');
    third.kill();
    await hears(red, 'disconnectPartner', 3);
    await waits(red);

    const fourth = await meetPeer('the fourth');
    await closeTab(t, red);
    await fourth.hears('disconnectPartner');
    assertNoComplaints(red);
  });
}
