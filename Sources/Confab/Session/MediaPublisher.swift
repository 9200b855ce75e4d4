import Wire

/// A stream that this client publishes in a ``Session``. It continues until ``unpublish()`` or the end of the session,
/// even if the application releases this object.
public actor MediaPublisher {
    /// Something that happened to a published stream.
    public enum Event: Hashable, Sendable {
        /// A moderator muted the stream. ``MediaPublisher/setAudio(_:)`` unmutes it.
        case muted
        /// The quality of the stream at the server has changed. Sent only in a routed session. The reason is nil if
        /// the quality is good.
        case quality(Session.Quality, Session.QualityReason?)
        /// True if the video will stop unless this device's network improves; false when that danger has passed. Sent
        /// only with ``Session/PublishOptions/audioFallback``.
        case videoWarning(Bool)
        /// The video is no longer sent, so that the network can carry the audio. Capturing continues. Happens only
        /// with ``Session/PublishOptions/audioFallback``.
        case videoStopped
        /// The video is sent again after ``videoStopped``.
        case videoResumed
        /// The layers that subscribers need have changed. The SDK now sends only the layers with these RIDs. Happens
        /// only in a routed session.
        case layersWanted([String])
        /// The media engine or the server could not do something. The SDK retries automatically where that can help.
        case failed(ConfabError)
        /// The stream ended. The local media continues.
        case ended(Session.Reason)
    }

    nonisolated let publication: Publication
    nonisolated let media: SessionMedia

    init(_ publication: Publication, in media: SessionMedia) { (self.publication, self.media) = (publication, media) }

    /// The stream as it was when it was published. ``hasAudio`` and ``hasVideo`` have the current values.
    nonisolated public var stream: MediaStream { publication.state.withLock { $0.stream } }
    /// The events of the stream. Iterations end after `ended`.
    nonisolated public var events: Events<Event> { publication.events.events }
    /// Whether audio is turned on and thus sent.
    nonisolated public var hasAudio: Bool { publication.state.withLock { $0.hasAudio } }
    /// Whether video is turned on. If so, it is sent, unless audio fallback has stopped it (``Event/videoStopped``).
    nonisolated public var hasVideo: Bool { publication.state.withLock { $0.hasVideo } }

    /// Starts (true) or stops (false) sending audio.
    ///
    /// - Throws: `not_found` if the stream has ended, or an error of the connection.
    public func setAudio(_ isOn: Bool) async throws(ConfabError) { try await media.set(publication, audio: isOn) }

    /// Starts (true) or stops (false) sending video.
    ///
    /// - Throws: `not_found` if the stream has ended, `bandwidth_exceeded` if the server accepts no more video for
    ///   now, or an error of the connection. After `bandwidth_exceeded` the video is off: try again after
    ///   ``ConfabError/retryAfter``.
    public func setVideo(_ isOn: Bool) async throws(ConfabError) { try await media.set(publication, video: isOn) }

    /// Replaces the video with that of other media. The audio is unchanged, and the previous media is not stopped.
    ///
    /// - Throws: `not_found` if the stream has ended, `media_failed` if the new media has no video, or an error of the
    ///   connection. If the stream had no video before, also `bandwidth_exceeded`, as for ``setVideo(_:)``.
    public func replaceVideo(with other: any LocalMedia) async throws(ConfabError) {
        try await media.replaceVideo(of: publication, with: other)
    }

    /// Returns the counters of the sent media. In a relayed session, each subscriber has its own set of counters.
    public func statistics() async -> [Statistic] { await media.statistics(of: publication) }

    /// Ends the stream. The local media continues.
    public func unpublish() async { await media.unpublish(publication) }
}

/// A stream of a ``Session`` that this client receives. It continues until ``unsubscribe()`` or the end of the stream,
/// even if the application releases this object.
public actor MediaSubscriber {
    /// Something that happened to a received stream.
    public enum Event: Hashable, Sendable {
        /// Media arrives. ``MediaSubscriber/video`` and the audio can be used.
        case connected
        /// The first whole frame of video arrived. Sent once.
        case firstFrame
        /// Media no longer arrives. The SDK restores the connection automatically.
        case dropped
        /// Media arrives again. ``MediaSubscriber/video`` may now be another object.
        case resumed
        /// Audio or video has started to arrive, or arrives over another transceiver: read ``MediaSubscriber/video``
        /// again.
        case tracksChanged
        /// The server has paused the video.
        case videoPaused(PauseReason)
        /// The server sends video again.
        case videoResumed
        /// True when the server warns that it will pause the video if this device's network gets worse; false when
        /// that danger has passed.
        case warning(Bool)
        /// The server forwards another layer of the video. Contains the layer's RID; nil if there is only one layer.
        case layer(String?)
        /// True if this device's network cannot carry the video in the requested size or frame rate; false when it can
        /// again.
        case limited(Bool)
        /// The level of the audio, from 0 to 1. Sent only while ``MediaSubscriber/reportAudioLevel(every:)`` requests
        /// it.
        case audioLevel(Double)
        /// The quality of the stream at the server has changed. The reason is nil if the quality is good.
        case quality(Session.Quality, Session.QualityReason?)
        /// The media engine or the server could not do something. The SDK retries automatically where that can help.
        case failed(ConfabError)
        /// The stream or the subscription ended.
        case ended(Session.Reason)
    }

    /// Why a video is paused.
    public enum PauseReason: String, Hashable, Sendable {
        /// This device's connection cannot keep up.
        case slow
        /// This device cannot decode the codec.
        case codec
        /// Another reason.
        case other
    }

    nonisolated let subscription: Subscription
    nonisolated let media: SessionMedia

    init(_ subscription: Subscription, in media: SessionMedia) {
        (self.subscription, self.media) = (subscription, media)
    }

    /// The stream as it was when the subscription began. ``Session/streams`` has its current properties.
    nonisolated public var stream: MediaStream { subscription.stream }
    /// The events of the stream. Iterations begin with `connected`, `firstFrame` and `videoPaused` if these apply, and
    /// end after `ended`.
    nonisolated public var events: Events<Event> { subscription.events.events }
    /// The video; nil before ``Event/connected``, after ``Event/ended(_:)``, and for a stream without video.
    nonisolated public var video: (any VideoSource)? { remote(.video)?.video }
    /// The audio, as an object of the media engine; nil before ``Event/connected``, after ``Event/ended(_:)``, and for a
    /// stream without audio.
    nonisolated public var audio: (any RemoteMedia)? { remote(.audio) }

    private nonisolated func remote(_ kind: TrackKind) -> (any RemoteMedia)? {
        subscription.state.withLock { $0.tracks[kind] }?.media
    }

    /// Starts (true) or stops (false) receiving audio.
    ///
    /// - Throws: `not_found` if the stream or the subscription has ended, or an error of the connection.
    public func setAudio(_ isOn: Bool) async throws(ConfabError) {
        try await media.change(subscription) { $0.audio = isOn }
    }

    /// Starts (true) or stops (false) receiving video.
    ///
    /// - Throws: `not_found` if the stream or the subscription has ended, or an error of the connection.
    public func setVideo(_ isOn: Bool) async throws(ConfabError) {
        try await media.change(subscription) { $0.video = isOn }
    }

    /// Sets the volume: 0 is silent, 1 plays the audio unchanged.
    public func setVolume(_ volume: Double) async {
        subscription.state.withLock { $0.volume = volume }
        await remote(.audio)?.setVolume(volume)
    }

    /// Notifies the server of the size at which the video is shown, so that the server sends no larger layer than
    /// needed. This has an effect only in routed sessions.
    ///
    /// - Parameters:
    ///   - width: the width in pixels, at most 16384.
    ///   - height: the height in pixels, at most 16384.
    ///   - frameRate: the maximum frames per second, 1 to 240; nil for no maximum.
    /// - Throws: `not_found` if the stream or the subscription has ended, or an error of the connection.
    public func prefer(width: Int, height: Int, frameRate: Int? = nil) async throws(ConfabError) {
        try await media.change(subscription) { options in
            (options.size, options.frameRate) = (VideoSize(width: width, height: height), frameRate)
        }
    }

    /// Sets the priority of the video, 0 to 100: see ``Session/SubscribeOptions/priority``. This has an effect only in
    /// routed sessions.
    ///
    /// - Throws: `not_found` if the stream or the subscription has ended, or an error of the connection.
    public func setPriority(_ priority: Int) async throws(ConfabError) {
        try await media.change(subscription) { $0.priority = priority }
    }

    /// Sends ``Event/audioLevel(_:)`` at regular intervals, if the media engine measures the level. For each report,
    /// the SDK reads the connection's statistics, so short intervals cost CPU time.
    ///
    /// - Parameter interval: the interval, at least 50 ms; 100 ms is suitable for a display. Nil stops the reports.
    public func reportAudioLevel(every interval: Duration?) {
        media.reportAudioLevel(of: subscription, every: interval)
    }

    /// Returns the counters of the received media.
    public func statistics() async -> [Statistic] { await media.statistics(of: subscription) }

    /// Ends the subscription.
    public func unsubscribe() async { await media.unsubscribe(subscription) }
}

extension Session {
    /// Publishes media as a stream, and returns when the server has accepted it.
    ///
    /// - Throws: `no_media_engine`, `not_joined`, `not_permitted`, `media_failed`, or an error of the connection.
    @discardableResult
    public func publish(
        _ local: any LocalMedia, as options: PublishOptions = PublishOptions()
    ) async throws(ConfabError) -> MediaPublisher {
        MediaPublisher(try await media.publish(local, options), in: media)
    }

    /// Publishes media without enabling it: audio and video that the application has disabled stay disabled.
    func publish(asIs local: any LocalMedia, _ options: PublishOptions) async throws(ConfabError) -> MediaPublisher {
        MediaPublisher(try await media.publish(local, options, enabling: false), in: media)
    }

    /// Subscribes to a stream, and returns when the server has accepted it. Media arrives afterwards:
    /// ``MediaSubscriber/events`` reports when.
    ///
    /// - Throws: `no_media_engine`, `not_joined`, `not_permitted`, `not_found`, `already_subscribed`, or an error of
    ///   the connection.
    @discardableResult
    public func subscribe(
        to stream: MediaStream, _ options: SubscribeOptions = SubscribeOptions()
    ) async throws(ConfabError) -> MediaSubscriber {
        MediaSubscriber(try await media.subscribe(stream, options), in: media)
    }
}
