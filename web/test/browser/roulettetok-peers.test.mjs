// Legacy clients that are not browsers, with the built server: the Python client on its three transports, and the packets that
// the iOS client sent. Every test has its own server, and so an empty queue. Timeouts are short.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startProxy } from './proxy.mjs';
import { assertNoNews, kinds, pair, startPeer } from './roulettetok/peer.mjs';
import { serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

/** Settings with which the same two people are not matched again during a test, and quick skips have no penalty. */
const settings = { CONFAB_ROULETTE_REMATCH_WAIT: '300s', CONFAB_ROULETTE_SKIP_WINDOW: '0s' };

/** Settings with which silence is detected within seconds. */
const impatient = {
  ...settings,
  CONFAB_SOCKET_IO_HEARTBEAT_INTERVAL: '1s', CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '4s',
  CONFAB_SOCKET_IO_CLOSE_TIMEOUT: '3s', CONFAB_SOCKET_IO_POLL_DURATION: '1s', CONFAB_CONNECTION_PING_INTERVAL: '500ms',
};

const arrive = async (t, port, kind, label) => {
  const peer = await startPeer(t, port, kind, { label: `${label} (${kind})` });
  await peer.hears('initial');
  return peer;
};

/** All pairs of kinds, including pairs of the same kind. */
const pairs = kinds.flatMap((one, index) => kinds.slice(index).map((other) => [one, other]));
/** Two pairs that together contain every kind once. */
const isFirst = (one, other) => ['websocket and xhr-polling', 'jsonp-polling and ios'].includes(`${one} and ${other}`);

for (const [one, other] of pairs) {
  const title = `${one} and ${other} meet, either of them can leave, and both find others`;
  const body = async (t) => {
    const { port } = await serve(t, settings);
    const [a, b] = await Promise.all([arrive(t, port, one, 'a'), arrive(t, port, other, 'b')]);
    const time = stopwatch();
    await pair(a, b);
    t.diagnostic(`both were notified of each other after ${time()}`);

    // The chat ends for both, and both request a partner, the iOS client automatically. They are not matched with each other
    // again.
    b.part();
    await Promise.all([a, b].map((peer) => peer.hears('disconnectPartner')));
    for (const peer of [a, b]) if (peer.kind !== 'ios') peer.next();
    await Promise.all([a, b].map((peer) => peer.hears('empty')));
    const c = await arrive(t, port, 'websocket', 'c');
    c.next();
    const { sessionId } = await c.hears('subscribe');
    const [first, second] = sessionId === a.session ? [a, b] : [b, a];
    await first.meets(c);

    // Requesting another partner leaves the chat. Only the former partner is notified.
    first.next();
    await Promise.all([c.hears('disconnectPartner'), first.hears('empty')]);
    c.next();
    await Promise.all([c.meets(second), second.meets(c)]);
    assertNoNews(a, b, c);
  };
  if (isFirst(one, other)) test(title, body);
  else testInFull(title, 'each of the two with another; SignalingTests LegacyClientTests; HostileTests SocketIOSurfaceTests', body);
}

/** The ways to leave, some of them at the network level. `line` is the leaving client's connection. */
const ways = {
  'says 0::': (peer) => peer.do('raw', { [peer.kind === 'ios' ? 'text' : 'packet']: '0::' }),
  'is killed': (peer) => peer.kill(),
  'goes silent': (_, line) => line.stall(),
};
const waysOf = {
  ios: { ...ways, 'closes its WebSocket': (peer) => peer.do('close'), 'hangs up': (peer) => peer.do('vanish') },
  websocket: { ...ways, 'closes its WebSocket': (peer) => peer.do('disconnect') },
  'xhr-polling': { ...ways, 'asks for ?disconnect': (peer) => peer.do('disconnect') },
  'jsonp-polling': { ...ways, 'asks for ?disconnect': (peer) => peer.do('disconnect') },
};

for (const kind of kinds) {
  testInFull(`a client whose partner is ${kind} is notified that it left, however it left`,
    'SignalingTests LegacyClientTests.vanishing; ServerTests SocketIOConnectionTests; roulettetok-mixed: ios and a user of our page', async (t) => {
    const { port } = await serve(t, impatient);
    // The iOS client requests the next partner automatically. Its only sign of activity is that it answers pings.
    const witness = await arrive(t, port, 'ios', 'the witness');
    witness.next();
    await witness.hears('empty');
    for (const [way, leave] of Object.entries(waysOf[kind])) {
      const line = await startProxy(port);
      t.after(() => line.close());
      const leaver = await arrive(t, line.port, kind, `one who ${way}`);
      leaver.next();
      await Promise.all([witness.meets(leaver), leaver.meets(witness)]);
      const time = stopwatch();
      leave(leaver, line);
      await witness.hears('disconnectPartner');
      t.diagnostic(`${way}: notified after ${time()}`);
      await witness.hears('empty');
      leaver.kill();
      await line.close();
    }
    assertNoNews(witness);
  });
}

testInFull('polling clients are notified too that their partners left',
  'the two pairs of the first tier: xhr-polling and jsonp-polling hear disconnectPartner', async (t) => {
  const { port } = await serve(t, impatient);
  for (const kind of ['xhr-polling', 'jsonp-polling']) {
    const witness = await arrive(t, port, kind, 'the witness');
    const leaver = await arrive(t, port, 'ios', 'the leaver');
    await pair(witness, leaver);
    leaver.kill();
    await witness.hears('disconnectPartner');
    witness.kill();
  }
});

testInFull('an iOS client that never sends a heartbeat stays, because it answers pings',
  'ServerTests SocketIOConnectionTests "any frame keeps a client alive, even if it never answers heartbeats"', async (t) => {
  const { port } = await serve(t, { ...impatient, CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '3s' });
  const [a, b] = [await arrive(t, port, 'ios', 'a'), await arrive(t, port, 'ios', 'b')];
  await pair(a, b);
  // At two per second, this takes more than three times the server's timeout.
  await Promise.all([a, b].map((peer) => peer.wrote(/pinged/, 21)));
  assertNoNews(a, b);
  a.part();
  await Promise.all([a, b].map((peer) => peer.hears('disconnectPartner')));
});

testInFull('clients that only receive stay for several heartbeats, over every transport',
  'ServerTests SocketIOConnectionTests "heartbeats are sent 25 s", "the first poll is answered immediately"', async (t) => {
  const short = { CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '3s', CONFAB_SOCKET_IO_CLOSE_TIMEOUT: '2s' };
  const { port } = await serve(t, { ...impatient, ...short });
  const clock = await arrive(t, port, 'ios', 'the clock');
  const peers = await Promise.all(['websocket', 'xhr-polling', 'jsonp-polling'].map((kind) => arrive(t, port, kind, 'one')));
  await clock.wrote(/pinged/, 21);
  const [a, b, c] = peers;
  await pair(a, b);
  await pair(c, clock);
  assertNoNews(...peers, clock);
});

for (const kind of ['websocket', 'xhr-polling', 'jsonp-polling']) {
  testInFull(`a packet that requests an acknowledgement gets one, and is processed, over ${kind}`,
    'ServerTests SocketIOConnectionTests "packets and their answers"; HostileTests SocketIOLossTests', async (t) => {
    const { port } = await serve(t, settings);
    const peer = await arrive(t, port, kind, 'one');
    peer.do('emit', { name: 'next', args: [{}], ask: true });
    await peer.wrote(/"acknowledged"/);
    await peer.hears('empty');
    assertNoNews(peer);
  });
}

/** Requests that crashed or confused RouletteTok's server. */
const faults = {
  'next without arguments': '5:::{"name":"next"}',
  'next with nothing in its arguments': '5:::{"name":"next","args":[]}',
  'next with null': '5:::{"name":"next","args":[null]}',
  'next for a session that is none': '5:::{"name":"next","args":[{"sessionId":"nobody\'s"}]}',
  'disconnectPartners while alone': '5:::{"name":"disconnectPartners"}',
  'disconnectPartners with arguments': '5:::{"name":"disconnectPartners","args":[1,2]}',
  'a heartbeat as Python writes it': '2:::',
  'a bare heartbeat': '2',
  // This packet is the last, because its answer shows that all the others were received.
  'next with an empty object': '5:::{"name":"next","args":[{}]}',
};

for (const kind of kinds) {
  testInFull(`packets that once crashed the server do no harm, from ${kind}`,
    'SignalingTests OldFaultTests, LegacyClientTests.nextTwice; ServerTests SocketIOConnectionTests "packets and their answers"', async (t) => {
    const { port } = await serve(t, settings);
    const [a, b] = [await arrive(t, port, kind, 'a'), await arrive(t, port, 'ios', 'b')];
    const say = (packet) => a.do('raw', { [kind === 'ios' ? 'text' : 'packet']: packet });
    for (const [fault, packet] of Object.entries(faults)) {
      say(packet);
      // A client that already waits gets the notice again.
      if (packet.includes('"next"')) assert.equal(await a.hears('empty'), undefined, fault);
    }
    // A partner exists only from this moment. Whatever was sent before, these two are matched once.
    b.next();
    await Promise.all([a.meets(b), b.meets(a)]);
    assertNoNews(a, b);
  });
}

testInFull('two clients that both end their chat, and more than once, end no other chat',
  'SignalingTests LegacyClientTests.disconnectPartnersTwice, OldFaultTests.aFormerPartnerCannotEndANewChat', async (t) => {
  const { port } = await serve(t, settings);
  const [a, b] = [await arrive(t, port, 'websocket', 'a'), await arrive(t, port, 'xhr-polling', 'b')];
  await pair(a, b);
  for (const peer of [a, b, a]) peer.part();
  await Promise.all([a, b].map((peer) => peer.hears('disconnectPartner')));
  a.part();
  a.next();
  await a.hears('empty');
  a.part();
  const c = await arrive(t, port, 'jsonp-polling', 'c');
  c.next();
  await Promise.all([a.meets(c), c.meets(a)]);
  b.part();
  b.next();
  await b.hears('empty');
  assertNoNews(a, b, c);
});

testInFull('an iOS client that requests once too often, because a session ended, just gets another partner',
  'SignalingTests LegacyClientTests.nextInAChat', async (t) => {
  const { port } = await serve(t, settings);
  const [a, b] = [await arrive(t, port, 'ios', 'a'), await arrive(t, port, 'ios', 'b')];
  const c = await arrive(t, port, 'websocket', 'c');
  a.do('press');
  await a.hears('empty');
  a.do('session_disconnected');
  await a.hears('empty');
  b.next();
  await Promise.all([a.meets(b), b.meets(a)]);
  // The client sends its own session, because it still believes that it is in the chat.
  a.do('session_disconnected');
  await Promise.all([b.hears('disconnectPartner'), a.hears('empty')]);
  await b.hears('empty');
  c.next();
  await Promise.all([a.meets(c), c.meets(a)]);
  a.do('press');
  await Promise.all([a, c].map((peer) => peer.hears('disconnectPartner')));
  await a.hears('empty');
  assertNoNews(a, b, c);
});
