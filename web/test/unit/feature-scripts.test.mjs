// The scripts of sessions, people, calls, roulette and rooms in `protocol/scripts`.
import { Calls } from '../../lib/people/calls.js';
import { People } from '../../lib/people/people.js';
import { Rooms } from '../../lib/rooms/rooms.js';
import { Roulette } from '../../lib/roulette/roulette.js';
import { SessionCore } from '../../lib/session/core.js';
import { fakeRtc } from './fake-rtc.mjs';
import { ScriptClient } from './script-client.mjs';
import { runScripts } from './script.mjs';

runScripts('people', () => {
  const client = new ScriptClient();
  const people = new People(/** @type {any} */ (client));
  const tell = (/** @type {any} */ item) => client.done.push(item);
  people.on({
    self: ({ name, ...self }) => tell({ self: name, ...self }),
    unlinked: () => tell({ unlinked: true }),
    deleted: () => tell({ deleted: true }),
    nearby: ({ people: rows, next }) => tell({ nearby: rows.map((/** @type {any} */ { name }) => name), next }),
    positionForgotten: () => tell({ positionForgotten: true }),
    contactAsked: ({ matchId, callId }) => tell({ asked: matchId ?? callId }),
    contactAdded: ({ person, matchId, callId }) => tell({ added: person.name, meeting: matchId ?? callId }),
    contactChanged: ({ person }) => tell({ changed: person.name, online: person.online }),
    contactRemoved: ({ personId }) => tell({ removed: personId }),
    error: ({ error }) => tell({ error: error.code }),
  });
  const methods = /** @type {Record<string, string>} */ ({ delete: 'deleteEverything', forget: 'forgetPosition' });
  return {
    done: client.done,
    state: () => people.self?.name ?? 'nobody',
    play(input, word) {
      client.welcome = { identity: input.identity };
      const ask = /** @type {any} */ (people)[methods[word] ?? word];
      if (!ask) return client.play(input, word);
      const { [word]: value, ...members } = input;
      return void ask.call(people, value === true ? members : value).catch((/** @type {any} */ { code }) => tell({ failed: code }));
    },
  };
});

runScripts('calls', (_, clock) => {
  const client = new ScriptClient();
  const calls = new Calls(/** @type {any} */ (client), new People(/** @type {any} */ (client)), { rtc: /** @type {any} */ (fakeRtc), clock });
  const watch = (/** @type {import('../../lib/people/call.js').Call} */ call) => call.on('ended', ({ outcome }) => client.done.push({ ended: call.id, outcome }));
  calls.on('incoming', (call) => {
    client.done.push({ incoming: call.id });
    watch(call);
  });
  const call = (/** @type {string} */ id) => /** @type {any} */ (calls.all.find((one) => one.id === id));
  const stateOf = (/** @type {any} */ { state, waiting }) => (state === 'placing' ? 'ringing' : state === 'incoming' && waiting ? 'waiting' : state);
  return {
    done: client.done,
    state: () => Object.fromEntries(calls.all.filter(({ id }) => id !== null).map((one) => [one.id, stateOf(one)])),
    play(input, word) {
      const ignore = () => {};
      switch (word) {
        case 'start': return void watch(calls.start(input.start, { video: input.video }));
        case 'accept': return void call(input.accept).accept({ video: input.video }).catch(ignore);
        case 'decline': return void call(input.decline).decline().catch(ignore);
        case 'end': return void call(input.end).end().catch(ignore);
        case 'update': return void call(input.update).setVideo(input.video).catch(ignore);
        case 'forget': return void calls.forget().catch(ignore);
        default: return client.play(input, word);
      }
    },
  };
});

runScripts('roulette', (_, clock) => {
  const client = new ScriptClient();
  const roulette = new Roulette(/** @type {any} */ (client), { rtc: /** @type {any} */ (fakeRtc), clock });
  const tell = (/** @type {any} */ item) => client.done.push(item);
  roulette.on({
    waiting: ({ retryAfterMs }) => tell({ waiting: true, retryAfterMs }),
    matched: ({ matchId }) => tell({ matched: matchId }),
    partner: ({ state }) => tell({ partner: state }),
    ended: ({ matchId, reason }) => tell({ ended: matchId, reason }),
    chat: ({ text, mine }) => tell({ chat: text, mine }),
    typing: ({ typing }) => tell({ typing }),
    noStream: () => tell({ noStream: true }),
    recovered: () => tell({ recovered: true }),
    error: ({ error }) => tell({ error: error.reason }),
  });
  return {
    done: client.done,
    state: () => roulette.state,
    play(input, word) {
      const ignore = () => {};
      switch (word) {
        case 'start': return void roulette.start({ mode: input.start, interests: input.interests }).catch(ignore);
        case 'next': return void roulette.next().catch(ignore);
        case 'stop': return void roulette.stop().catch(ignore);
        case 'report': return void roulette.report(input.report).catch(ignore);
        case 'block': return void roulette.block().catch(ignore);
        case 'typing': return roulette.setTyping(input.typing);
        default: return client.play(input, word);
      }
    },
  };
});

runScripts('rooms', (_, clock) => {
  const client = new ScriptClient();
  client.welcome = { connectionId: '0'.repeat(32) };
  const rooms = new Rooms(/** @type {any} */ (client), { rtc: /** @type {any} */ (fakeRtc), clock, random: () => 1 });
  const tell = (/** @type {any} */ item) => client.done.push(item);
  const entered = (/** @type {import('../../lib/rooms/room.js').Room} */ room) => {
    tell({ joined: room.name });
    for (const word of ['waiting', 'reconnecting', 'reconnected']) room.on(word, () => tell({ [word]: true }));
    room.on('ended', ({ reason }) => tell({ ended: reason }));
  };
  return {
    done: client.done,
    state: () => (rooms.room ? 'room' : 'none'),
    play({ ...input }, word) {
      const { room } = rooms;
      if (word === 'leave') return void rooms.leave().catch(() => {});
      if (word === 'chat') return void tell({ lines: room?.chat.length, characters: room?.chat.map(({ text }) => text).join('').length });
      if (word !== 'join') return client.play(input, word);
      const { join: name, ...members } = input;
      return void rooms.join({ name, ...members }, { onWaiting: () => tell({ waiting: true }) })
        .then(entered, ({ code }) => tell({ failed: 'join', code }));
    },
  };
});

runScripts('session', (_, clock) => {
  const client = new ScriptClient();
  const sessionId = '1_MX40NTAwMDAwMX5-MTc5MDAwMDAwMDAwMH5BUUlEQkFVR0J3Z0pBTGdWZjF3ekdGZnp-fn4';
  const { session } = new SessionCore('', sessionId, { client: /** @type {any} */ (client), rtc: /** @type {any} */ (fakeRtc), clock });
  const tell = (/** @type {any} */ item) => client.done.push(item);
  session.on({
    sessionConnected: () => tell({ connected: true }),
    sessionReconnecting: () => tell({ reconnecting: true }),
    sessionReconnected: () => tell({ reconnected: true }),
    sessionDisconnected: ({ reason }) => tell({ disconnected: reason }),
    connectionCreated: ({ connection }) => { if (connection !== session.connection) tell({ member: connection.connectionId }); },
    connectionDestroyed: ({ connection, reason }) => tell({ memberGone: connection.connectionId, reason }),
    streamCreated: ({ stream }) => tell({ stream: stream.streamId }),
    streamDestroyed: ({ stream, reason }) => tell({ streamGone: stream.streamId, reason }),
  });
  return {
    done: client.done,
    play(input, word) {
      if (word !== 'connect') return client.play(input, word);
      return void session.connect('token', (error) => { if (error) tell({ failed: 'join', code: error.reason }); });
    },
  };
});
