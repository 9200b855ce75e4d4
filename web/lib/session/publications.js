// The streams we publish in a session, from the request to publish a stream to its end. Invariant: if a publisher is
// unpublished, or its session ends, before the server has answered, the publisher is not published afterward.

import { Timers } from '../clock.js';
import { ConfabError, otError, otFailure } from '../errors.js';
import { OTEvent } from '../events.js';
import { sourceOf } from './publisher.js';
import { settle } from './registry.js';

/** @typedef {import('./core.js').SessionCore} SessionCore */
/** @typedef {import('./publisher.js').Publisher} Publisher */

/** The pause before a refused video is offered again, if the server does not request another one (milliseconds). */
const againMs = 10_000;

export class Publications {
  #core;
  /** Timers that offer refused videos again. Their names are the ids of the streams. */
  #timers;
  /**
   * Publishers that wait for their camera or the server's answer, each with an object that identifies the attempt.
   * @type {Map<Publisher, object>}
   */
  #begun = new Map();
  /** @type {Map<string, Publisher>} by stream id */
  #running = new Map();
  /** @type {Set<string>} ids of the streams whose video the server has refused */
  #refusals = new Set();

  /** @param {SessionCore} core */
  constructor(core) {
    this.#core = core;
    this.#timers = new Timers(core.clock);
  }

  get clock() {
    return this.#core.clock;
  }

  /** The publishers whose streams are published. */
  get all() {
    return [...this.#running.values()];
  }

  /** @param {string} streamId */
  of(streamId) {
    return this.#running.get(streamId);
  }

  /**
   * Like `Session.publish`, but also works while the session connects: the server handles messages after the join in order, so
   * subscribers waiting for the video get it a round trip sooner.
   * @param {Publisher} publisher
   * @param {import('./arguments.js').Callback} callback
   */
  beginEarly(publisher, callback) {
    settle(this.begin(publisher, true), callback, publisher, (error) => otError(error, 'publish'));
  }

  /** @param {Publisher} publisher @param {boolean} [isEarly] */
  async begin(publisher, isEarly = false) {
    const core = this.#core;
    const { stillIn } = core.demand('publish', 1500, isEarly);
    if (publisher.isDestroyed) throw otFailure('OT_INVALID_PARAMETER', 1500, 'This publisher was destroyed. Create a new one.');
    if (publisher.session || this.#begun.has(publisher)) {
      throw otFailure('OT_INVALID_PARAMETER', 1500, 'This publisher is already being published. Unpublish it first.');
    }
    const attempt = {};
    this.#begun.set(publisher, attempt);
    const source = sourceOf(publisher);
    /** @type {import('../media/transport.js').Transport | null} */
    let transport = null;
    try {
      await Promise.all([source.ready, core.opened]);
      stillIn();
      transport = core.transport;
      // In a muted session, the server mutes the stream with `session.muted` after it was created. Send no audio
      // before that.
      if (core.startsMuted) publisher.publishAudio(false);
      const mids = transport?.mids ? await transport.mids(source) : {};
      stillIn();
      const announced = source.announcement();
      const { stream } = await this.#announce({ ...announced, ...mids }, isEarly);
      stillIn();
      this.#run(publisher, stream, announced, attempt);
    } finally {
      if (this.#begun.get(publisher) === attempt) this.#begun.delete(publisher);
      // If a later attempt for this publisher has begun, it uses the transceivers that this attempt reserved, so keep
      // them.
      if (!this.#begun.has(publisher)) transport?.cancel?.(source);
    }
  }

  /**
   * Announces a stream. If it was announced before a join that the server refused at first, announces it again after the join.
   * @param {Record<string, unknown>} members
   * @param {boolean} isEarly
   */
  async #announce(members, isEarly) {
    try {
      return await this.#core.request('session.publish', members);
    } catch (error) {
      if (!isEarly || !(error instanceof ConfabError) || error.code !== 'not_joined') throw error;
      await this.#core.entered;
      return this.#core.request('session.publish', members);
    }
  }

  /**
   * @param {Publisher} publisher
   * @param {any} info
   * @param {{hasAudio: boolean, hasVideo: boolean}} announced
   * @param {object} attempt
   */
  #run(publisher, info, announced, attempt) {
    const core = this.#core;
    if (this.#begun.get(publisher) !== attempt) {
      core.request('session.unpublish', { streamId: info.streamId }).catch(() => {});
      throw otFailure('OT_STREAM_CREATE_FAILED', 1500, 'The publisher was unpublished before its stream started. Publish it again.');
    }
    const source = sourceOf(publisher);
    const stream = core.roster.stream(info);
    this.#running.set(stream.streamId, publisher);
    core.transport?.publish(stream.streamId, source);
    source.published(core, stream);
    // The user may have muted the publisher while the request was on its way.
    const { hasAudio, hasVideo } = source.announcement();
    if (hasAudio !== announced.hasAudio || hasVideo !== announced.hasVideo) this.update(publisher, { hasAudio, hasVideo });
  }

  /**
   * Unpublishes at our own request. If the publisher is not published yet, cancels the attempt.
   * @param {Publisher} publisher
   * @param {string} reason
   */
  end(publisher, reason) {
    this.#begun.delete(publisher);
    const { stream } = publisher;
    if (!stream || publisher.session !== this.#core.session) return;
    this.#core.request('session.unpublish', { streamId: stream.streamId }).catch(() => {});
    this.ended(stream.streamId, reason);
  }

  /**
   * Handles the end of a stream, whether or not this client requested it.
   * @param {string} streamId
   * @param {string} reason
   * @returns {boolean} true if the stream was ours
   */
  ended(streamId, reason) {
    const publisher = this.#running.get(streamId);
    if (!publisher) return false;
    this.#running.delete(streamId);
    this.#refusalOver(publisher, streamId);
    this.#core.transport?.unpublish(streamId);
    this.#core.roster.removeStream(streamId);
    // A subscriber on this page may show our own stream, which the server sends back to us.
    for (const subscriber of this.#core.subscriptions.of(streamId)) this.#core.subscriptions.end(subscriber, reason);
    sourceOf(publisher).unpublished(reason);
    return true;
  }

  /**
   * Mutes a stream, because a moderator requested it.
   * @param {string} streamId
   */
  muteForced(streamId) {
    const publisher = this.#running.get(streamId);
    if (publisher) sourceOf(publisher).muteForced();
  }

  /** @param {string} streamId the stream whose uplink the server has judged */
  uplinkChanged(streamId) {
    const publisher = this.#running.get(streamId);
    if (publisher) sourceOf(publisher).uplinkChanged();
  }

  /** @param {Publisher} publisher @param {Record<string, unknown>} changes the changed members of the stream */
  update(publisher, changes) {
    const { stream } = publisher;
    if (!stream) return;
    const { streamId } = stream;
    if (changes.hasVideo === false) this.#refusalOver(publisher, streamId);
    const { hasVideo, ...others } = changes;
    this.#core.request('session.update', { streamId, ...changes }).then(
      () => { if (hasVideo) this.#refusalOver(publisher, streamId); },
      (error) => {
        if (!hasVideo || error.code !== 'bandwidth_exceeded') return;
        if (Object.keys(others).length > 0) this.update(publisher, others);
        this.#refused(publisher, streamId, error);
      },
    );
  }

  /**
   * Handles a video that the server refused, because it accepts no more video for now. Offers the video again until it
   * is accepted or turned off.
   * @param {Publisher} publisher
   * @param {string} streamId
   * @param {ConfabError} error
   */
  #refused(publisher, streamId, error) {
    const isWanted = () => this.#running.get(streamId) === publisher && sourceOf(publisher).announcement().hasVideo;
    if (!isWanted()) return;
    if (!this.#refusals.has(streamId)) publisher.dispatch(new OTEvent('videoRefused', { error }));
    this.#refusals.add(streamId);
    this.#timers.set(streamId, error.retryAfterMs ?? againMs, () => { if (isWanted()) this.update(publisher, { hasVideo: true }); });
  }

  /** @param {Publisher} publisher @param {string} streamId */
  #refusalOver(publisher, streamId) {
    this.#timers.clear(streamId);
    if (this.#refusals.delete(streamId)) publisher.dispatch(new OTEvent('videoRefusalOver'));
  }

  /** Publishes all streams over the new transport, because the media mode of the session changed. */
  moved() {
    for (const [streamId, publisher] of this.#running) this.#core.transport?.publish(streamId, sourceOf(publisher));
  }

  /**
   * Sends the mids of a stream's transceivers again, after the transceivers have changed.
   * @param {string} streamId
   */
  async tellAgain(streamId) {
    const { transport } = this.#core;
    const publisher = this.#running.get(streamId);
    if (!publisher || !transport?.mids) return;
    const mids = await transport.mids(sourceOf(publisher)).catch(() => null);
    if (mids && transport === this.#core.transport && this.#running.has(streamId)) this.update(publisher, mids);
  }

  /** @param {Publisher} publisher @param {string} kind @param {MediaStreamTrack | null} track */
  replaceTrack({ stream }, kind, track) {
    if (stream) this.#core.transport?.replaceTrack(stream.streamId, kind, track);
  }

  /** @param {string} streamId the stream whose sending options have changed */
  tune(streamId) {
    this.#core.transport?.tune(streamId);
  }

  /** @param {Publisher} publisher @returns {Promise<{connectionId: string, reports: RTCStatsReport[]}[]>} */
  async reports({ stream }) {
    return stream ? await this.#core.transport?.senderReports(stream.streamId) ?? [] : [];
  }

  /** @param {string} reason */
  endAll(reason) {
    this.#begun.clear();
    for (const streamId of [...this.#running.keys()]) this.ended(streamId, reason);
  }
}
