// One address opens TLS connections as fast as it can, and closes each after the handshake. Another address sends requests on
// one WebSocket meanwhile, and before. The requests are sent by another process than the handshakes, so that their delay is the
// server's. Prints one JSON object.
//
//   node handshakes.js PORT SECONDS
'use strict';

const { fork } = require('child_process');
const os = require('os');
const tls = require('tls');
const WebSocket = require('ws');

const [port, seconds, role] = process.argv.slice(2);
const atOnce = 50;
// Fewer than the requests per second that one connection may send.
const interval = 60;

/** Opens connections until the time is over. */
function attack() {
  // The requests must not wait for this process if both have one core.
  os.setPriority(19);
  const end = Date.now() + seconds * 1000;
  const counts = { handshakes: 0, refused: 0 };
  let open = 0;
  let isReported = false;
  const next = () => {
    if (Date.now() >= end) {
      if (open === 0 && !isReported) {
        isReported = true;
        process.send(counts);
        process.disconnect();
      }
      return;
    }
    open += 1;
    let isDone = false;
    const socket = tls.connect({ host: '127.0.0.1', port, localAddress: '127.0.0.2', rejectUnauthorized: false });
    const ended = (isRefused) => {
      if (isDone) return;
      isDone = true;
      open -= 1;
      counts[isRefused ? 'refused' : 'handshakes'] += 1;
      socket.destroy();
      // A refused connection is not tried again at once, which would only measure this process.
      if (isRefused) setTimeout(next, 10);
      else setImmediate(next);
    };
    socket.setTimeout(10_000, () => ended(true));
    socket.once('secureConnect', () => ended(false));
    socket.once('error', () => ended(true));
    socket.once('close', () => ended(true));
  };
  for (let count = 0; count < atOnce; count += 1) next();
}

/** Sends requests for some time, and returns their delays in milliseconds. */
function ask(socket, state, time) {
  return new Promise((resolve) => {
    const delays = [];
    const end = Date.now() + time;
    const next = () => {
      if (Date.now() >= end) {
        resolve(delays.sort((a, b) => a - b));
        return;
      }
      const began = process.hrtime.bigint();
      state.seq += 1;
      state.onAnswer = () => {
        delays.push(Number(process.hrtime.bigint() - began) / 1e6);
        setTimeout(next, interval);
      };
      socket.send(JSON.stringify({ type: 'roulette.count', seq: state.seq, ack: state.received }));
    };
    next();
  });
}

function measure() {
  const url = `wss://127.0.0.1:${port}/v1/socket`;
  const socket = new WebSocket(url, 'confab.v1', { localAddress: '127.0.0.3', rejectUnauthorized: false });
  const state = { seq: 0, received: 0, onAnswer: () => {} };
  const fail = (reason) => {
    console.error(`the measuring connection failed: ${reason}`);
    process.exit(1);
  };
  socket.on('error', (error) => fail(error.message));
  socket.on('close', (code) => fail(`closed with ${code}`));
  socket.on('open', () => socket.send(JSON.stringify({ type: 'hello', version: 1 })));
  socket.on('message', async (data) => {
    const message = JSON.parse(data);
    if (message.seq) state.received = message.seq;
    if (message.type === 'error') fail(message.message);
    if (message.re === state.seq) state.onAnswer();
    if (message.type !== 'welcome') return;
    const before = await ask(socket, state, (seconds * 1000) / 2);
    const attacker = fork(__filename, [port, seconds, 'attack']);
    const counts = new Promise((resolve) => attacker.once('message', resolve));
    const during = await ask(socket, state, seconds * 1000);
    const { handshakes, refused } = await counts;
    const share = (delays, quantile) => delays[Math.min(delays.length - 1, Math.floor(delays.length * quantile))].toFixed(2);
    console.log(
      JSON.stringify({
        handshakes: String(Math.round(handshakes / seconds)),
        refused: String(Math.round(refused / seconds)),
        unloadedMedian: share(before, 0.5),
        unloaded99: share(before, 0.99),
        loadedMedian: share(during, 0.5),
        loaded99: share(during, 0.99),
        loadedLongest: share(during, 1),
      }),
    );
    process.exit(0);
  });
}

if (role === 'attack') attack();
else measure();
