// How media travels in a session: the transport interface that `Session` uses, and the choice between its two
// implementations. Relayed media goes from peer to peer, routed media through the server.

import { RelayedTransport } from './relayed.js';
import { RoutedTransport } from './routed.js';

/**
 * @typedef {object} Source the media of a publisher
 * @property {() => MediaStreamTrack[]} tracks
 * @property {import('./sending.js').SendingOptions} [sending] how to send them; always the same object, whose members may change
 * @property {() => import('./layers.js').Layers} [layers] the layers of a routed video; default: one
 */
/**
 * @typedef {object} Sink the receiver of a subscriber's media
 * @property {(media: MediaStream) => void} mediaArrived
 * @property {(state: import('./peer.js').PeerState) => void} mediaChanged
 * @property {() => {audio: boolean, video: boolean, keepsVideo: boolean}} [expected] which media to expect now, and whether video
 *   that has arrived may stay; default: all
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
 * @property {(streamId: string) => void} tune the sending options of the local stream have changed
 * @property {(streamId: string, connectionId: string, sink: Sink) => void} subscribe
 * @property {(streamId: string, sink: Sink) => void} unsubscribe
 * @property {(message: import('../signaling/messages.js').Message) => void} receive `session.subscribed`, `.unsubscribed`, `.negotiate`
 * @property {(connectionId: string) => void} connectionDestroyed
 * @property {() => void} resumed the connection to the server was resumed
 * @property {(streamId: string) => Promise<{connectionId: string, reports: RTCStatsReport[]}[]>} senderReports
 * @property {(streamId: string) => RTCRtpReceiver[]} receivers
 * @property {() => void} close
 * @property {() => Promise<number | undefined>} [estimate] the bandwidth from the server, in bit/s, if it is known
 * @property {(source: Source) => Promise<Mids>} [mids] the mids for `session.publish`; called before `publish`
 * @property {(source: Source) => void} [cancel] stops what `mids` has started, if `publish` was not called
 * @property {(streamId: string) => void} [expectationChanged] the sinks expect different media of this stream than before
 * @property {(streamId: string, wanted: import('./layers.js').Wanted) => void} [layersWanted] what to encode of a
 *   local stream's video
 * @property {(streamId: string) => Promise<Mids | null>} [slot] the mids for `session.subscribe`; called after `subscribe`
 */

/**
 * @typedef {object} TransportOptions
 * @property {string} connectionId the id of our own connection
 * @property {(type: string, members: Record<string, unknown>) => Promise<unknown>} request sends a request in this session
 * @property {() => Promise<RTCConfiguration>} configuration
 * @property {import('./ice.js').IceConfig} [iceConfig] which candidates of the other end to use, in relayed media
 * @property {import('../clock.js').Clock} clock
 * @property {import('./peer.js').Rtc} rtc
 * @property {(error: unknown) => void} failed
 */

/**
 * Additional options of the routed transport.
 * @typedef {object} RoutedOptions
 * @property {() => import('./media-link.js').SFUConnections} link returns the media connections, which are created on the first call
 * @property {(streamId: string) => void} publishAgain the stream's `mids` have changed and must be sent again
 * @property {(streamId: string) => void} subscribeAgain the stream's `slot` has changed and must be sent again
 */

/**
 * @param {'relayed' | 'routed'} mediaMode
 * @param {TransportOptions & RoutedOptions} options
 * @returns {Transport}
 */
export function createTransport(mediaMode, options) {
  return mediaMode === 'routed' ? new RoutedTransport(options) : new RelayedTransport(options);
}
