// Receives webhooks for the benchmark `outbox`, and checks that the numbers of each session rise.
//
//   node receiver.js PORT EVENTS
//
// Prints `complete` when all events have arrived.
'use strict';

const http = require('node:http');

const [port, events] = process.argv.slice(2).map(Number);
const last = new Map();
const seen = new Set();

http.createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const { sessionId, number } = JSON.parse(Buffer.concat(pieces));
    response.end('ok');
    if (number < (last.get(sessionId) ?? -1)) {
      console.log(`reordered: ${number} of ${sessionId}`);
      process.exit(1);
    }
    last.set(sessionId, number);
    seen.add(number);
    if (seen.size === events) console.log('complete');
  });
}).listen(port, '127.0.0.1', () => console.log('ready'));
