// Types of a publisher's parts, and of its interface to a session.

/** @typedef {import('./roster.js').Stream} Stream */
/** @typedef {import('./core.js').SessionCore} SessionCore */
/** @typedef {import('../media/constraints.js').MediaSource} MediaSource */
/** @typedef {import('../media/capture.js').Kind} Kind */
/**
 * @typedef {object} PublishOptions
 * @property {string} [name] the name of the stream, which others can see
 * @property {string} [initials] initials to show while the video is off, at most eight characters
 * @property {boolean} [publishAudio] whether to send audio at first; default: true
 * @property {boolean} [publishVideo] whether to send video at first; default: true
 * @property {{publisher?: boolean}} [audioFallback] `publisher: true`: stop the video on a slow network to keep the audio
 */
/** @typedef {import('../media/sending.js').SendingOptions} SendingOptions */
/** @typedef {import('../media/constraints.js').SourceOptions & import('../media/layers.js').ScalableOptions & SendingOptions} MediaOptions */
/** @typedef {PublishOptions & MediaOptions & import('../media/widget.js').WidgetOptions} PublisherOptions */

/**
 * The interface between a session and a publisher.
 * @typedef {object} OwnSource
 * @property {Promise<void>} ready settles when the publisher has something to send, or has failed to get it
 * @property {() => Announcement} announcement returns the members of the stream that others see
 * @property {(core: SessionCore, stream: Stream) => void} published called when the stream was published
 * @property {(reason: string) => void} unpublished called when the stream has ended
 * @property {() => void} uplinkChanged called when the server has judged the uplink
 * @property {(width: number, quality: number) => Promise<Blob | null>} frame returns the camera's frame as JPEG, scaled down to a width in
 *   pixels; null if no video is sent
 * @property {() => void} muteForced mutes the publisher, because a moderator requested it; the user may unmute it
 */
/**
 * A publisher as the other parts of the SDK use it.
 * @typedef {OwnSource & import('../media/transport.js').Source} PublisherSource
 */
/**
 * @typedef {{name?: string, initials?: string, hasAudio: boolean, hasVideo: boolean, videoType?: string, width?: number, height?: number,
 *   frameRate?: number}} Announcement
 */

export {};
