// Two to six relayed transports that each subscribe to all others, and the server between them, in simulated time. Every message to
// a member arrives in order, after delays that a seed decides. Members join, leave, rejoin under a new id, lose their connection to
// the server and resume it. The media between two members fails, and messages of a negotiation get lost.
import { RelayedTransport } from '../../lib/media/relayed.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';
import { camera, Sink } from './media-wire.mjs';

/** A member of the session, on one client connection. */
class Member {
  /** @type {Map<string, Sink>} by the id of the other member */
  sinks = new Map();
  /** @type {any[]} messages on their way from the server */
  inbox = [];
  isDropped = false;
  isDelivering = false;

  /** @param {string} id @param {RelayedTransport} transport */
  constructor(id, transport) {
    this.id = id;
    this.transport = transport;
  }

  get streamId() {
    return `stream-${this.id}`;
  }
}

export class MeshWire {
  clock = new FakeClock();
  /** @type {Map<string, Member>} */
  members = new Map();
  /** @type {unknown[]} */
  faults = [];
  /** The messages of negotiations that may still get lost. */
  losses = 0;
  lost = 0;

  /** @param {() => number} random */
  constructor(random) {
    FakePeerConnection.all = [];
    FakePeerConnection.network = true;
    this.random = random;
  }

  /** Adds a member. Its id is random, and so is which end of each pair is polite. */
  join() {
    const id = this.random().toString(16).slice(2, 10).padEnd(8, '0');
    const member = new Member(id, this.#transport(id));
    const others = [...this.members.values()];
    this.members.set(id, member);
    this.#tell(member, () => {
      member.transport.publish(member.streamId, camera());
      // The server knows the stream now, and announces it.
      for (const other of this.members.values()) if (other !== member) this.#announce(member, other);
    });
    for (const other of others) this.#announce(other, member);
    return member;
  }

  /** @param {Member} member */
  leave(member) {
    this.members.delete(member.id);
    member.transport.close();
    for (const other of this.members.values()) {
      this.#tell(other, () => {
        other.sinks.delete(member.id);
        other.transport.connectionDestroyed(member.id);
      });
    }
  }

  /** @param {Member} member */
  drop(member) {
    member.isDropped = true;
  }

  /** @param {Member} member */
  resume(member) {
    if (!member.isDropped) return;
    member.isDropped = false;
    member.transport.resumed();
    this.#deliver(member);
  }

  /** Every pair that does not see each other, as text. */
  get missing() {
    const missing = [];
    for (const one of this.members.values()) {
      for (const other of this.members.values()) {
        if (one === other) continue;
        const sink = one.sinks.get(other.id);
        const state = sink?.states.at(-1) ?? 'no state';
        const kinds = sink?.media?.getTracks().length ?? 0;
        if (sink?.media?.id !== other.streamId || kinds !== 2 || state !== 'connected') {
          missing.push(`${one.id} sees of ${other.id}: ${sink?.media?.id ?? 'nothing'}, ${kinds} tracks, ${state}`);
        }
      }
    }
    return missing;
  }

  /** @param {Member} of @param {Member} to the member that learns of the stream, and subscribes to it */
  #announce(of, to) {
    this.#tell(to, () => {
      if (this.members.get(of.id) !== of || to.sinks.has(of.id)) return;
      const sink = new Sink();
      to.sinks.set(of.id, sink);
      to.transport.subscribe(of.streamId, of.id, sink);
      const message = { type: 'session.subscribed', streamId: of.streamId, connectionId: to.id, audio: true, video: true };
      this.#tell(of, () => of.transport.receive(message));
    });
  }

  /** @param {Member} member @param {() => void} receive */
  #tell(member, receive) {
    member.inbox.push(receive);
    this.#deliver(member);
  }

  /**
   * Delivers the messages to a member one after the other.
   * @param {Member} member
   */
  #deliver(member) {
    if (member.isDelivering || member.isDropped || member.inbox.length === 0) return;
    member.isDelivering = true;
    this.clock.setTimeout(() => {
      member.isDelivering = false;
      // They wait until the member resumes. Those to a member who left are lost.
      if (member.isDropped) return;
      const receive = member.inbox.shift();
      if (this.members.get(member.id) === member) receive();
      this.#deliver(member);
    }, this.random() * 40);
  }

  /** @param {string} id */
  #transport(id) {
    return new RelayedTransport({
      connectionId: id, clock: this.clock, rtc: fakeRtc,
      failed: (error) => this.faults.push(error),
      configuration: async () => ({ iceServers: [] }),
      request: async (type, { to, ...payload }) => {
        if (type !== 'session.negotiate') return;
        const target = this.members.get(String(to));
        const sender = this.members.get(id);
        if (!target || !sender) throw Object.assign(new Error('gone'), { code: 'not_found' });
        if (this.losses > 0 && this.random() < 0.3) {
          this.losses -= 1;
          this.lost += 1;
          if (this.random() < 0.5) throw Object.assign(new Error('not now'), { code: 'not_permitted' });
          return;
        }
        const message = JSON.parse(JSON.stringify({ type, from: id, ...payload }));
        this.#tell(target, () => target.transport.receive(message));
      },
    });
  }

  /**
   * Lets this much time pass.
   * @param {number} ms
   */
  async pass(ms) {
    await this.clock.advance(ms);
    await settled();
  }
}
