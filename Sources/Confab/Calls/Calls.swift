import Foundation
import Wire

/// Calls between two people. A call rings on all devices of the callee.
///
/// ```swift
/// try await client.presence.appear()
/// for await event in client.calls.events {
///     if case .incoming(let call) = event { try await client.calls.accept(call.id) }
/// }
/// ```
///
/// After the connection has been replaced, the SDK rejoins the calls that this device placed or accepted.
public actor Calls {
    /// Something that happened to a call.
    public enum Event: Sendable {
        /// A call rings on this device.
        case incoming(Call)
        /// A call changed. Compare it with its previous value.
        case changed(Call)
        /// Media from the other person has started to arrive. Sent again whenever its source changes.
        case receiving(CallID, MediaSubscriber)
        /// The other person's video has arrived. Sent again whenever its source changes.
        case video(CallID, any VideoSource)
        /// The other person's audio has arrived, and they are not sending video. ``video(_:_:)`` follows if that
        /// changes.
        case audioOnly(CallID)
        /// A call ended. If it was missed while this device was offline, each launch of the application receives this
        /// event again until ``Calls/seen(_:)`` is called.
        case ended(CallEnding)
        /// Audio or video of a call failed; the call continues.
        case failed(CallID, ConfabError)
    }

    /// A call in the log.
    public struct Logged: Hashable, Sendable, Identifiable {
        /// The id of the call, for ``Calls/forget(_:)`` and ``Calls/seen(_:)``.
        public let id: CallID
        /// Whether this person placed the call.
        public let isOutgoing: Bool
        /// Why the call ended.
        public let outcome: CallEnding.Outcome
        /// The other person, with the name they had at the time of the call.
        public let person: Person
        /// Whether the call was placed as a video call.
        public let isVideo: Bool
        /// When the call was placed.
        public let placedAt: Date
        /// The time from the acceptance of the call to its end; nil if it was not accepted.
        public let duration: Duration?
        /// Whether a device of this person has shown the end of the call.
        public let isSeen: Bool

        init(_ call: LoggedCall) {
            (id, isOutgoing, outcome) = (call.call, call.direction == .outgoing, .init(call.outcome))
            (person, isVideo, placedAt) = (Person(call.person), call.video, call.at.date)
            (duration, isSeen) = (call.duration, call.seen)
        }
    }

    private let feature: FeatureCore<CallsMachine>
    private let media: CallsMedia
    private let source: EventSource<Event>

    init(_ desk: FeatureDesk) {
        let source = EventSource<Event>()
        let media = CallsMedia(desk.core, source)
        let feature = FeatureCore(CallsMachine(), desk, tell: { media.tell($0) }, perform: { media.perform($0) })
        media.weakFeature.set(feature)
        (self.feature, self.media, self.source) = (feature, media, source)
        desk.onClose { [weak media] in
            media?.releaseIfUnused()
            source.finish()
        }
    }

    /// The events of all calls.
    nonisolated public var events: Events<Event> { source.events }
    /// The calls that have not ended, in the order in which they began.
    nonisolated public var all: [Call] { feature.read(\.calls) }

    /// Publishes this media in calls, including the current one. The application owns the media and stops it. If `own`
    /// is nil, the SDK captures media when a call is placed or accepted, or when its video is turned on: a camera and
    /// a microphone, or only a microphone for a call without video.
    public func use(_ own: (any LocalMedia)?) { media.use(own) }

    /// Calls a person, with or without video. If the callee is busy or cannot be reached, the event `ended` follows.
    ///
    /// - Throws: `not_present` before ``Presence/appear(_:)``, `not_found`, `call_not_allowed`, `elsewhere`,
    ///   `rate_limited`, `media_failed`, or `call_state` if another call is being placed or this one has already
    ///   ended.
    @discardableResult
    public func start(_ person: PersonID, video: Bool = true) async throws(ConfabError) -> Call {
        try await media.capture(video: video)
        defer { media.releaseIfUnused() }
        guard case .call(.placed(let placed)) = try await feature.ask(.start(person, video: video)) else {
            throw .noAnswer
        }
        guard let call = feature.read({ $0.started(placed.call, with: person) }) else {
            throw ConfabError(.callState, "The call ended while it was being placed. The event `ended` says why.")
        }
        return call
    }

    /// Accepts a call that rings on this device, with or without sending video. Any other call on this device ends,
    /// except incoming calls that still ring.
    ///
    /// - Throws: `call_state` if the call does not ring on this device, or `media_failed` if no media can be captured.
    public func accept(_ id: CallID, video: Bool = true) async throws(ConfabError) {
        try await media.capture(video: video)
        defer { media.releaseIfUnused() }
        try await feature.ask(.accept(id, video: video))
    }

    /// Declines a call that rings on this device. In any other state, ends the call as ``end(_:)`` does.
    public func decline(_ id: CallID) async throws(ConfabError) { try await feature.ask(.decline(id)) }

    /// Ends a call in any state. On this device the call ends immediately, before the server has answered.
    public func end(_ id: CallID) async throws(ConfabError) { try await feature.ask(.end(id)) }

    /// Starts (true) or stops (false) sending this device's video in a call, and notifies the other person. Captures a
    /// camera if necessary.
    public func update(_ id: CallID, video: Bool) async throws(ConfabError) {
        if video { try await media.capture(video: true) }
        defer { media.releaseIfUnused() }
        try await feature.ask(.update(id, video: video))
        media.setVideo(video, in: id)
    }

    /// Starts (true) or stops (false) sending audio in a call, and notifies the other person. May be called before the
    /// call is accepted.
    public func setAudio(_ isOn: Bool, in id: CallID) { media.setAudio(isOn, in: id) }

    /// Rejoins a call that this device placed or joined before the application was restarted. Calls in ``all`` are
    /// rejoined automatically.
    ///
    /// - Throws: `not_found` if the call has ended, `elsewhere` if it is active on another device.
    public func rejoin(_ id: CallID) async throws(ConfabError) { try await feature.ask(.rejoin(id)) }

    /// Returns a page of the call log, newest first.
    ///
    /// - Parameters:
    ///   - before: `next` of the previous page; nil for the newest calls.
    ///   - limit: the maximum number of calls on the page, 1 to 50.
    /// - Returns: the calls, and the value of `before` for the next page; nil on the last page.
    public func log(before: String? = nil, limit: Int = 50) async throws(ConfabError) -> (
        calls: [Logged], next: String?
    ) {
        let page = CallVerb.LogPage(before: before, limit: min(max(limit, 1), 50))
        guard case .call(.log(let log)) = try await feature.ask(.log(page)) else { throw .noAnswer }
        return (log.calls.map(Logged.init), log.next)
    }

    /// Deletes a call from this person's call log; nil deletes all calls.
    public func forget(_ id: CallID?) async throws(ConfabError) { try await feature.ask(.forget(id)) }

    /// Notifies the server that this person has seen how a call ended, so that ``Event/ended(_:)`` is not sent again.
    public func seen(_ id: CallID) async throws(ConfabError) { try await feature.ask(.seen(id)) }
}
