// The page's connection to the server: one client with its people and calls. Turns SDK events into events of the state machine,
// and effects into SDK calls. Its only decision is how to restart after an invalid identity.
import { Calls, Client, OT, People } from '../../lib/index.js';
import { showCondition } from '../shared/connection.js';
import { box } from '../shared/dom.js';
import { isIdentityLost } from '../shared/memory.js';

/** @typedef {(event: import('./types.js').Event) => void} Dispatch */
/** @typedef {{recall: () => string | undefined, remember: (secret: string | null) => void}} IdentityMemory */
/** @typedef {import('../../lib/people/call.js').Call} SdkCall */

/** The maximum number of rows on a page of the people nearby and of the call history. */
const rows = 50;

export class Server {
  /** @type {any} */
  client = null;
  /** @type {any} */
  people = null;
  /** @type {any} */
  calls = null;
  /** @type {Map<number, SdkCall>} */
  #lines = new Map();
  #lineCount = 0;
  #forgotIdentity = false;
  /** @type {string | null} `unlinked` or `deleted` if that is why the server is about to close the connection */
  #closeReason = null;

  /**
   * @param {IdentityMemory} identity
   * @param {Dispatch} dispatch
   * @param {import('../shared/strings.js').Strings} strings
   * @param {() => any} publisher returns the current publisher
   */
  constructor(identity, dispatch, strings, publisher) {
    this.identity = identity;
    this.strings = strings;
    this.dispatch = dispatch;
    this.publisher = publisher;
  }

  connect() {
    const client = new Client({ identity: this.identity.recall() });
    this.client = client;
    this.#closeReason = null;
    this.#lines.clear();
    /**
     * Returns a listener that ignores events of earlier clients.
     * @param {(detail: any) => void} listen
     */
    const present = (listen) => (/** @type {any} */ detail) => {
      if (client === this.client) listen(detail ?? {});
    };
    const tell = (/** @type {(detail: any) => import('./types.js').Event} */ translate) => present((detail) => this.dispatch(translate(detail)));
    this.people = new People(client).on({
      self: tell((me) => ({ type: 'self', me })),
      positionForgotten: tell(() => ({ type: 'positionForgotten' })),
      nearby: tell(({ people, next }) => ({ type: 'nearby', people, next })),
      contactAsked: tell(({ callId }) => ({ type: 'contactAsked', callId })),
      contactAdded: tell(({ person, callId }) => ({ type: 'contactAdded', person, callId })),
      contactChanged: tell(({ person }) => ({ type: 'contactChanged', person })),
      contactRemoved: tell(({ personId }) => ({ type: 'contactRemoved', personId })),
      unlinked: present(() => { this.#closeReason = 'unlinked'; }),
      deleted: present(() => { this.#deleted(); }),
      error: tell(({ error }) => ({ type: 'refused', ...described(error) })),
    });
    this.calls = new Calls(client, this.people, {
      subscriberTarget: box('partner'),
      subscriberOptions: { insertMode: 'append', width: '100%', height: '100%', fitMode: 'contain' },
    }).on({
      incoming: present((call) => this.#follow(call)),
      ended: tell(({ callId, outcome, person, direction, video, durationMs }) => (
        { type: 'callOver', line: null, callId, outcome, person, direction, video, durationMs })),
    });
    client.on({
      identity: present(({ secret }) => this.identity.remember(secret)),
      connected: tell(({ resumed }) => ({ type: 'connected', resumed, isNew: client.welcome?.identity !== undefined })),
      reconnecting: tell(() => ({ type: 'reconnecting' })),
      restarted: tell(() => ({ type: 'restarted', isNew: client.welcome?.identity !== undefined })),
      closed: present(({ code, error }) => this.#closed(error?.code ?? String(code), error?.message)),
    });
    // The `closed` event reports the failure, so ignore the rejection.
    Promise.resolve(client.connect()).catch(() => {});
  }

  /** Forgets the identity after the account was deleted, so that the next connection creates a new account. */
  #deleted() {
    this.#closeReason = 'deleted';
    this.identity.remember(null);
  }

  /** @param {string} code @param {string | undefined} message */
  #closed(code, message) {
    // The server will never accept the stored identity, which belongs to another server or to a data directory that is
    // gone. Forget it, but only once; the state machine then connects without it.
    if (isIdentityLost(code) && this.identity.recall() && !this.#forgotIdentity) {
      this.#forgotIdentity = true;
      this.identity.remember(null);
      this.dispatch({ type: 'identityLost' });
      return;
    }
    this.dispatch({ type: 'closed', code: this.#closeReason ?? code, message });
  }

  // ---- Calls

  /** @param {import('./types.js').Person} person @param {boolean} video */
  call(person, video) {
    this.#follow(this.calls.start(person.personId, { video, publisher: this.publisher() }), person);
  }

  /**
   * Reports every change to a call to the state machine, until the call is over.
   * @param {SdkCall} call
   * @param {import('./types.js').Person} [known] the person called, whose name is shown until
   *   the server sends it
   */
  #follow(call, known) {
    const line = this.#lineCount += 1;
    const { client } = this;
    this.#lines.set(line, call);
    const person = () => (call.person.name || !known ? call.person : known);
    const tell = () => {
      if (client === this.client && !call.isOver) this.dispatch({ type: 'callNews', call: snapshot(call, line, person()) });
    };
    call.on({
      change: tell,
      subscriber: ({ subscriber }) => this.#watch(subscriber, line),
      error: ({ error }) => { if (client === this.client) this.dispatch({ type: 'refused', ...described(error) }); },
      ended: ({ outcome, durationMs, error }) => {
        this.#lines.delete(line);
        if (client !== this.client) return;
        const { id, direction, video } = call;
        if (outcome === 'refused') this.dispatch({ type: 'callRefused', line, ...described(error) });
        else this.dispatch({ type: 'callOver', line, callId: id ?? `line ${line}`, outcome, person: person(), direction, video, durationMs });
      },
    });
    tell();
  }

  /** @param {any} subscriber the subscriber to the other person's stream, before it is connected @param {number} line */
  #watch(subscriber, line) {
    showCondition(box('partner'), subscriber, 'theirs', this.strings);
    subscriber.on('audioBlocked', () => this.dispatch({ type: 'sound', line, silent: true }));
    subscriber.on('audioUnblocked', () => this.dispatch({ type: 'sound', line, silent: false }));
    subscriber.on('destroyed', () => this.dispatch({ type: 'sound', line, silent: false }));
  }

  /** @param {number} line @param {boolean} video */
  accept(line, video) {
    this.#onLine(line, (call) => call.accept({ video, publisher: this.publisher() }));
  }

  /** @param {number} line */
  decline(line) {
    this.#onLine(line, (call) => call.decline());
  }

  /**
   * Cancels the call if it still rings, otherwise ends it.
   * @param {number} line
   */
  hangUp(line) {
    this.#onLine(line, (call) => call.end());
  }

  /** @param {number} line @param {boolean} on */
  setVideo(line, on) {
    this.#onLine(line, (call) => call.setVideo(on));
  }

  /** @param {number} line @param {(call: SdkCall) => Promise<void>} act */
  #onLine(line, act) {
    const call = this.#lines.get(line);
    // If the call has ended, its end was reported already.
    if (call) act(call).catch((error) => { if (!call.isOver) this.dispatch({ type: 'refused', ...described(error) }); });
  }

  /** Starts sound that the browser has blocked. Call this in a click handler, because browsers require a user gesture. */
  unblockSound() {
    OT.unblockAudio();
  }

  // ---- People

  /** @param {object} as */
  appear(as) {
    this.request((people) => people.appear(as), { refused: (error) => this.dispatch({ type: 'appearRefused', ...described(error) }) });
  }

  /** @param {{unit: string, radius: number, after: string | null}} page */
  watch({ unit, radius, after }) {
    this.request((people) => people.watch({ unit, radius, after: after ?? undefined, limit: rows }), {
      refused: (error) => { if (error.code === 'position_unknown') this.dispatch({ type: 'noPosition' }); else throw error; },
    });
  }

  /** @param {string} personId */
  find(personId) {
    this.request((people) => people.find(personId), {
      done: (person) => this.dispatch({ type: 'found', person }),
      refused: (error) => {
        this.dispatch({ type: 'found', person: null });
        if (error.code !== 'not_found') throw error;
      },
    });
  }

  /** @param {string | null} before */
  askLog(before) {
    this.request(() => this.calls.log({ before: before ?? undefined, limit: rows }), {
      done: ({ calls, next }) => this.dispatch({ type: 'log', calls, next, before }),
    });
  }

  /**
   * Sends the location. If the server rejects it, reports the error to the state machine, and rejects too.
   * @param {import('../../lib/people/people.js').Position} fix
   * @returns {Promise<void>}
   */
  async move(fix) {
    try {
      await this.people.move(fix);
    } catch (error) {
      this.dispatch({ type: 'refused', ...described(error) });
      throw error;
    }
  }

  /**
   * Sends a request and passes its result to `done`. Passes an error to `refused`; dispatches it if there is no
   * `refused`, or if `refused` rethrows it. Ignores the result or the error if the client was replaced while it
   * waited. Also ignores errors caused by the end of the connection.
   * @param {(people: any) => any} ask
   * @param {{done?: (answer: any) => void, refused?: (error: any) => void}} then `refused` may rethrow the error
   */
  async request(ask, then = {}) {
    const { done, refused } = then;
    const { client } = this;
    try {
      const answer = await ask(this.people);
      if (client === this.client) done?.(answer);
    } catch (error) {
      if (client !== this.client || this.#closeReason || isLeaving(error)) return;
      try {
        if (!refused) throw error;
        refused(error);
      } catch (unhandled) {
        this.dispatch({ type: 'refused', ...described(unhandled) });
      }
    }
  }
}

/** @param {SdkCall} call @param {number} line @param {import('./types.js').Person} person @returns {import('./types.js').Call} */
function snapshot(call, line, person) {
  const { id, direction, video, withVideo, waiting, state, devices, partnerState } = call;
  return {
    line, id: id ?? '', person, direction, video, withVideo, waiting, state,
    devices: state === 'ringing' ? devices : null, away: partnerState === 'reconnecting',
  };
}

/**
 * Returns true if the request failed because the connection closed, which is reported separately.
 * @param {any} error
 */
const isLeaving = (error) => ['left', 'not_connected'].includes(error?.code);

/** @param {any} error */
function described(error) {
  const code = [error?.code, error?.reason].find((name) => typeof name === 'string') ?? 'unknown';
  return { code, message: error?.message ?? '' };
}
