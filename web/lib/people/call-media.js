// Audio and video of one call: the session, the published stream and the subscriber. Invariant: after `end`, no hook
// is called and nothing keeps running. The publisher is not destroyed, because it belongs to the application.

import { otError } from '../errors.js';
import { SessionCore } from '../session/core.js';

/** @typedef {import('../errors.js').ConfabError} ConfabError */
/** @typedef {import('../session/publisher.js').Publisher} Publisher */
/** @typedef {import('../session/roster.js').Stream} Stream */
/** @typedef {import('../session/subscriber.js').Subscriber} Subscriber */
/** @typedef {(target?: any, options?: object) => Subscriber} Subscribe */
/**
 * @typedef {object} MediaHooks
 * @property {() => void} there called when the other person has joined the session
 * @property {(stream: Stream, subscribe: Subscribe) => void} stream called with the other person's stream, and a
 *   function that subscribes to it
 * @property {(error: ConfabError) => void} trouble called with an error of audio or video; the call continues
 * @property {(error: ConfabError) => void} failed called when joining the session failed
 * @property {(error: ConfabError) => void} ending called when joining the session failed because the call or the
 *   connection ended, which is reported separately
 */

/** Codes of errors that occur because the call or the connection has ended. That end is reported separately. */
const expected = ['token_match_ended', 'connection_restarted', 'not_joined', 'left', 'not_connected'];

export class CallMedia {
  #hooks;
  #core;
  #publisher;
  #over = false;
  /** @type {Stream | null} the other person's stream */
  #stream = null;
  /** Prevents the default action of `streamDestroyed`, which would destroy the publisher. */
  #keep = (/** @type {any} */ event) => event.preventDefault();

  /**
   * @param {import('../signaling/client.js').Client} client
   * @param {string} sessionId
   * @param {Publisher | null} publisher
   * @param {{rtc?: import('../media/peer.js').Rtc, clock?: import('../clock.js').Clock}} options
   * @param {MediaHooks} hooks
   */
  constructor(client, sessionId, publisher, options, hooks) {
    this.#core = new SessionCore('', sessionId, { client, rtc: options.rtc, clock: options.clock });
    this.#publisher = publisher;
    this.#hooks = hooks;
  }

  get sessionId() {
    return this.#core.session.sessionId;
  }

  /** @param {string} token */
  begin(token) {
    const { session } = this.#core;
    session.on({
      connectionCreated: ({ connection }) => {
        if (!this.#over && connection !== session.connection) this.#hooks.there();
      },
      streamCreated: ({ stream }) => this.#seen(stream),
      // Before showing another stream, wait for the event's default action, which removes the old video.
      streamDestroyed: () => queueMicrotask(() => this.#seeAnother()),
    });
    session.connect(token, (error) => { if (error) this.#failed(error, this.#hooks.failed, this.#hooks.ending); });
    this.#publish();
  }

  /** @param {boolean} isLost whether the server no longer has the session, so that `session.leave` need not be sent */
  end(isLost) {
    if (this.#over) return;
    this.#over = true;
    if (isLost) this.#core.end('networkDisconnected');
    else this.#core.disconnect();
    this.#publisher?.off('streamDestroyed', this.#keep);
  }

  #publish() {
    const publisher = this.#publisher;
    if (!publisher) return;
    publisher.on('streamDestroyed', this.#keep);
    // The previous chat or call, which this call ends, may not have released the publisher yet.
    publisher.session?.unpublish(publisher);
    this.#core.publications.beginEarly(publisher, (error) => { if (error) this.#failed(error, this.#hooks.trouble); });
  }

  /** @param {Stream} stream */
  #seen(stream) {
    // Show one video at a time: ignore this stream while the current one exists.
    if (this.#over || (this.#stream && this.#core.roster.streams.has(this.#stream.streamId))) return;
    this.#stream = stream;
    const ended = (/** @type {ConfabError | undefined} */ error) => {
      if (error && error.name !== 'OT_STREAM_DESTROYED') this.#failed(error, this.#hooks.trouble);
    };
    this.#hooks.stream(stream, (target, options) => this.#core.session.subscribe(stream, target, options, ended));
  }

  #seeAnother() {
    const another = this.#core.othersStream;
    if (another) this.#seen(another);
  }

  /** @param {ConfabError} error @param {(error: ConfabError) => void} tell @param {(error: ConfabError) => void} [wait] */
  #failed(error, tell, wait) {
    const known = otError(error, 'connect');
    if (this.#over) return;
    if (!expected.includes(known.reason ?? '') && known.name !== 'OT_NOT_CONNECTED') tell(known);
    else wait?.(known);
  }
}
