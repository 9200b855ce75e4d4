// Python's polling client waits 3 s for each poll and then hangs up, even during an answer. This must not lose or duplicate
// events. In these tests, polls are canceled far more often, at every moment around an event.
import assert from 'node:assert/strict';
import { startPeer } from './roulettetok/peer.mjs';
import { Poller } from './roulettetok/poller.mjs';
import { serve } from './stranger.mjs';
import { testInFull } from './tier.mjs';
import { NotYet, stopwatch, until } from './wait.mjs';

/** Settings with which the same two people are matched again at once, without limits. */
const settings = {
  CONFAB_ROULETTE_REMATCH_WAIT: '1ms', CONFAB_ROULETTE_RETRY_INTERVAL: '10ms', CONFAB_ROULETTE_SKIP_WINDOW: '0s',
  CONFAB_LIMITS_REQUESTS_PER_SECOND: '1000',
};

/** Returns the events that must alternate. There may be `empty` events between them. */
const chats = (events) => events.filter(({ name }) => ['subscribe', 'disconnectPartner'].includes(name));

function assertEachOnce(events, rounds) {
  const expected = Array.from({ length: rounds }, () => ['subscribe', 'disconnectPartner']).flat();
  assert.deepEqual(chats(events).map(({ name }) => name), expected);
  const tokens = events.filter(({ name }) => name === 'subscribe').map(({ args }) => args[0].token);
  assert.equal(new Set(tokens).size, rounds, 'no invitation was received twice');
}

/** The partner leaves as soon as both are in a chat; then both request a partner. It requests automatically, like its kind. */
async function chatAndPart(partner, events, ask, rounds) {
  const arrives = (what, count) => until(`${what} arrives`, () => {
    if (chats(events).length >= count) return true;
    throw new NotYet(`the last events were ${events.slice(-4).map(({ name }) => name)}`);
  }, { why: () => `its partner's:\n${partner.explain()}` });
  for (let round = 1; round <= rounds; round += 1) {
    await ask();
    await Promise.all([arrives(`invitation ${round}`, 2 * round - 1), partner.wrote(/"subscribe"/, round)]);
    partner.part();
    await arrives(`the end of chat ${round}`, 2 * round);
  }
}

testInFull('polls canceled at any moment around an event lose and duplicate no event',
  'HostileTests SocketIOLossTests "nothing is lost, duplicated or reordered when polls are aborted"', async (t) => {
  const rounds = 60;
  const { port } = await serve(t, settings);
  const partner = await startPeer(t, port, 'ios');
  const poller = await Poller.arrive(port);
  t.after(() => poller.end());
  const events = [];
  // The timeout is short compared with the time between events, so most events arrive just as a poll ends.
  const polling = poller.run(() => Math.random() * 8, (event) => events.push(event));
  partner.next();
  const time = stopwatch();
  await chatAndPart(partner, events, () => poller.emit('next', {}), rounds);
  poller.end();
  await polling;
  assertEachOnce(events, rounds);
  const { answered, givenUp } = poller.polls;
  t.diagnostic(`${2 * rounds} events in ${time()}; ${answered} polls were answered and ${givenUp} given up`);
});

for (const transport of ['xhr-polling', 'jsonp-polling']) {
  testInFull(`Python's client on ${transport} loses nothing when it cancels polls`,
    'HostileTests SocketIOLossTests "a poll aborted after 3 s, as by Python’s client, loses nothing"', async (t) => {
    const rounds = 40;
    const { port } = await serve(t, settings);
    const [partner, peer] = await Promise.all([startPeer(t, port, 'ios'), startPeer(t, port, transport, { poll: 0.02 })]);
    const events = [];
    const collect = () => events.push(...peer.news.splice(0).map(({ event: name, args }) => ({ name, args })));
    await peer.hears('initial');
    const collecting = setInterval(collect, 1);
    t.after(() => clearInterval(collecting));
    partner.next();
    const time = stopwatch();
    await chatAndPart(partner, events, () => peer.next(), rounds);
    assertEachOnce(events, rounds);
    t.diagnostic(`${2 * rounds} events in ${time()}`);
  });
}
