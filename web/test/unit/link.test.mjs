import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Link, replayLargeBytes, replayMessages } from '../../lib/signaling/link.js';
import { seeded } from './random.mjs';

/** @param {number} number */
const body = (number) => ({ type: 'session.signal', number });

describe('Link', () => {
  test('limits its buffer in bytes, but always keeps the newest message', () => {
    const link = new Link();
    link.send(body(1));
    const large = { type: 'session.negotiate', description: 'x'.repeat(2 * replayLargeBytes) };
    assert.equal(link.hasRoom(large), false);
    link.send(large);
    assert.equal(link.replay(0), null);
    assert.equal(link.replay(1)?.length, 1);
  });
});

/** One end of a connection, and the messages that it delivered. */
class End {
  link = new Link();
  /** @type {number[]} */
  delivered = [];
  sent = 0;
}

/** Two ends on sockets that lose, duplicate, delay and break, until both are quiet. */
class World {
  ends = [new End(), new End()];
  /** @type {any[][]} messages in transit to each end, in order */
  flying = [[], []];
  isBroken = false;
  isLost = false;

  /** @param {() => number} random */
  constructor(random) {
    this.random = random;
  }

  /** @param {number} from */
  send(from) {
    const end = this.ends[from];
    const message = end.link.send(body(end.sent += 1));
    if (!this.isBroken) this.fly(1 - from, message);
  }

  /** @param {number} to @param {any} message */
  fly(to, message) {
    const luck = this.random();
    if (luck < 0.03) return;
    this.flying[to].push(message);
    if (luck > 0.95) this.flying[to].push(message);
  }

  /** @param {number} to */
  arrive(to) {
    const message = this.flying[to].shift();
    if (!message) return;
    const { link, delivered } = this.ends[to];
    link.acknowledged(message.ack);
    if (message.seq === undefined) return;
    const verdict = link.receive(message.seq);
    if (verdict === 'deliver') delivered.push(message.number);
    if (verdict === 'gap') this.break();
    else if (link.unacknowledgedReceipts >= 32) this.fly(1 - to, { ack: link.acknowledge() });
  }

  break() {
    this.flying = [[], []];
    this.isBroken = true;
  }

  /** Exchanges the received numbers, like hello and welcome. */
  resume() {
    const [client, server] = this.ends;
    const [toServer, toClient] = [client.link.replay(server.link.received), server.link.replay(client.link.received)];
    if (!toServer || !toClient) {
      this.isLost = true;
      return;
    }
    this.isBroken = false;
    for (const message of toServer) this.fly(1, message);
    for (const message of toClient) this.fly(0, message);
  }

  /** @param {number} messages */
  run(messages) {
    while (!this.isLost && this.ends.some(({ sent }) => sent < messages)) this.step(messages);
    // If the final message is lost, only another message or a break reveals the loss.
    while (!this.isLost && !this.isQuiet()) {
      this.break();
      this.resume();
      while (!this.isBroken && !this.isLost && this.flying.some((queue) => queue.length > 0)) this.arrive(this.random() < 0.5 ? 0 : 1);
    }
  }

  /** @param {number} messages */
  step(messages) {
    const luck = this.random();
    const side = this.random() < 0.5 ? 0 : 1;
    if (this.isBroken && luck < 0.2) this.resume();
    else if (luck < 0.45 && this.ends[side].sent < messages) this.send(side);
    else if (luck < 0.99) this.arrive(side);
    else this.break();
  }

  isQuiet() {
    return this.ends.every(({ sent }, side) => this.ends[1 - side].delivered.length === sent);
  }
}

describe('Two links over bad sockets', () => {
  test('lose nothing and duplicate nothing', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const world = new World(seeded(seed));
      world.run(200);
      const expected = Array.from({ length: 200 }, (_, index) => index + 1);
      assert.equal(world.isLost, false, `seed ${seed}`);
      for (const { delivered } of world.ends) assert.deepEqual(delivered, expected, `seed ${seed}`);
    }
  });

  test('report a loss when more was sent than is kept, and deliver nothing after it', () => {
    for (let seed = 1; seed <= 50; seed += 1) {
      const world = new World(seeded(seed));
      world.break();
      for (let number = 0; number <= replayMessages; number += 1) world.send(0);
      world.resume();
      assert.equal(world.isLost, true, `seed ${seed}`);
      assert.deepEqual(world.ends[1].delivered, []);
    }
  });
});
