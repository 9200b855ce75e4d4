import Foundation
import Wire

/// Calls from person to person. They ring on all devices of the callee.
///
/// ```swift
/// try await client.presence.appear()
/// for await event in client.calls.events {
///     if case .incoming(let call) = event { try await client.calls.accept(call.id) }
/// }
/// ```
///
/// After a restart of the connection, the calls of this device are joined again.
public actor Calls {
    /// Something that happened to a call.
    public enum Event: Sendable {
        /// A call rings on this device.
        case incoming(Call)
        /// A call changed. Compare with the call before.
        case changed(Call)
        /// What the other person sends arrives. It is told again when a source has changed.
        case receiving(CallID, MediaSubscriber)
        /// The other person's picture is here. It is told again when the source has changed.
        case video(CallID, any VideoSource)
        /// The other person's sound is here, and they send no picture now. ``video(_:_:)`` follows if that changes.
        case audioOnly(CallID)
        /// A call ended. A call that was missed while this device was offline is told again by each process, until
        /// ``Calls/seen(_:)``.
        case ended(CallEnding)
        /// Audio or video of a call failed; the call continues.
        case failed(CallID, ConfabError)
    }

    /// A call in the log.
    public struct Logged: Hashable, Sendable, Identifiable {
        /// The id of the call.
        public let id: CallID
        /// Whether this person placed it.
        public let isOutgoing: Bool
        /// How it ended.
        public let outcome: CallEnding.Outcome
        /// The other person, with their name at that time.
        public let person: Person
        /// Whether it was placed as a video call.
        public let isVideo: Bool
        /// When it was placed.
        public let placedAt: Date
        /// How long it lasted since it was accepted; nil if it was not.
        public let duration: Duration?
        /// Whether a device has shown how it ended.
        public let isSeen: Bool

        init(_ call: LoggedCall) {
            (id, isOutgoing, outcome) = (call.call, call.direction == .outgoing, .init(call.outcome))
            (person, isVideo, placedAt) = (Person(call.person), call.video, call.at.date)
            (duration, isSeen) = (call.duration, call.seen)
        }
    }

    private let way: WayCore<CallsMachine>
    private let media: CallsMedia
    private let source: EventSource<Event>

    init(_ desk: WayDesk) {
        let source = EventSource<Event>()
        let media = CallsMedia(desk.core, source)
        let way = WayCore(CallsMachine(), desk, tell: { media.tell($0) }, perform: { media.perform($0) })
        media.attach(way)
        (self.way, self.media, self.source) = (way, media, source)
        desk.onClose { [weak media] in
            media?.releaseIfUnused()
            source.finish()
        }
    }

    /// What happens to calls.
    nonisolated public var events: Events<Event> { source.events }
    /// The calls that are not over.
    nonisolated public var all: [Call] { way.read(\.calls) }

    /// Publishes this media in calls from now on. The media belongs to the application. Without it, a call that is placed or
    /// accepted captures a camera, or only a microphone for a call without video.
    public func use(_ own: (any LocalMedia)?) { media.use(own) }

    /// Calls a person. If the callee is busy or cannot be reached, the call's end follows.
    ///
    /// - Throws: `not_present` before ``Presence/appear(_:)``, `not_found`, `call_not_allowed`, `elsewhere`, `rate_limited`.
    @discardableResult
    public func start(_ person: PersonID, video: Bool = true) async throws(ConfabError) -> Call {
        try await media.capture(video: video)
        defer { media.releaseIfUnused() }
        guard case .call(.placed(let placed)) = try await way.ask(.start(person, video: video)) else { throw .noAnswer }
        guard let call = way.read({ $0.call(placed.call) }) else {
            throw ConfabError(.callState, "The call ended while it was placed. Its end is an event.")
        }
        return call
    }

    /// Accepts a call that rings here, and ends any other call.
    ///
    /// - Throws: `call_state` if it no longer rings.
    public func accept(_ id: CallID, video: Bool = true) async throws(ConfabError) {
        try await media.capture(video: video)
        defer { media.releaseIfUnused() }
        try await way.ask(.accept(id, video: video))
    }

    /// Declines a call that rings here.
    public func decline(_ id: CallID) async throws(ConfabError) { try await way.ask(.decline(id)) }

    /// Ends a call in any state. It ends here at once.
    public func end(_ id: CallID) async throws(ConfabError) { try await way.ask(.end(id)) }

    /// Turns this device's video in a call on or off.
    public func update(_ id: CallID, video: Bool) async throws(ConfabError) {
        if video { try await media.capture(video: true) }
        defer { media.releaseIfUnused() }
        try await way.ask(.update(id, video: video))
        media.setVideo(video, in: id)
    }

    /// Sends sound in a call or stops to send it, and tells the other person. Also before the call is accepted.
    public func setAudio(_ isOn: Bool, in id: CallID) { media.setAudio(isOn, in: id) }

    /// Returns to a call that this device placed or was in, after the application was started again. Calls that this object
    /// knows are rejoined without it.
    ///
    /// - Throws: `not_found` if it has ended, `elsewhere` while another device has it.
    public func rejoin(_ id: CallID) async throws(ConfabError) { try await way.ask(.rejoin(id)) }

    /// A page of the call log, newest first.
    ///
    /// - Parameters:
    ///   - before: `next` of the page before; nil for the newest calls.
    ///   - limit: 1 to 50.
    public func log(before: String? = nil, limit: Int = 50) async throws(ConfabError) -> (
        calls: [Logged], next: String?
    ) {
        let page = CallVerb.LogPage(before: before, limit: min(max(limit, 1), 50))
        guard case .call(.log(let log)) = try await way.ask(.log(page)) else { throw .noAnswer }
        return (log.calls.map(Logged.init), log.next)
    }

    /// Deletes a call from the log; nil deletes all.
    public func forget(_ id: CallID?) async throws(ConfabError) { try await way.ask(.forget(id)) }

    /// Tells the server that the person knows how a call ended.
    public func seen(_ id: CallID) async throws(ConfabError) { try await way.ask(.seen(id)) }
}
