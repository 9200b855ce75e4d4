// Two relayed transports and the server between them, for tests of only the negotiation. Messages arrive in order, with delays
// that depend on a seed.
import { RelayedTransport } from '../../lib/media/relayed.js';
import { FakeClock, settled } from './fake-clock.mjs';
import { FakeTrack } from './fake-page.mjs';
import { FakePeerConnection, fakeRtc } from './fake-rtc.mjs';

/** The sink of a subscriber. */
export class Sink {
  /** @type {any} */
  media = null;
  /** @type {string[]} */
  states = [];

  /** @param {any} media */
  mediaArrived(media) {
    this.media = media;
  }

  /** @param {string} state */
  mediaChanged(state) {
    this.states.push(state);
  }
}

export const camera = () => {
  const tracks = [new FakeTrack('audio'), new FakeTrack('video')];
  return { tracks: () => /** @type {any[]} */ (tracks) };
};

export class MediaWire {
  clock = new FakeClock();
  /** @type {unknown[]} */
  faults = [];
  /** @type {{from: string, message: any}[]} all messages */
  carried = [];
  /** @type {any[]} other messages that the server received */
  said = [];
  /** @type {Record<string, (() => void)[]>} in transit to each end, in order */
  flying = { a: [], b: [] };
  configurations = 0;
  /** @type {(message: any) => Error | null} */
  refuse = () => null;

  /** @param {() => number} [random] decides which end receives next; default: messages arrive at once */
  constructor(random) {
    FakePeerConnection.all = [];
    FakePeerConnection.network = true;
    this.random = random;
    this.ends = { a: this.#end('a', 'b'), b: this.#end('b', 'a') };
  }

  /** @param {'a' | 'b'} to @param {any} message */
  tell(to, message) {
    this.flying[to].push(() => this.ends[to].receive(message));
    if (!this.random) queueMicrotask(() => this.flying[to].shift()?.());
  }

  /** Runs until nothing is in transit. */
  async run() {
    for (let idle = 0; idle < 3;) {
      await settled();
      const waiting = Object.values(this.flying).filter((queue) => queue.length > 0);
      idle = waiting.length === 0 ? idle + 1 : 0;
      waiting[Math.floor((this.random?.() ?? 0) * waiting.length)]?.shift()?.();
    }
  }

  /**
   * Runs only some steps.
   * @param {number} steps
   */
  async walk(steps) {
    for (let step = 0; step < steps; step += 1) {
      await settled();
      const waiting = Object.values(this.flying).filter((queue) => queue.length > 0);
      waiting[Math.floor((this.random?.() ?? 0) * waiting.length)]?.shift()?.();
    }
  }

  /**
   * `from` subscribes to a stream of the other end.
   * @param {'a' | 'b'} from
   * @param {string} streamId
   */
  subscribe(from, streamId, { audio = true, video = true } = {}) {
    const other = /** @type {'a' | 'b'} */ (from === 'a' ? 'b' : 'a');
    const sink = new Sink();
    this.ends[from].subscribe(streamId, other, sink);
    this.tell(other, { type: 'session.subscribed', streamId, connectionId: from, audio, video });
    return sink;
  }

  /** @param {'a' | 'b'} from @param {string} streamId @param {Sink} sink */
  unsubscribe(from, streamId, sink) {
    this.ends[from].unsubscribe(streamId, sink);
    this.tell(from === 'a' ? 'b' : 'a', { type: 'session.unsubscribed', streamId, connectionId: from });
  }

  /** @param {'a' | 'b'} own @param {'a' | 'b'} other */
  #end(own, other) {
    return new RelayedTransport({
      connectionId: own, clock: this.clock, rtc: fakeRtc,
      failed: (error) => this.faults.push(error),
      configuration: async () => ({ iceServers: [{ urls: `stun:${this.configurations += 1}` }] }),
      request: async (type, { to, ...payload }) => {
        if (type !== 'session.negotiate') return this.said.push({ from: own, type, to, ...payload });
        const refusal = this.refuse(payload);
        if (refusal) throw refusal;
        this.carried.push({ from: own, message: payload });
        this.tell(other, JSON.parse(JSON.stringify({ type, from: own, ...payload })));
      },
    });
  }
}
