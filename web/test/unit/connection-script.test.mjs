// The scripts of `protocol/scripts/connection.json`, played by a `Client` on sockets that the script opens and closes.
import { Client } from '../../lib/signaling/client.js';
import { runScripts } from './script.mjs';

/** Messages without a number. */
const unnumbered = ['welcome', 'error', 'ack', 'pong'];

runScripts('connection', (settings, clock) => {
  /** @type {any[]} */
  const done = [];
  /** @type {any} the newest socket */
  let socket;
  let [seq, requests] = [0, 0];
  class ScriptSocket {
    readyState = 0;
    /** @param {string} url */
    constructor(url) {
      socket = this;
      done.push({ open: true, at: new URL(url).searchParams.get('at') ?? undefined });
    }

    /** @param {string} text */
    send(text) {
      const { type, ...members } = JSON.parse(text);
      done.push({ send: type, ...members });
    }

    /** @param {number} code */
    close(code) {
      this.readyState = 3;
      done.push({ close: code });
    }
  }
  const page = new EventTarget();
  const client = new Client({ url: 'ws://test/v1/socket', WebSocket: /** @type {any} */ (ScriptSocket), clock, random: () => 1, page, ...settings });
  client.on({
    connected: ({ resumed }) => done.push({ connected: resumed ? 'resumed' : 'first' }),
    reconnecting: () => done.push({ reconnecting: true }),
    expired: () => done.push({ expired: true }),
    restarted: () => {
      // A welcome that starts again is one event in the scripts.
      const index = done.findIndex((item) => item.connected);
      done[index] = { connected: 'restarted' };
      if (done[index - 1]?.expired) done.splice(index - 1, 1);
    },
    closed: ({ code, error }) => done.push({ ended: code, error: error?.code }),
    message: ({ type, re }) => { if (re === undefined) done.push({ event: type }); },
  });
  return {
    done,
    play(input, word) {
      switch (word) {
        case 'connect': return void client.connect().catch(() => {});
        case 'leave': return client.leave();
        case 'network': return void page.dispatchEvent(new Event('online'));
        case 'opens':
          socket.readyState = 1;
          return socket.onopen();
        case 'closes':
          socket.readyState = 3;
          return socket.onclose({ code: input.closes });
        case 'text': return socket.onmessage({ data: input.text });
        case 'request': {
          const { request, ...members } = input;
          const number = requests += 1;
          return void client.request(request, members).then(
            ({ type }) => done.push({ answered: number, type }), ({ code, retryable }) => done.push({ failed: number, code, retryable }));
        }
        default: {
          const sent = { ...input.server };
          if (sent.type === 'welcome' && !sent.resumed) seq = 0;
          if (!unnumbered.includes(sent.type) && sent.seq === undefined) sent.seq = seq += 1;
          return socket.onmessage({ data: JSON.stringify(sent) });
        }
      }
    },
  };
});
