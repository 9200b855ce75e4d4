// The reference for the relay benchmark: a server on Debian's `ws` that handles `session.signal` as the protocol
// requires. It parses JSON, checks every JSON member, tracks which connections are in which session, numbers and
// acknowledges messages, relays signals to all connections in the session, and responds with `ok`. It does not support
// resume, budgets, roulette or storage.
//
//   NODE_PATH=/usr/share/nodejs node relay.js SECRET     prints "ready PORT" once it listens
'use strict';

const { createHmac, randomBytes, timingSafeEqual } = require('crypto');
const { WebSocketServer } = require('ws');

const secret = process.argv[2];
const pingMs = 10000;
const missedPings = 3;
const limits = { message: 64 * 1024, description: 256 * 1024, interests: 10, signal: 8 * 1024 };

/** A map from session id to the session's connections, in the order in which they joined. */
const sessions = new Map();

class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const malformed = (name, expected) => new Refusal('malformed', `The member "${name}" must be ${expected}.`);

function string(message, name, max) {
  const value = message[name];
  if (typeof value !== 'string' || Buffer.byteLength(value) > max) throw malformed(name, `a string of at most ${max} bytes`);
  return value;
}

const optionalString = (message, name, max) =>
  message[name] === undefined || message[name] === null ? undefined : string(message, name, max);

function integer(message, name, least) {
  const value = message[name];
  if (!Number.isSafeInteger(value) || value < least) throw malformed(name, `an integer from ${least}`);
  return value;
}

function sessionId(message) {
  const id = string(message, 'sessionId', 255);
  if (!/^[A-Za-z0-9_-]+$/.test(id)) throw malformed('sessionId', 'a session id');
  return id;
}

function verifyToken(token, id) {
  const parts = token.split('.');
  if (parts.length !== 3) throw new Refusal('token_malformed', 'This is not a token.');
  const mac = createHmac('sha256', secret).update(`${parts[0]}.${parts[1]}`).digest();
  const given = Buffer.from(parts[2], 'base64url');
  if (given.length !== mac.length || !timingSafeEqual(given, mac)) {
    throw new Refusal('token_signature', 'The token was not signed with this project\'s secret. Sign it with that secret.');
  }
  const claims = JSON.parse(Buffer.from(parts[1], 'base64url').toString());
  if (claims.session_id !== id) throw new Refusal('token_session', 'The token is for another session. Create one for this session.');
  if (!(claims.exp > Date.now() / 1000)) throw new Refusal('token_expired', 'The token has expired.');
  return claims;
}

class Connection {
  constructor(socket) {
    this.socket = socket;
    this.id = null;
    this.joined = new Map();
    this.received = 0;
    this.sent = 0;
    this.acknowledged = 0;
    this.unanswered = 0;
  }

  /** Sends a message with its number and an acknowledgment, as the protocol requires. */
  send(type, members) {
    this.sent += 1;
    this.socket.send(JSON.stringify({ type, seq: this.sent, ack: this.received, ...members }));
  }

  fail(error, re) {
    this.send('error', { code: error.code, message: error.message, retryable: false, re });
  }

  receive(text) {
    this.unanswered = 0;
    const message = JSON.parse(text);
    if (message === null || typeof message !== 'object' || Array.isArray(message)) throw malformed('', 'an object');
    const type = string(message, 'type', 256);
    if (this.id === null) return this.greet(type, message);
    if (message.ack !== undefined) {
      const ack = integer(message, 'ack', 0);
      if (ack > this.acknowledged && ack <= this.sent) this.acknowledged = ack;
    }
    if (type === 'ack') return;
    if (type === 'ping') return this.socket.send(JSON.stringify({ type: 'pong', ack: this.received }));
    const seq = integer(message, 'seq', 1);
    if (seq <= this.received) return;
    if (seq !== this.received + 1) throw new Refusal('out_of_order', 'Number messages without gaps.');
    this.received = seq;
    try {
      this.perform(type, message, seq);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.fail(error, seq);
    }
  }

  greet(type, message) {
    if (type !== 'hello') throw new Refusal('hello_expected', 'Say hello first.');
    if (integer(message, 'version', 1) !== 1) throw new Refusal('version_unsupported', 'Reload the page.');
    this.id = randomBytes(16).toString('hex');
    this.socket.send(JSON.stringify({
      type: 'welcome', version: 1, server: 'peer', connectionId: this.id, resumed: false, received: 0,
      resume: { secret: '', graceMs: 0 }, pingMs, ice: { servers: [], relayOnly: false, expiresAt: null }, limits,
      state: { sessions: [], roulette: { state: 'idle' } },
    }));
  }

  perform(type, message, re) {
    switch (type) {
      case 'session.join': return this.join(message, re);
      case 'session.signal': return this.signal(message, re);
      default: throw new Refusal('unknown_type', `This server does not support the message "${type.slice(0, 64)}".`);
    }
  }

  join(message, re) {
    const id = sessionId(message);
    const { role } = verifyToken(string(message, 'token', 8192), id);
    if (this.joined.has(id)) throw new Refusal('already_joined', 'This connection has already joined the session.');
    const members = sessions.get(id) ?? [];
    sessions.set(id, members);
    const connection = { connectionId: this.id, createdAt: Date.now(), data: '' };
    this.send('session.joined', {
      re, sessionId: id, connectionId: this.id, connection, mediaMode: 'relayed',
      capabilities: {
        publish: true, subscribe: true, signal: role === 'publisher' || role === 'moderator',
        forceDisconnect: role === 'moderator', forceUnpublish: role === 'moderator', forceMute: role === 'moderator',
      },
      connections: members.map((member) => member.connection), streams: [], muted: false,
    });
    for (const member of members) member.to.send('session.connectionCreated', { sessionId: id, connection });
    members.push({ to: this, connection });
    this.joined.set(id, { members, maySignal: role === 'publisher' || role === 'moderator' });
  }

  signal(message, re) {
    const id = sessionId(message);
    const signalType = optionalString(message, 'signalType', limits.message);
    const data = optionalString(message, 'data', limits.message);
    const to = optionalString(message, 'to', 32);
    const session = this.joined.get(id);
    if (session === undefined) throw new Refusal('not_joined', 'Join the session first (session.join).');
    if (!session.maySignal) throw new Refusal('not_permitted', 'The token\'s role does not allow signaling.');
    if (signalType !== undefined && !/^[A-Za-z0-9_~-]{0,128}$/.test(signalType)) {
      throw new Refusal('signal_invalid', 'A signal\'s type must have at most 128 characters. Letters (A-Z, a-z), digits, "-", "_" and "~" are allowed.');
    }
    if (data !== undefined && Buffer.byteLength(data) > limits.signal) {
      throw new Refusal('signal_too_large', 'Split it.');
    }
    const event = { sessionId: id, from: this.id, signalType, data };
    let members = session.members;
    if (to !== undefined) {
      members = members.filter((member) => member.to.id === to);
      if (members.length === 0) throw new Refusal('not_found', 'The other connection is no longer in the session. Choose one that still is.');
    }
    for (const member of members) member.to.send('session.signal', event);
    this.send('ok', { re });
  }

  leave() {
    for (const [id, { members }] of this.joined) {
      const index = members.findIndex((member) => member.to === this);
      if (index >= 0) members.splice(index, 1);
      if (members.length === 0) sessions.delete(id);
      for (const member of members) {
        member.to.send('session.connectionDestroyed', {
          sessionId: id, connectionId: this.id, reason: 'clientDisconnected',
        });
      }
    }
    this.joined.clear();
  }
}

const connections = new Set();
const server = new WebSocketServer({
  host: '127.0.0.1', port: 0, path: '/v1/socket', maxPayload: limits.description, perMessageDeflate: false, backlog: 1024,
  handleProtocols: (protocols) => (protocols.has('confab.v1') ? 'confab.v1' : false),
});

server.on('connection', (socket) => {
  const connection = new Connection(socket);
  connections.add(connection);
  socket.on('message', (data, isBinary) => {
    try {
      if (isBinary) return socket.close(1003, 'only text messages are supported');
      connection.receive(data.toString());
    } catch (error) {
      socket.close(4400, error.code ?? 'malformed');
    }
  });
  socket.on('pong', () => { connection.unanswered = 0; });
  socket.on('error', () => {});
  socket.on('close', () => {
    connections.delete(connection);
    connection.leave();
  });
});

setInterval(() => {
  for (const connection of connections) {
    if (connection.unanswered >= missedPings) {
      connection.socket.terminate();
    } else {
      connection.unanswered += 1;
      connection.socket.ping();
    }
  }
}, pingMs);

server.on('listening', () => console.log(`ready ${server.address().port}`));
