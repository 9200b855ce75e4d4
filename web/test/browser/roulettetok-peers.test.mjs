// Original clients that are no browsers, against the built server: Python's over its three transports, and what the iOS
// client sent and stumbled over. Every test has a server of its own, and so an empty queue; waits are set short here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startProxy } from './proxy.mjs';
import { assertNoNews, kinds, pair, startPeer } from './roulettetok/peer.mjs';
import { serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { stopwatch } from './wait.mjs';

/** Two who parted are not given to each other again while a test runs, and nobody is punished for parting quickly. */
const settings = { CONFAB_ROULETTE_REMATCH_WAIT: '300s', CONFAB_ROULETTE_SKIP_WINDOW: '0s' };

/** Silence is noticed in seconds. */
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

/** Every kind with every kind, itself included. */
const pairs = kinds.flatMap((one, index) => kinds.slice(index).map((other) => [one, other]));
/** Two pairs have every kind once. */
const isFirst = (one, other) => ['websocket and xhr-polling', 'jsonp-polling and ios'].includes(`${one} and ${other}`);

for (const [one, other] of pairs) {
  const title = `${one} and ${other} meet, part as either wishes, and find others`;
  const body = async (t) => {
    const { port } = await serve(t, settings);
    const [a, b] = await Promise.all([arrive(t, port, one, 'a'), arrive(t, port, other, 'b')]);
    const time = stopwatch();
    await pair(a, b);
    t.diagnostic(`both were told of each other after ${time()}`);

    // It ends for both, and both ask again: the iOS client by itself. They are not given to each other.
    b.part();
    await Promise.all([a, b].map((peer) => peer.hears('disconnectPartner')));
    for (const peer of [a, b]) if (peer.kind !== 'ios') peer.next();
    await Promise.all([a, b].map((peer) => peer.hears('empty')));
    const c = await arrive(t, port, 'websocket', 'c');
    c.next();
    const { sessionId } = await c.hears('subscribe');
    const [first, second] = sessionId === a.session ? [a, b] : [b, a];
    await first.meets(c);

    // Whoever asks for another has left; only the other need be told.
    first.next();
    await Promise.all([c.hears('disconnectPartner'), first.hears('empty')]);
    c.next();
    await Promise.all([c.meets(second), second.meets(c)]);
    assertNoNews(a, b, c);
  };
  if (isFirst(one, other)) test(title, body);
  else testInFull(title, 'each of the two with another; SignalingTests OriginalTests; HostileTests SocketIOSurfaceTests', body);
}

/** Ways to leave, and what the network sees of them. `line` is the leaver's own. */
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
  testInFull(`whose partner is ${kind} is told that it left, however it left`,
    'SignalingTests OriginalTests.vanishing; ServerTests SocketIOConnectionTests; roulettetok-mixed: ios and somebody at our page', async (t) => {
    const { port } = await serve(t, impatient);
    // It asks for the next by itself, and never shows life but by answering pings.
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
      t.diagnostic(`${way}: told after ${time()}`);
      await witness.hears('empty');
      leaver.kill();
      await line.close();
    }
    assertNoNews(witness);
  });
}

testInFull('polling clients, too, are told that their partners left',
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

testInFull('an iOS client that never sends a heartbeat stays, for it answers pings',
  'ServerTests SocketIOConnectionTests "any frame is life: a client that answers pings and no heartbeat stays"', async (t) => {
  const { port } = await serve(t, { ...impatient, CONFAB_SOCKET_IO_HEARTBEAT_TIMEOUT: '3s' });
  const [a, b] = [await arrive(t, port, 'ios', 'a'), await arrive(t, port, 'ios', 'b')];
  await pair(a, b);
  // Two a second: more than three times the server's patience.
  await Promise.all([a, b].map((peer) => peer.wrote(/pinged/, 21)));
  assertNoNews(a, b);
  a.part();
  await Promise.all([a, b].map((peer) => peer.hears('disconnectPartner')));
});

testInFull('clients that only listen stay for several heartbeats, over every transport',
  'ServerTests SocketIOConnectionTests "heartbeats go out every 25 s", "the first poll is answered at once"', async (t) => {
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
  testInFull(`a packet that asks for an acknowledgement gets it, and is obeyed, over ${kind}`,
    'ServerTests SocketIOConnectionTests "packets and their answers"; HostileTests SocketIOLossTests', async (t) => {
    const { port } = await serve(t, settings);
    const peer = await arrive(t, port, kind, 'one');
    peer.do('emit', { name: 'next', args: [{}], ask: true });
    await peer.wrote(/"acknowledged"/);
    await peer.hears('empty');
    assertNoNews(peer);
  });
}

/** Requests that killed or confused the first server. */
const faults = {
  'next without arguments': '5:::{"name":"next"}',
  'next with nothing in its arguments': '5:::{"name":"next","args":[]}',
  'next with null': '5:::{"name":"next","args":[null]}',
  'next for a session that is none': '5:::{"name":"next","args":[{"sessionId":"nobody\'s"}]}',
  'disconnectPartners while alone': '5:::{"name":"disconnectPartners"}',
  'disconnectPartners with arguments': '5:::{"name":"disconnectPartners","args":[1,2]}',
  'a heartbeat as Python writes it': '2:::',
  'a bare heartbeat': '2',
  // Last, for its answer says that all the others have been heard.
  'next with an empty object': '5:::{"name":"next","args":[{}]}',
};

for (const kind of kinds) {
  testInFull(`what once killed the server does it no harm, from ${kind}`,
    'SignalingTests OldFaultTests, OriginalTests.nextTwice; ServerTests SocketIOConnectionTests "packets and their answers"', async (t) => {
    const { port } = await serve(t, settings);
    const [a, b] = [await arrive(t, port, kind, 'a'), await arrive(t, port, 'ios', 'b')];
    const say = (packet) => a.do('raw', { [kind === 'ios' ? 'text' : 'packet']: packet });
    for (const [fault, packet] of Object.entries(faults)) {
      say(packet);
      // Waiting already, one is told so once more.
      if (packet.includes('"next"')) assert.equal(await a.hears('empty'), undefined, fault);
    }
    // Only now is there somebody; and whatever came before, these two meet once.
    b.next();
    await Promise.all([a.meets(b), b.meets(a)]);
    assertNoNews(a, b);
  });
}

testInFull('two who both end their chat, and more than once, end no other',
  'SignalingTests OriginalTests.disconnectPartnersTwice, OldFaultTests.aFormerPartnerCannotEndANewChat', async (t) => {
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

testInFull('an iOS client that asks once too often, because some session ended, is only given another',
  'SignalingTests OriginalTests.nextInAChat', async (t) => {
  const { port } = await serve(t, settings);
  const [a, b] = [await arrive(t, port, 'ios', 'a'), await arrive(t, port, 'ios', 'b')];
  const c = await arrive(t, port, 'websocket', 'c');
  a.do('press');
  await a.hears('empty');
  a.do('session_disconnected');
  await a.hears('empty');
  b.next();
  await Promise.all([a.meets(b), b.meets(a)]);
  // Its own session, of all; it believes itself in the chat still.
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
