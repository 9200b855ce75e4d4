// How media travels in a session: what `Session` asks of a transport, and which one it gets. Today media is relayed from peer
// to peer; a transport through the server can stand beside it behind the same interface.

import { otFailure } from './errors.js';
import { RelayedTransport } from './relayed.js';

/** @typedef {{tracks: () => MediaStreamTrack[]}} Source what a publisher gives */
/**
 * @typedef {object} Sink what a subscriber gets
 * @property {(media: MediaStream) => void} mediaArrived
 * @property {(state: import('./peer.js').PeerState) => void} mediaChanged
 */

/**
 * @typedef {object} Transport
 * @property {(streamId: string, source: Source) => void} publish
 * @property {(streamId: string) => void} unpublish
 * @property {(streamId: string, kind: string, track: MediaStreamTrack | null) => void} replaceTrack
 * @property {(streamId: string, connectionId: string, sink: Sink) => void} subscribe
 * @property {(streamId: string, sink: Sink) => void} unsubscribe
 * @property {(message: import('./messages.js').Message) => void} receive `session.subscribed`, `.unsubscribed`, `.negotiate`
 * @property {(connectionId: string) => void} connectionDestroyed
 * @property {() => void} resumed the line to the server is back
 * @property {(streamId: string) => Promise<{connectionId: string, reports: RTCStatsReport[]}[]>} senderReports
 * @property {(streamId: string) => RTCRtpReceiver[]} receivers
 * @property {() => void} close
 */

/**
 * @typedef {object} TransportOptions
 * @property {string} connectionId ours
 * @property {(type: string, members: Record<string, unknown>) => Promise<unknown>} request in this session
 * @property {() => Promise<RTCConfiguration>} configuration
 * @property {import('./clock.js').Clock} clock
 * @property {import('./peer.js').Rtc} rtc
 * @property {(error: unknown) => void} failed
 */

/**
 * @param {'relayed' | 'routed'} mediaMode
 * @param {TransportOptions} options
 * @returns {Transport}
 */
export function createTransport(mediaMode, options) {
  if (mediaMode === 'relayed') return new RelayedTransport(options);
  throw otFailure('OT_NOT_SUPPORTED', 1013,
    'This session sends its media through the server, which this version cannot do yet. Create the session as relayed.');
}
