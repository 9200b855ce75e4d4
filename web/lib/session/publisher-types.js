// Types of a publisher's parts, and of its interface to a session.

/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {import('./core.js').SessionCore} SessionCore */
/** @typedef {import('../media/constraints.js').MediaSource} MediaSource */
/** @typedef {import('../media/capture.js').Kind} Kind */
/**
 * @typedef {object} PublishOptions
 * @property {string} [name]
 * @property {boolean} [publishAudio]
 * @property {boolean} [publishVideo]
 * @property {{publisher?: boolean}} [audioFallback] `publisher: true`: stop the video on a slow network to keep the audio
 */
/** @typedef {import('../media/sending.js').SendingOptions} SendingOptions */
/** @typedef {import('../media/constraints.js').SourceOptions & import('../media/layers.js').ScalableOptions & SendingOptions} MediaOptions */
/** @typedef {PublishOptions & MediaOptions & import('../media/widget.js').WidgetOptions} PublisherOptions */

/**
 * The interface between a session and a publisher.
 * @typedef {object} OwnSource
 * @property {Promise<void>} ready settles when the publisher has something to send, or has failed to get it
 * @property {() => Announcement} announcement the members of the stream that others see
 * @property {(core: SessionCore, stream: Stream) => void} published
 * @property {(reason: string) => void} unpublished
 * @property {() => void} uplinkChanged the server judged the uplink
 * @property {() => void} muteForced a moderator muted it; the user may unmute
 */
/**
 * A publisher as the other parts of the SDK use it.
 * @typedef {OwnSource & import('../media/transport.js').Source} PublisherSource
 */
/** @typedef {{name?: string, hasAudio: boolean, hasVideo: boolean, videoType?: string, width?: number, height?: number}} Announcement */

export {};
