// Routed media under bad network conditions. Every machine is a network namespace, and a firewall drops packets. The tests
// check only that frames keep being decoded, with generous timeouts, never ICE states, which differ between browsers.
import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { keepMessages, peerDetails, source } from './in-page.mjs';
import { framesDecoded, framesRise } from './media.mjs';
import { Machine, startNetwork, whyNoNetwork } from './namespace.mjs';
import { arrive, assertNothingThrown, keepReceiving, mediaPort, meet, says, serve } from './stranger.mjs';
import { isFull, testInFull } from './tier.mjs';
import { elapsed, NotYet, stopwatch } from './wait.mjs';

const skip = await whyNoNetwork();
const network = skip ? undefined : await startNetwork(['one', 'other']);
if (network) {
  after(() => network.close());
  afterEach(() => network.clear());
}
const [one, other] = network?.clients ?? [];
const browsers = [one, other].map((machine) => machine && sharedBrowsers(machine));

/** The maximum time for a connection to recover. It includes detection, the restart, and delays of a busy machine. */
const healing = 60_000;

/** Two strangers in a chat, each on a separate machine. */
async function twoStrangers(t, { env = {}, engines = ['chromium', 'chromium'], scripts } = {}) {
  const server = await serve(t, env, network.options);
  const [first, second] = [await browsers[0][engines[0]](), await browsers[1][engines[1]]()];
  const red = await arrive(t, first, Machine.serverURL(first), { color: 'red', scripts });
  const green = await arrive(t, second, Machine.serverURL(second), { color: 'green', scripts });
  return { server, red, green };
}

/** Returns the page's two connections by purpose. */
async function connections(page) {
  const details = await page.evaluate(peerDetails);
  return {
    send: details.find(({ direction }) => direction === 'sendonly'),
    receive: details.find(({ direction }) => direction === 'recvonly'),
  };
}

/** Waits until new video arrives, starting at a time when there may be none. */
function recover(page, timeout = healing) {
  return framesRise(page, { by: 15, timeout });
}

async function report(t, what, ...pages) {
  for (const page of pages) {
    for (const [side, { state, iceStates, pair, number }] of Object.entries(await connections(page))) {
      t.diagnostic(`${what}: ${page.label}, ${side}: connection ${number} is ${state}, by way of ${iceStates}, from `
        + `${pair?.local.address}:${pair?.local.port} over ${pair?.local.protocol}`);
    }
  }
}

/** Returns every text that the page received or knows, grouped by where it was found. */
function everythingKnown(page) {
  return page.evaluate(async () => {
    const messages = window.__heard.map(({ text }) => text);
    const known = { messages, descriptions: [], statistics: [], page: [document.documentElement.outerHTML] };
    for (const peer of window.__peers) {
      known.descriptions.push(peer.remoteDescription?.sdp ?? '');
      if (peer.connectionState === 'closed') continue;
      known.statistics.push(...[...(await peer.getStats()).values()].map((entry) => JSON.stringify(entry)));
    }
    return known;
  });
}

async function assertKnowsOnlyTheServer(t, page, { mine, partner, server }) {
  const known = await everythingKnown(page);
  assert.ok(known.messages.length > 5 && known.descriptions.length >= 2, 'the page’s messages were recorded');
  assert.ok(known.descriptions.every((sdp) => sdp.includes(server)), 'the searched texts contain addresses');
  const said = new Set(Object.values(known).flat().flatMap((text) => text.match(/\b\d+\.\d+\.\d+\.\d+\b/g) ?? []));
  const looked = `${known.messages.length} messages, ${known.statistics.length} statistics`;
  t.diagnostic(`${page.label}: ${looked}; addresses: ${[...said].join(', ')}`);
  for (const [where, texts] of Object.entries(known)) {
    for (const text of texts) assert.ok(!text.includes(partner), `the partner's address is in the ${where} of ${page.label}: ${text}`);
  }
  const odd = [...said].filter((address) => ![mine, server, '0.0.0.0', '127.0.0.1', '192.0.0.0'].includes(address));
  assert.deepEqual(odd, [], `${page.label} knows no other address`);
}

test('strangers on two machines do not learn each other\'s address', { skip }, async (t) => {
  const { red, green } = await twoStrangers(t, { engines: ['chromium', 'firefox'], scripts: [source(keepMessages)] });
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  const server = network.server.address;
  await assertKnowsOnlyTheServer(t, red, { mine: one.address, partner: other.address, server });
  await assertKnowsOnlyTheServer(t, green, { mine: other.address, partner: one.address, server });
  assert.equal(await mediaPort(red), await mediaPort(green));
});

async function meetOverTCP(t, engines) {
  const { red, green } = await twoStrangers(t, { engines });
  await Promise.all([one, other].map((machine) => machine.loseDatagrams()));
  const time = stopwatch();
  await meet([red, 'red'], [green, 'green']);
  t.diagnostic(`they saw each other after ${time()}`);
  await keepReceiving(red, green);
  for (const [page, machine] of [[red, one], [green, other]]) {
    for (const [side, { pair }] of Object.entries(await connections(page))) {
      assert.equal(pair.local.protocol, 'tcp', `${page.label}, ${side}: ${JSON.stringify(pair)}`);
      assert.equal(pair.remote.protocol, 'tcp');
    }
    const lost = await machine.lost();
    t.diagnostic(`${page.label}: datagrams lost ${JSON.stringify(lost)}`);
    assert.ok(lost.sent > 0, 'the browser tried UDP first');
  }
  assertNothingThrown(red, green);
}

test('without UDP, media goes over TCP: chromium and firefox', { skip }, (t) => meetOverTCP(t, ['chromium', 'firefox']));

testInFull('without UDP, media goes over TCP: chromium and chromium', 'the test above', { skip },
  (t) => meetOverTCP(t, ['chromium', 'chromium']));

test('a chat that started over UDP continues over TCP when UDP is blocked', { skip }, async (t) => {
  const { red, green } = await twoStrangers(t);
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  const time = stopwatch();
  await one.loseDatagrams();
  await red.until('media goes over TCP', async () => {
    const { send, receive } = await connections(red);
    const used = [send, receive].map((side) => `${side?.pair?.local.protocol} ${side?.state}`);
    if (![send, receive].every((side) => side?.pair?.local.protocol === 'tcp')) throw new NotYet(used.join(', '));
    return true;
  }, { timeout: healing });
  await Promise.all([recover(red), recover(green)]);
  t.diagnostic(`it did after ${time()}`);
  await report(t, 'afterwards', red);
  assertNothingThrown(red, green);
});

/** Returns the statistics of lost and retransmitted packets, in both directions. */
async function repairs(page) {
  const { send, receive } = await connections(page);
  const [sent, received] = [send.sent.video, receive.received.video];
  return {
    framesDecoded: received.framesDecoded ?? 0,
    nacksHeard: sent.nackCount ?? 0,
    sentAgain: sent.retransmittedPacketsSent ?? 0,
    nacksSaid: received.nackCount ?? 0,
    receivedAgain: received.retransmittedPacketsReceived ?? 0,
  };
}

test('with 5 % packet loss each way frames keep coming, because both legs retransmit', { skip }, async (t) => {
  const { red, green } = await twoStrangers(t);
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  const before = await Promise.all([red, green].map(repairs));
  await Promise.all([one, other].map((machine) => machine.lose(5)));
  await Promise.all([red, green].map((page, index) => page.until('everything that repairs has happened', async () => {
    const now = await repairs(page);
    const missing = Object.keys(now).filter((name) => now[name] <= before[index][name]);
    const [frames, wanted] = [now.framesDecoded - before[index].framesDecoded, isFull ? 150 : 30];
    if (missing.length > 0 || frames < wanted) {
      throw new NotYet(`${missing.join(', ') || 'nothing'} has not risen, ${frames} frames of ${wanted}: ${JSON.stringify(now)}`);
    }
    return true;
  }, { timeout: healing })));
  for (const [index, page] of [red, green].entries()) {
    const now = await repairs(page);
    const risen = Object.entries(now).map(([name, value]) => `${name} +${value - before[index][name]}`);
    t.diagnostic(`${page.label}: ${risen.join(', ')}`);
  }
  t.diagnostic(`lost: ${JSON.stringify(await Promise.all([one, other].map((machine) => machine.lost())))}`);
  assertNothingThrown(red, green);
});

/** Drops everything between one machine and all others for a while. */
async function blackHole(t, { red, green }, ms) {
  const before = await framesDecoded(red);
  const gone = elapsed(ms, 'the black hole');
  await one.loseEverything();
  await gone;
  await report(t, 'at the end of the hole', red);
  const atEnd = await framesDecoded(red);
  await one.clear();
  const time = stopwatch();
  await Promise.all([red, green].map(async (page) => {
    await recover(page);
    t.diagnostic(`${page.label}: 15 more frames ${time()} after the hole`);
  }));
  t.diagnostic(`frames of ${red.label}: ${before} before, ${atEnd} at its end, ${await framesDecoded(red)} now`);
  await Promise.all([red, green].map((page) => page.waitForStatus(says.talking)));
  await keepReceiving(red, green);
  await report(t, 'afterwards', red, green);
}

testInFull('a network outage of 8 s recovers automatically, on the same connections',
  'unit/routed-trouble "recovers automatically or with the restart, and nothing else changes"; '
  + '"a media outage alone" below', { skip }, async (t) => {
  const both = await twoStrangers(t);
  await meet([both.red, 'red'], [both.green, 'green']);
  await keepReceiving(both.red, both.green);
  await blackHole(t, both, 8_000);
  for (const page of [both.red, both.green]) assert.equal(await page.evaluate('window.__peers.length'), 2, 'no new connection');
  assertNothingThrown(both.red, both.green);
});

testInFull('a network outage of 25 s recovers with the same partner',
  'unit/routed-trouble "is not restarted while the server cannot be reached, but afterwards"; '
  + '"a client whose address changes" below', { skip }, async (t) => {
  // The grace period is longer than the outage and its detection, because the connection to the server must survive in this
  // test.
  const both = await twoStrangers(t, { env: { CONFAB_CONNECTION_RESUME_GRACE: '120s' } });
  await meet([both.red, 'red'], [both.green, 'green']);
  await keepReceiving(both.red, both.green);
  await blackHole(t, both, 25_000);
  assertNothingThrown(both.red, both.green);
});

test('a media outage alone recovers by an ICE restart', { skip }, async (t) => {
  const { server, red, green } = await twoStrangers(t);
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  const { send, receive } = await connections(red);
  const gone = isFull ? elapsed(25_000, 'the hole') : undefined;
  await one.losePort(receive.pair.remote.port);
  await gone;
  await red.until('ICE is restarted on both connections', async () => {
    const now = await connections(red);
    const same = Object.entries({ send, receive }).filter(([side, { ufrag }]) => now[side]?.ufrag === ufrag).map(([side]) => side);
    if (same.length > 0) throw new NotYet(`not on that to ${same.join(' and ')}`);
    return true;
  }, { timeout: healing });
  await report(t, 'at the end of the hole', red);
  await one.clear();
  const time = stopwatch();
  await Promise.all([recover(red), recover(green)]);
  t.diagnostic(`frames rose on both ${time()} after the hole`);
  await keepReceiving(red, green);
  await report(t, 'afterwards', red);
  const now = await connections(red);
  for (const [side, before] of Object.entries({ send, receive })) {
    assert.equal(now[side].number, before.number, `${side}: the connection is the same`);
    assert.notEqual(now[side].ufrag, before.ufrag, `${side}: its ICE was restarted`);
  }
  assertNothingThrown(red, green);
});

test('a client whose address changes continues the same chat', { skip }, async (t) => {
  // Send pings often, because nothing else reveals that the old address no longer works.
  const { red, green } = await twoStrangers(t, {
    env: { CONFAB_CONNECTION_PING_INTERVAL: '2s', CONFAB_CONNECTION_MISSED_PINGS: '3', CONFAB_CONNECTION_RESUME_GRACE: '120s' },
  });
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  const [former, next] = [one.address, '10.201.0.77'];
  t.after(() => one.moveTo(former));
  const time = stopwatch();
  await one.moveTo(next);
  await red.until('media comes from the new address', async () => {
    const { send, receive } = await connections(red);
    const used = [send, receive].map((side) => `${side?.pair?.local.address} ${side?.state}`);
    if (![send, receive].every((side) => side?.pair?.local.address === next)) throw new NotYet(used.join(', '));
    return true;
  }, { timeout: healing });
  await Promise.all([red, green].map(async (page) => {
    await recover(page);
    t.diagnostic(`${page.label}: 15 more frames ${time()} after the change`);
  }));
  await Promise.all([red, green].map((page) => page.waitForStatus(says.talking)));
  await keepReceiving(red, green);
  await report(t, 'afterwards', red, green);
  assertNothingThrown(red, green);
});

test('a publisher to whom a NAT gives another port is seen again within 3 s', { skip }, async (t) => {
  const { red, green } = await twoStrangers(t);
  await meet([red, 'red'], [green, 'green']);
  await keepReceiving(red, green);
  const { send } = await connections(red);
  assert.equal(send.pair.local.protocol, 'udp');
  const decoded = async () => (await connections(green)).receive.received.video.framesDecoded;
  await one.renumber(send.pair.local.port, 3333);
  const time = stopwatch();
  const before = await decoded();
  // The frames that were on the way, and those of 15 new ones.
  await green.until('pictures come again', async () => {
    const now = await decoded();
    if (now < before + 15) throw new NotYet(`${now - before} frames since the change`);
    return true;
  }, { timeout: 3000 });
  t.diagnostic(`15 more frames ${time()} after the change`);
  const after = (await connections(red)).send;
  assert.equal(after.ufrag, send.ufrag, 'without an ICE restart');
  // A lite agent sends no other checks than this one.
  const { requestsReceived, responsesSent } = await red.evaluate(async (number) => {
    const pairs = [...(await window.__peers[number].getStats()).values()].filter(({ type }) => type === 'candidate-pair');
    const sum = (name) => pairs.reduce((total, pair) => total + (pair[name] ?? 0), 0);
    return { requestsReceived: sum('requestsReceived'), responsesSent: sum('responsesSent') };
  }, send.number);
  t.diagnostic(`the server's checks: ${requestsReceived}, answers: ${responsesSent}`);
  assertNothingThrown(red, green);
});

test('two browsers that cannot reach each other fall back from relayed to routed', { skip }, async (t) => {
  const env = { CONFAB_ROULETTE_MEDIA_MODE: 'relayed', CONFAB_MEDIA_RELAYED_FALLBACK: '3s' };
  const { red, green } = await twoStrangers(t, { env });
  await one.loseAddress(other.address);
  const time = stopwatch();
  await meet([red, 'red'], [green, 'green']);
  t.diagnostic(`they saw each other after ${time()}, of which 3 s were waited for the way between them`);
  await keepReceiving(red, green);
  for (const page of [red, green]) {
    for (const [side, { pair }] of Object.entries(await connections(page))) {
      assert.notEqual(pair?.remote.address, one.address, `${page.label}, ${side}`);
      assert.notEqual(pair?.remote.address, other.address, `${page.label}, ${side}`);
    }
  }
  assertNothingThrown(red, green);
});
