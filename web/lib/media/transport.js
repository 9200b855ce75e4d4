// How media travels in a session: the transport interface that `Session` uses, and the choice between its two
// implementations. Relayed media goes from peer to peer, routed media through the server.

import { RelayedTransport } from './relayed.js';
import { RoutedTransport } from './routed.js';

/**
 * @typedef {object} Source the media of a publisher
 * @property {() => MediaStreamTrack[]} tracks
 * @property {import('./sending.js').SendingOptions} [sending] how to send them; always the same object, whose members may change
 * @property {() => import('./layers.js').Layers} [layers] returns the layers of a routed video; default: one layer
 */
/**
 * @typedef {object} Sink the receiver of a subscriber's media
 * @property {(media: MediaStream) => void} mediaArrived called when the media may be shown
 * @property {(state: import('./peer.js').PeerState) => void} mediaChanged called with the state of the media
 * @property {() => {audio: boolean, video: boolean, keepsVideo: boolean}} [expected] returns which media to expect
 *   now, and whether video that has arrived may stay; default: all true
 */
/**
 * The mids of a stream's two transceivers on the connection with the server.
 * @typedef {{audioMid: string, videoMid: string}} Mids
 */

/**
 * @typedef {object} Transport
 * @property {(streamId: string, source: Source) => void} publish
 * @property {(streamId: string) => void} unpublish
 * @property {(streamId: string, kind: string, track: MediaStreamTrack | null) => void} replaceTrack
 * @property {(streamId: string) => void} tune applies the sending options of a local stream, which have changed
 * @property {(streamId: string, connectionId: string, sink: Sink) => void} subscribe
 * @property {(streamId: string, sink: Sink) => void} unsubscribe
 * @property {(message: import('../signaling/messages.js').Message) => void} receive handles `session.subscribed`,
 *   `session.unsubscribed` and `session.negotiate`
 * @property {(connectionId: string) => void} connectionDestroyed
 * @property {() => void} resumed called when the connection to the server was resumed
 * @property {(streamId: string) => Promise<{connectionId: string, reports: RTCStatsReport[]}[]>} senderReports
 * @property {(streamId: string) => RTCRtpReceiver[]} receivers
 * @property {() => void} close
 * @property {() => Promise<number | undefined>} [estimate] the bandwidth from the server, in bit/s, if it is known
 * @property {(source: Source) => Promise<Mids>} [mids] the mids for `session.publish`; called before `publish`
 * @property {(source: Source) => void} [cancel] stops what `mids` has started, if `publish` was not called
 * @property {(streamId: string) => void} [expectationChanged] called when the sinks of this stream expect other media
 *   than before
 * @property {(streamId: string, wanted: import('./layers.js').Wanted) => void} [layersWanted] sets what to encode of
 *   a local stream's video
 * @property {(streamId: string) => Promise<Mids | null>} [slot] the mids for `session.subscribe`; called after `subscribe`
 */

/**
 * @typedef {object} TransportOptions
 * @property {string} connectionId the id of our own connection
 * @property {(type: string, members: Record<string, unknown>) => Promise<unknown>} request sends a request in this session
 * @property {() => Promise<RTCConfiguration>} configuration returns the configuration of a relayed peer connection
 * @property {import('./ice.js').IceConfig} [iceConfig] which candidates of the other peer to use, in relayed media
 * @property {import('../clock.js').Clock} clock
 * @property {import('./peer.js').Rtc} rtc
 * @property {(error: unknown) => void} failed called with each error of the media
 */

/**
 * Additional options of the routed transport.
 * @typedef {object} RoutedOptions
 * @property {() => import('./media-link.js').SFUConnections} link returns the media connections, which are created on the first call
 * @property {(streamId: string) => void} publishAgain sends the stream's `mids` again, which have changed
 * @property {(streamId: string) => void} subscribeAgain sends the stream's `slot` again, which has changed
 */

/**
 * @param {'relayed' | 'routed'} mediaMode
 * @param {TransportOptions & RoutedOptions} options
 * @returns {Transport}
 */
export function createTransport(mediaMode, options) {
  return mediaMode === 'routed' ? new RoutedTransport(options) : new RelayedTransport(options);
}
