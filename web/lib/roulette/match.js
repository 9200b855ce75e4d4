// One match: its one or two sessions, the streams published and subscribed to in them, and the chat. Invariant: after `end`,
// the match emits no events and nothing keeps running, no matter what was pending.

import { systemClock, Timers } from '../clock.js';
import { ConfabError, otError } from '../errors.js';
import { SessionCore } from '../session/core.js';
import { sourceOf } from '../session/publisher.js';
import { nodeURL } from '../signaling/socket.js';
import { Sampler, sendSample } from './sampler.js';
import { TypingReceiver, TypingSender } from './typing.js';

/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/** @typedef {import('../session/subscriber.js').Subscriber} Subscriber */
/** @typedef {import('../session/roster.js').Stream} Stream */

/**
 * How long to wait for video before reporting that there is none (milliseconds; protocol §5). The server may set
 * another value.
 */
const streamMs = 10_000;

/**
 * @typedef {object} MatchOptions
 * @property {Element | ((stream: Stream) => Element) | string} [subscriberTarget] where to show the partner's stream
 * @property {import('../session/subscriber-types.js').SubscriberOptions} [subscriberOptions]
 * @property {import('../media/peer.js').Rtc} [rtc]
 * @property {import('../clock.js').Clock} [clock]
 * @property {() => boolean} [allowsSamples] whether the person has agreed that samples of their camera are sent to the server, whose operator
 *   checks video chats (`welcome.sampling` of the client says whether and how often). Asked before each sample. Without this option, no
 *   sample is taken or sent, and the person can chat all the same. Mention the check in the rules that the person agrees to
 * @property {(url: string, token: string, sample: Blob, signal: AbortSignal) => Promise<unknown>} [sendSample] sends a sample of the user's camera;
 *   tests replace it
 */

export class Match {
  #options;
  #tell;
  #timers;
  /** @type {SessionCore} the session in which we publish */
  #ours;
  /** @type {SessionCore} the session in which we subscribe and chat, usually the same one */
  #theirs;
  #admissions;
  #typing;
  #streamTimeout;
  /** @type {Sampler | null} null if the server checks no samples */
  #sampler = null;
  #partnerTyping;
  /** @type {Publisher | null} */
  #publisher;
  #over = false;
  /**
   * The most recent subscriber of the partner's stream; null before there is a stream, and after `end`.
   * @type {Subscriber | null}
   */
  subscriber = null;

  /**
   * @param {import('../signaling/messages.js').Matched} matched
   * @param {import('../signaling/client.js').Client} client
   * @param {Publisher | null} publisher
   * @param {MatchOptions} options
   * @param {(name: string, payload: object) => void} tell
   */
  constructor(matched, client, publisher, options, tell) {
    this.matchId = matched.matchId;
    this.mode = matched.mode;
    this.partner = matched.partner;
    this.textChat = matched.textChat;
    this.#options = options;
    this.#publisher = publisher;
    this.#streamTimeout = client.welcome?.limits?.streamTimeoutMs ?? streamMs;
    this.#tell = (/** @type {string} */ name, /** @type {object} */ payload) => { if (!this.#over) tell(name, payload); };
    const clock = options.clock ?? systemClock;
    this.#timers = new Timers(clock);
    const { publish, subscribe } = this.#admissions = matched;
    this.#sampler = this.#makeSampler(client);
    const shared = { client, rtc: options.rtc, clock: options.clock };
    const make = (/** @type {string} */ sessionId) => new SessionCore('', sessionId, shared);
    this.#ours = make(publish.sessionId);
    this.#theirs = publish.sessionId === subscribe.sessionId ? this.#ours : make(subscribe.sessionId);
    this.#typing = new TypingSender((typing) => {
      this.#theirs.session.signal({ type: 'typing', data: typing ? '1' : '0', retryAfterReconnect: false });
    }, clock);
    this.#partnerTyping = new TypingReceiver((typing) => this.#tell('typing', { typing }), this.#timers);
  }

  begin() {
    this.#theirs.session.on('streamCreated', (/** @type {any} */ { stream }) => this.#watch(stream));
    // Wait for the default action, which removes the old video.
    this.#theirs.session.on('streamDestroyed', () => queueMicrotask(() => this.#watchAnother()));
    this.#theirs.session.on('signal:chat', (/** @type {any} */ { data, from }) => this.#heard(data, from));
    this.#theirs.session.on('signal:typing', (/** @type {any} */ { data, from }) => {
      if (from !== this.#theirs.session.connection) this.#partnerTyping.heard(data === '1');
    });
    const streamTimeout = this.#streamTimeout;
    if (this.mode === 'video') this.#timers.set('stream', streamTimeout, () => this.#tell('noStream', { matchId: this.matchId }));
    const { publish, subscribe } = this.#admissions;
    this.#join(this.#ours, publish.token);
    this.#publish();
    if (this.#theirs !== this.#ours) this.#join(this.#theirs, subscribe.token);
    this.#sampler?.begin();
  }

  /** @param {Publisher | null} publisher */
  usePublisher(publisher) {
    if (this.#publisher === publisher) return;
    if (this.#publisher) this.#ours.session.unpublish(this.#publisher);
    this.#publisher = publisher;
    this.#publish();
  }

  /** @param {string} text @returns {Promise<void>} */
  sendChat(text) {
    if (!this.textChat) {
      const message = 'Your partner’s app has no text chat. Use audio, or search for the next partner.';
      return Promise.reject(new ConfabError({ code: 'not_permitted', message }));
    }
    this.#typing.finished();
    return new Promise((resolve, reject) => {
      this.#theirs.session.signal({ type: 'chat', data: text }, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** @param {boolean} typing */
  setTyping(typing) {
    if (this.textChat && this.#theirs.session.isConnected()) this.#typing.set(typing);
  }

  /** @param {boolean} isLost whether the server no longer has the match, so that `session.leave` need not be sent */
  end(isLost) {
    if (this.#over) return;
    this.#over = true;
    this.#timers.clearAll();
    this.#sampler?.end();
    for (const core of new Set([this.#ours, this.#theirs])) {
      if (isLost) core.end('networkDisconnected');
      else core.disconnect();
    }
    this.subscriber = null;
  }

  /** @param {import('../signaling/client.js').Client} client */
  #makeSampler(client) {
    const { sampling, at } = client.welcome ?? {};
    if (!sampling || this.mode !== 'video') return null;
    const { clock = systemClock, sendSample: send = sendSample, allowsSamples = () => false } = this.#options;
    return new Sampler({
      sampling, clock, isAllowed: allowsSamples,
      frame: async (width, quality) => (this.#publisher ? sourceOf(this.#publisher).frame(width, quality) : null),
      send: (sample, signal) => {
        const url = client.urlOf('/v1/roulette/sample');
        return send(at === undefined ? url : nodeURL(url, at), this.#admissions.publish.token, sample, signal);
      },
    });
  }

  /** @param {SessionCore} core @param {string} token */
  #join({ session }, token) {
    session.connect(token, (error) => { if (error) this.#failed(error); });
  }

  #publish() {
    const publisher = this.#publisher;
    if (this.#over || !publisher || this.mode !== 'video') return;
    this.#ours.publications.beginEarly(publisher, (error) => {
      // If the publisher was removed before the camera was ready, this is not an error.
      if (error && this.#publisher === publisher) this.#failed(error);
    });
  }

  /** @param {Stream} stream */
  #watch(stream) {
    // In a text chat, only a modified client publishes. Do not subscribe, because a peer connection would reveal this
    // person's IP address to it. In a video chat, show one video at a time.
    if (this.#over || this.mode !== 'video' || this.#theirs.session.getSubscribersForStream(this.subscriber?.stream).length > 0) return;
    const { subscriberTarget, subscriberOptions } = this.#options;
    const target = typeof subscriberTarget === 'function' ? subscriberTarget(stream) : subscriberTarget;
    const ended = (/** @type {ConfabError | undefined} */ error) => {
      if (error && error.name !== 'OT_STREAM_DESTROYED') this.#failed(error);
    };
    const subscriber = this.#theirs.session.subscribe(stream, target, { label: 'Partner', ...subscriberOptions }, ended);
    this.subscriber = subscriber;
    subscriber.once('connected', () => this.#timers.clear('stream'));
    this.#tell('subscriber', { subscriber });
  }

  #watchAnother() {
    const another = this.#theirs.othersStream;
    if (another) this.#watch(another);
  }

  /** @param {string | undefined} data @param {unknown} from */
  #heard(data, from) {
    const mine = from === this.#theirs.session.connection;
    if (!mine) this.#partnerTyping.heard(false);
    this.#tell('chat', { text: data ?? '', mine });
  }

  /** @param {ConfabError} error */
  #failed(error) {
    // Ignore errors of requests that were on their way when the match ended, and errors of a lost connection, which is
    // reported elsewhere.
    const expected = ['token_match_ended', 'connection_restarted', 'not_joined', 'left', 'not_connected'];
    const known = otError(error, 'connect');
    if (!expected.includes(known.reason ?? '') && known.name !== 'OT_NOT_CONNECTED') this.#tell('error', { error: known });
  }
}
