// How media travels in a session: what `Session` asks of a transport, and which one it gets. Relayed media goes from peer to
// peer, routed media through the server.

import { RelayedTransport } from './relayed.js';
import { RoutedTransport } from './routed.js';

/**
 * @typedef {object} Source what a publisher gives
 * @property {() => MediaStreamTrack[]} tracks
 * @property {() => boolean} [isScalable] whether its picture is worth several sizes at once
 */
/**
 * @typedef {object} Sink what a subscriber gets
 * @property {(media: MediaStream) => void} mediaArrived
 * @property {(state: import('./peer.js').PeerState) => void} mediaChanged
 * @property {() => {audio: boolean, video: boolean}} [expected] what is to come, as things are; both without it
 */
/**
 * Which transceivers of the connection with the server.
 * @typedef {{audioMid: string, videoMid: string}} Mids
 */

/**
 * @typedef {object} Transport
 * @property {(streamId: string, source: Source) => void} publish
 * @property {(streamId: string) => void} unpublish
 * @property {(streamId: string, kind: string, track: MediaStreamTrack | null) => void} replaceTrack
 * @property {(streamId: string, connectionId: string, sink: Sink) => void} subscribe
 * @property {(streamId: string, sink: Sink) => void} unsubscribe
 * @property {(message: import('../line/messages.js').Message) => void} receive `session.subscribed`, `.unsubscribed`, `.negotiate`
 * @property {(connectionId: string) => void} connectionDestroyed
 * @property {() => void} resumed the line to the server is back
 * @property {(streamId: string) => Promise<{connectionId: string, reports: RTCStatsReport[]}[]>} senderReports
 * @property {(streamId: string) => RTCRtpReceiver[]} receivers
 * @property {() => void} close
 * @property {(source: Source) => Promise<Mids>} [mids] what `session.publish` has to name; before `publish`
 * @property {(source: Source) => void} [cancel] it is not published after all
 * @property {(streamId: string) => void} [expectationChanged] sinks expect more or less of this stream than before
 * @property {(streamId: string, rids: string[]) => void} [layersWanted] what somebody wants of a stream of ours; no others need be made
 * @property {(streamId: string) => Promise<Mids | null>} [slot] what `session.subscribe` has to name; after `subscribe`
 */

/**
 * @typedef {object} TransportOptions
 * @property {string} connectionId ours
 * @property {(type: string, members: Record<string, unknown>) => Promise<unknown>} request in this session
 * @property {() => Promise<RTCConfiguration>} configuration
 * @property {import('../clock.js').Clock} clock
 * @property {import('./peer.js').Rtc} rtc
 * @property {(error: unknown) => void} failed
 */

/**
 * What the routed one also needs.
 * @typedef {object} RoutedOptions
 * @property {() => import('./media-link.js').MediaLink} link made by the first who asks
 * @property {(streamId: string) => void} publishAgain the stream's `mids` have to be told anew
 * @property {(streamId: string) => void} subscribeAgain the stream's `slot` has to be told anew
 */

/**
 * @param {'relayed' | 'routed'} mediaMode
 * @param {TransportOptions & RoutedOptions} options
 * @returns {Transport}
 */
export function createTransport(mediaMode, options) {
  return mediaMode === 'routed' ? new RoutedTransport(options) : new RelayedTransport(options);
}
