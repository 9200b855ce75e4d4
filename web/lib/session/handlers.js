// Handles the server's messages about a session: one function per message.

import { OTEvent } from '../events.js';

/** @typedef {import('./core.js').SessionCore} SessionCore */
/** @typedef {import('../signaling/messages.js').Message} Message */

/**
 * Converts the protocol's reason for the end of a stream to OpenTok's. OpenTok has one reason for both an unpublish
 * and a publisher that left.
 * @param {string} reason
 */
const spoken = (reason) => (reason === 'clientUnpublished' ? 'clientDisconnected' : reason);

/**
 * Converts the reason why a subscriber gets no video to OpenTok's reason. All reasons except the codec become
 * `quality`.
 * @param {string} reason
 */
const pauseReason = (reason) => (reason === 'codec' ? 'codecNotSupported' : 'quality');

/** @type {Record<string, (core: SessionCore, message: Message) => void>} */
const handlers = {
  'session.joined': (core, message) => core.joined(message),
  'session.roster': (core, message) => core.listed(message),
  'session.left': (core, { reason }) => core.end(reason),

  'session.connectionCreated': (core, message) => {
    const connection = core.roster.connection(message.connection);
    core.tellConnection(new OTEvent('connectionCreated', { connection }));
  },
  'session.connectionDestroyed': (core, { connectionId, reason }) => {
    for (const stream of core.roster.streamsOf(connectionId)) core.streamGone(stream.streamId, reason);
    core.transport?.connectionDestroyed(connectionId);
    const connection = core.roster.removeConnection(connectionId);
    if (connection) core.tellConnection(new OTEvent('connectionDestroyed', { connection, reason }));
  },
  'session.connectionReconnecting': (core, message) => presence(core, message, 'connectionReconnecting'),
  'session.connectionReconnected': (core, message) => presence(core, message, 'connectionReconnected'),

  'session.streamCreated': (core, message) => {
    const stream = core.roster.stream(message.stream);
    core.session.dispatch(new OTEvent('streamCreated', { stream }));
  },
  'session.streamDestroyed': (core, { streamId, reason }) => core.streamGone(streamId, spoken(reason)),
  'session.streamChanged': (core, message) => {
    const stream = core.roster.streams.get(message.stream.streamId);
    for (const change of stream?.update(message.stream) ?? []) {
      for (const sink of core.subscriptions.sinksOf(message.stream.streamId)) sink.streamChanged(change);
      core.transport?.expectationChanged?.(message.stream.streamId);
      core.session.dispatch(new OTEvent('streamPropertyChanged', { stream, ...change }));
    }
  },

  'session.mediaModeChanged': (core, { mediaMode }) => core.mediaModeChanged(mediaMode),
  'session.subscriptionChanged': (core, message) => {
    const { streamId, videoPaused, reason, warning, ...layer } = message;
    for (const sink of core.subscriptions.sinksOf(streamId)) {
      sink.limited({ ...layer, videoPaused, reason });
      // The server withdraws its warning when it pauses the video. That does not mean that the video stays.
      sink.videoPaused(videoPaused, pauseReason(reason));
      if (warning !== undefined) sink.warned(warning);
    }
    core.transport?.expectationChanged?.(streamId);
  },
  'session.streamQuality': (core, { streamId, level, reason = null }) => {
    const stream = core.roster.streams.get(streamId);
    if (!stream) return;
    stream.uplink = { level, reason: level === 'good' ? null : reason };
    for (const sink of core.subscriptions.sinksOf(streamId)) sink.uplinkChanged();
    core.publications.uplinkChanged(streamId);
  },
  'session.layersWanted': (core, { streamId, rids, video, codec }) => core.transport?.layersWanted?.(streamId, { rids, video, codec }),
  // OpenTok does not have this event.
  'session.speaking': (core, { streamId }) => {
    core.session.dispatch(new OTEvent('activeSpeakerChanged', { stream: core.roster.streams.get(streamId) ?? null }));
  },

  'session.archiveStarted': (core, message) => core.archives.started(message),
  'session.archiveStopped': (core, { archiveId }) => core.archives.stopped(archiveId),
  'session.broadcastStarted': (core, message) => core.broadcasts.started(message),
  'session.broadcastStopped': (core, { broadcastId }) => core.broadcasts.stopped(broadcastId),

  'session.subscribed': (core, message) => core.transport?.receive(message),
  'session.unsubscribed': (core, message) => core.transport?.receive(message),
  'session.negotiate': (core, message) => core.transport?.receive(message),

  'session.signal': (core, { from, signalType, data }) => {
    const type = signalType ? `signal:${signalType}` : 'signal';
    const event = new OTEvent(type, { data: data ?? undefined, from: core.roster.sender(from) });
    core.session.dispatch(event, undefined, 'signal');
    if (signalType) core.session.dispatch(event);
  },
  'session.muted': (core, { active, streamId }) => {
    if (streamId !== undefined) {
      if (active) core.publications.muteForced(streamId);
      return;
    }
    core.startsMuted = active;
    core.session.dispatch(new OTEvent('muteForced', { active }));
  },
};

/**
 * Emits an event about another member's connection problems, which OpenTok does not report.
 * @param {SessionCore} core
 * @param {Message} message
 * @param {string} type
 */
function presence(core, { connectionId }, type) {
  const connection = core.roster.connections.get(connectionId);
  if (connection) core.session.dispatch(new OTEvent(type, { connection }));
}

/** @param {SessionCore} core @param {Message} message */
export function handle(core, message) {
  handlers[message.type]?.(core, message);
}
