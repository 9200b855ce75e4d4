// The page's connection to the server: one client and its roulette. Turns SDK events into events of the state machine, and
// effects into SDK calls. Its only decision is how to restart after an invalid identity.
import { Client, OT, People, Roulette } from '../../lib/index.js';
import { showCondition } from '../shared/connection.js';
import { box } from '../shared/dom.js';
import { isIdentityLost } from '../shared/memory.js';

/** @typedef {(event: import('./types.js').Event) => void} Dispatch */
/** @typedef {{recall: () => string | undefined, remember: (secret: string | null) => void}} IdentityMemory */

export class Server {
  /** @type {any} */
  #client = null;
  /** @type {any} */
  #roulette = null;
  /** @type {any} */
  #people = null;
  /** @type {any} */
  #publisher = null;
  #forgotIdentity = false;
  /** Whether the rules that the user agreed to mention samples of the camera. */
  #allowsSamples = false;

  /**
   * @param {IdentityMemory} identity
   * @param {import('../shared/strings.js').Strings} strings
   * @param {Dispatch} dispatch
   */
  constructor(identity, strings, dispatch) {
    this.identity = identity;
    this.strings = strings;
    this.dispatch = dispatch;
  }

  /** @param {string} name */
  connect(name) {
    const client = new Client({ identity: this.identity.recall(), name: name || undefined, showsWarnings: true });
    this.#client = client;
    // Create the roulette before our own listeners: after a restart of the client, it must clear its match before this
    // page searches again.
    this.#roulette = this.#makeRoulette(client);
    this.#people = this.#makePeople(client);
    /** @param {string} event @param {(event: any) => void} listen called only for events of the current client */
    const on = (event, listen) => client.on(event, (/** @type {any} */ detail) => {
      if (client === this.#client) listen(detail ?? {});
    });
    on('identity', ({ secret }) => this.identity.remember(secret));
    on('connected', ({ resumed }) => this.dispatch({ type: 'connected', resumed, hidesAddress: hidesAddress(client.welcome), samplesEvery: samplesEvery(client.welcome) }));
    on('reconnecting', () => this.dispatch({ type: 'reconnecting' }));
    on('restarted', () => this.dispatch({ type: 'restarted' }));
    on('closed', ({ code, error }) => this.#closed(error?.code ?? String(code), error?.message, name));
    if (this.#publisher) this.#roulette.usePublisher(this.#publisher);
    // The `closed` event reports the failure, so ignore the rejection.
    Promise.resolve(client.connect()).catch(() => {});
  }

  /** @param {string} code @param {string | undefined} message @param {string} name */
  #closed(code, message, name) {
    // The server will never accept the stored identity, which belongs to another server or to a data directory that is
    // gone. Connect without it, but only once.
    if (isIdentityLost(code) && this.identity.recall() && !this.#forgotIdentity) {
      this.#forgotIdentity = true;
      this.identity.remember(null);
      this.connect(name);
      return;
    }
    this.dispatch({ type: 'closed', code, message });
  }

  /** @param {any} client */
  #makeRoulette(client) {
    const roulette = new Roulette(client, {
      allowsSamples: () => this.#allowsSamples,
      subscriberTarget: box('partner'),
      subscriberOptions: { insertMode: 'append', width: '100%', height: '100%', fitMode: 'contain', label: this.strings.partner },
    });
    /** @param {string} event @param {(event: any) => import('./types.js').Event} translate */
    const on = (event, translate) => roulette.on(event, (/** @type {any} */ detail) => {
      if (client === this.#client) this.dispatch(translate(detail ?? {}));
    });
    on('waiting', ({ retryAfterMs }) => ({ type: 'waiting', retryAfterMs }));
    on('matched', ({ matchId, mode, partner, textChat }) => ({ type: 'matched', matchId, mode, partner, textChat }));
    on('partner', ({ state, matchId }) => ({ type: 'partner', state, matchId }));
    on('ended', ({ reason, matchId }) => ({ type: 'ended', reason, matchId }));
    on('warning', ({ source, ends, text }) => ({ type: 'warning', source, ends, text }));
    on('blur', ({ matchId, whose, blurred }) => ({ type: 'blur', matchId, whose, blurred }));
    on('chat', ({ text, mine }) => ({ type: 'heard', text, mine }));
    on('typing', ({ typing }) => ({ type: 'typing', typing }));
    on('noStream', ({ matchId }) => ({ type: 'stream', is: 'missing', matchId }));
    // If the roulette is idle, the error means that the search could not be resumed. Otherwise, it concerns the
    // current match.
    on('error', ({ error }) => ({ type: 'refused', verb: roulette.state === 'idle' ? 'start' : 'match', ...described(error) }));
    roulette.on('subscriber', (/** @type {any} */ { subscriber }) => this.#watch(subscriber, roulette.match?.matchId));
    return roulette;
  }

  /**
   * Creates the `People` of a client, and dispatches its events about contacts, the only ones that this page uses.
   * @param {any} client
   */
  #makePeople(client) {
    const tell = (/** @type {string} */ type) => (/** @type {any} */ { matchId }) => {
      if (client === this.#client && matchId) this.dispatch({ type, matchId });
    };
    return new People(client).on({ contactAsked: tell('keepAsked'), contactAdded: tell('kept') });
  }

  /**
   * @param {any} subscriber the subscriber to the partner's stream, before it is connected
   * @param {string | undefined} matchId
   */
  #watch(subscriber, matchId) {
    showCondition(box('partner'), subscriber, 'theirs', this.strings);
    subscriber.on('connected', () => this.dispatch({ type: 'stream', is: 'live', matchId }));
    subscriber.on('disconnected', () => this.dispatch({ type: 'stream', is: 'stalled', matchId }));
    // When a match ends, its stream is destroyed first. Dispatch `missing` later, so that the end of the match is
    // handled before it.
    subscriber.on('destroyed', () => queueMicrotask(() => this.dispatch({ type: 'stream', is: 'missing', matchId })));
    subscriber.on('audioBlocked', () => this.dispatch({ type: 'sound', silent: true, matchId }));
    subscriber.on('audioUnblocked', () => this.dispatch({ type: 'sound', silent: false, matchId }));
  }

  /** Starts sound that the browser has blocked. Call this in a click handler, because browsers require a user gesture. */
  unblockSound() {
    OT.unblockAudio();
  }

  /** @param {any} publisher null removes it */
  usePublisher(publisher) {
    this.#publisher = publisher;
    this.#roulette?.usePublisher(publisher);
  }

  /** @param {import('./types.js').Form} form */
  start({ mode, interests, name, agreed, agreedToSamples }) {
    this.#allowsSamples = agreed && agreedToSamples === true;
    this.#request('start', (roulette) => roulette.start({ mode, interests, name }));
  }

  next() {
    this.#request('next', (roulette) => roulette.next());
  }

  stop() {
    this.#request('stop', (roulette) => roulette.stop());
  }

  /** @param {string} matchId */
  block(matchId) {
    this.#request('block', (roulette) => roulette.block(matchId));
  }

  /** @param {string} reason @param {string} matchId @param {boolean} alsoBlock */
  report(reason, matchId, alsoBlock) {
    const done = () => this.dispatch({ type: 'reported', matchId, alsoBlock });
    this.#request('report', (roulette) => roulette.report(reason, matchId), done);
  }

  /** @param {string} matchId */
  keep(matchId) {
    this.#call(() => this.#people.keep({ matchId })).catch((error) => this.dispatch({ type: 'refused', verb: 'keep', matchId, ...described(error) }));
  }

  /** @param {string} text */
  say(text) {
    this.#call((roulette) => roulette.sendChat(text)).catch(() => this.dispatch({ type: 'unsent', text }));
  }

  /** @param {boolean} typing */
  tellTyping(typing) {
    this.#call((roulette) => roulette.setTyping(typing)).catch(() => {}); // A lost typing notification does not matter.
  }

  async askCount() {
    try {
      const { online, waiting } = await this.#call((roulette) => roulette.count());
      this.dispatch({ type: 'people', online, waiting });
    } catch {
      // The next poll tries again.
    }
  }

  /**
   * @param {string} verb
   * @param {(roulette: any) => any} call
   * @param {() => void} [done]
   */
  #request(verb, call, done) {
    this.#call(call).then(done, (error) => this.dispatch({ type: 'refused', verb, ...described(error) }));
  }

  /**
   * Calls a function with the roulette. Returns a promise, which rejects even if the SDK throws synchronously.
   * @param {(roulette: any) => any} call
   */
  async #call(call) {
    return call(this.#roulette);
  }
}

/** @param {any} error */
function described(error) {
  const code = [error?.code, error?.reason].find((name) => typeof name === 'string') ?? 'unknown';
  return { code, message: error?.message ?? '', retryAfterMs: error?.retryAfterMs };
}

/**
 * Returns true if the partner cannot see the local IP address, because media goes through this server or a TURN
 * server. Undefined before the server's welcome.
 * @param {import('../../lib/signaling/messages.js').Welcome | null} [welcome]
 */
function hidesAddress(welcome) {
  return welcome ? welcome.media?.roulette === 'routed' || welcome.ice?.relayOnly : undefined;
}

/**
 * Returns the seconds between two samples of the camera; undefined if the server checks none.
 * @param {import('../../lib/signaling/messages.js').Welcome | null} [welcome]
 */
function samplesEvery(welcome) {
  return welcome?.sampling && Math.max(1, Math.round(welcome.sampling.intervalMs / 1000));
}
