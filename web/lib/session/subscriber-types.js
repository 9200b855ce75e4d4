// Types of a subscriber's parts, and of its interface to a session.

/** @typedef {import('../media/preference.js').Size} Size */
/**
 * @typedef {object} SubscribeOptions
 * @property {boolean} [subscribeToAudio] whether to receive audio at first; default: true
 * @property {boolean} [subscribeToVideo] whether to receive video at first; default: true
 * @property {number} [audioVolume] 0 to 100
 * @property {Size | 'auto' | null} [preferredResolution] like `setPreferredResolution`; default: 'auto'
 * @property {number} [preferredFrameRate] like `setPreferredFrameRate`
 * @property {number} [priority] like `setPriority`; default: 0
 */
/** @typedef {SubscribeOptions & import('../media/widget.js').WidgetOptions} SubscriberOptions */
/** The parts of its session that a subscriber uses. */
/** @typedef {Pick<import('./subscriptions.js').Subscriptions, 'changed' | 'viewChanged' | 'receivers' | 'estimate' | 'clock'>} SubscriberHost */

/**
 * The interface between a session and a subscriber.
 * @typedef {object} OwnSink
 * @property {Promise<void>} connected settles when the first media arrives, or when subscribing has failed
 * @property {{audio: boolean, video: boolean}} wants the media to request: no video while it is hidden
 * @property {import('../media/preference.js').Preference} preference
 * @property {() => {audio: boolean, video: boolean, keepsVideo: boolean}} expected the media to expect now;
 *   `keepsVideo`: whether video that has arrived may stay
 * @property {(isPaused: boolean, reason: string) => void} videoPaused called when the server may have paused or
 *   resumed the video
 * @property {(isWarned: boolean) => void} warned called when the server has warned that it will pause the video if the
 *   network gets worse, or has withdrawn the warning
 * @property {(change: import('./quality.js').SubscriptionChange) => void} limited called when the server forwards
 *   another layer, or reports another reason for its choice
 * @property {() => void} uplinkChanged called when the server has judged the publisher's uplink
 * @property {() => void} setUpAgain called when the server sets up the subscription again, so that earlier limits of
 *   the video are gone
 * @property {(change: import('./roster.js').Change) => void} streamChanged called when the stream has changed
 * @property {() => void} unblock tries to play sound again, because the user clicked
 * @property {(reason: string) => void} destroy ends the subscriber
 */
/**
 * A subscriber as the other parts of the SDK use it.
 * @typedef {OwnSink & import('../media/transport.js').Sink} SubscriberSink
 */

export {};
