// With a TURN server, strangers connect only through that server. The tests use coturn with time-limited credentials. Neither
// page must learn an address of the other.
import assert from 'node:assert/strict';
import os from 'node:os';
import test from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { arrive, keepReceiving, meet, serve } from './stranger.mjs';
import { startTurn } from './turn.mjs';

const { chromium } = sharedBrowsers();

/** The TURN server's address. It is not on the loopback interface, because some browsers cannot reach a TURN server there. */
function ownAddress() {
  const addresses = Object.values(os.networkInterfaces()).flat();
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}

/** Returns the types of both candidates in every pair that carries media, and every candidate that the page received. */
function candidates(page) {
  return page.evaluate(async () => {
    const used = [];
    const reported = [];
    for (const peer of window.__peers) {
      const stats = await peer.getStats();
      for (const report of stats.values()) {
        if (report.type === 'remote-candidate') reported.push(report.candidateType);
        if (report.type !== 'candidate-pair' || !report.nominated || report.state !== 'succeeded') continue;
        used.push([stats.get(report.localCandidateId).candidateType, stats.get(report.remoteCandidateId).candidateType]);
      }
    }
    return { used, reported, descriptions: window.__peers.map((peer) => peer.remoteDescription?.sdp ?? '') };
  });
}

test('with a TURN server strangers meet through the relay, and learn only its address', async (t) => {
  const address = ownAddress();
  if (!address) return t.skip('this machine has no address but loopback');
  const turn = await startTurn(t, { address });
  const server = await serve(t, { CONFAB_ROULETTE_MEDIA_MODE: 'relayed', ...turn.env(`turn:${address}:${turn.port}?transport=udp`) });
  assert.doesNotMatch(server.ready, /LAN only/);
  const browser = await chromium();
  const red = await arrive(t, browser, server.url, { color: 'red' });
  const green = await arrive(t, browser, server.url, { color: 'green' });
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  for (const page of [red, green]) {
    const { used, reported, descriptions } = await candidates(page);
    assert.ok(used.length > 0, 'a pair of candidates carries media');
    for (const pair of used) assert.deepEqual(pair, ['relay', 'relay']);
    for (const type of reported) assert.equal(type, 'relay');
    for (const sdp of descriptions) assert.doesNotMatch(sdp, /typ (host|srflx|prflx)/);
  }
  assert.ok(turn.child.log.some((line) => /ALLOCATE processed, success/.test(line)), 'coturn took the credentials');
});
