// A result of a check in which everything works.

/** @type {import('../../lib/check/verdicts.js').Flow} */
export const fineFlow = { loss: 0, jitterMs: 4, kbit: 1480, isLimited: false };

/** @type {import('../../lib/check/verdicts.js').Measurements} */
export const fineResult = {
  at: 1_790_000_000_000, host: 'chat.example.org', browser: 'Chrome 156', camera: 'works', microphone: 'works', speakers: 'heard', server: 'works', udp: 'works', tcp: 'works',
  turn: 'works', relay: 'tls', address: '203.0.113.7:40000', quality: 'measured', path: 'udp', up: fineFlow, down: fineFlow, roundTripMs: 23,
};
