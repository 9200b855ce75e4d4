// What the server says about a session, and what that does to it: one function a message.

import { OTEvent } from '../events.js';

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('../line/messages.js').Message} Message */

/**
 * The stream was unpublished in good order: OpenTok has one word for that and for its publisher going.
 * @param {string} reason
 */
const spoken = (reason) => (reason === 'clientUnpublished' ? 'clientDisconnected' : reason);

/**
 * Why a subscriber gets no picture, in OpenTok's words.
 * @type {Record<string, string>}
 */
const pauses = { slow: 'quality', codec: 'codecNotSupported' };

/** @type {Record<string, (session: Session, message: Message) => void>} */
const handlers = {
  'session.joined': (session, message) => session._joined(message),
  'session.left': (session, { reason }) => session._end(reason),

  'session.connectionCreated': (session, message) => {
    const connection = session._roster.connection(message.connection);
    session._tellConnection(new OTEvent('connectionCreated', { connection }));
  },
  'session.connectionDestroyed': (session, { connectionId, reason }) => {
    for (const stream of session._roster.streamsOf(connectionId)) session._streamGone(stream.streamId, reason);
    session._transport?.connectionDestroyed(connectionId);
    const connection = session._roster.removeConnection(connectionId);
    if (connection) session._tellConnection(new OTEvent('connectionDestroyed', { connection, reason }));
  },
  'session.connectionReconnecting': (session, message) => presence(session, message, 'connectionReconnecting'),
  'session.connectionReconnected': (session, message) => presence(session, message, 'connectionReconnected'),

  'session.streamCreated': (session, message) => {
    const stream = session._roster.stream(message.stream);
    session.dispatch(new OTEvent('streamCreated', { stream }));
  },
  'session.streamDestroyed': (session, { streamId, reason }) => session._streamGone(streamId, spoken(reason)),
  'session.streamChanged': (session, message) => {
    const stream = session._roster.streams.get(message.stream.streamId);
    for (const change of stream?.update(message.stream) ?? []) {
      for (const subscriber of session.getSubscribersForStream(stream)) subscriber._streamChanged(change);
      session._transport?.expectationChanged?.(message.stream.streamId);
      session.dispatch(new OTEvent('streamPropertyChanged', { stream, ...change }));
    }
  },

  'session.mediaModeChanged': (session, { mediaMode }) => session._mediaModeChanged(mediaMode),
  'session.subscriptionChanged': (session, { streamId, videoPaused, reason }) => {
    for (const subscriber of session.getSubscribersForStream(streamId)) subscriber._videoPaused(videoPaused, pauses[reason]);
    session._transport?.expectationChanged?.(streamId);
  },
  'session.layersWanted': (session, { streamId, rids }) => session._transport?.layersWanted?.(streamId, rids),
  // Not OpenTok's.
  'session.speaking': (session, { streamId }) => {
    session.dispatch(new OTEvent('activeSpeakerChanged', { stream: session._roster.streams.get(streamId) ?? null }));
  },

  'session.subscribed': (session, message) => session._transport?.receive(message),
  'session.unsubscribed': (session, message) => session._transport?.receive(message),
  'session.negotiate': (session, message) => session._transport?.receive(message),

  'session.signal': (session, { from, signalType, data }) => {
    const type = signalType ? `signal:${signalType}` : 'signal';
    const event = new OTEvent(type, { data: data ?? undefined, from: session._roster.connections.get(from) ?? null });
    session.dispatch(event, undefined, 'signal');
    if (signalType) session.dispatch(event);
  },
  'session.muted': (session, { active, streamId }) => {
    if (streamId !== undefined) {
      if (active) session._publications.of(streamId)?._muteForced();
      return;
    }
    session._muted = active;
    session.dispatch(new OTEvent('muteForced', { active }));
  },
};

/**
 * Not OpenTok's: it keeps quiet about others' troubles.
 * @param {Session} session
 * @param {Message} message
 * @param {string} type
 */
function presence(session, { connectionId }, type) {
  const connection = session._roster.connections.get(connectionId);
  if (connection) session.dispatch(new OTEvent(type, { connection }));
}

/** @param {Session} session @param {Message} message */
export function handle(session, message) {
  handlers[message.type]?.(session, message);
}
