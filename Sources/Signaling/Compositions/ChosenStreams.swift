import Wire

/// The streams of a session, and which of them an archive or a broadcast contains.
///
/// Invariant: with `RecordingConsent.ask`, streams of members who have not accepted are not included.
struct ChosenStreams: Equatable, Sendable {
    private struct Stream: Equatable, Sendable {
        var details: RecordedStream
        /// Whether the shell was asked to include it.
        var isIncluded = false
        /// Whether the shell cannot include it.
        var hasFailed = false
    }

    /// The streams of the session, in the order of publication.
    private var order: [StreamID] = []
    private var streams: [StreamID: Stream] = [:]
    /// Whether only streams of members who accepted are included.
    private let asks: Bool
    /// The members who accepted.
    private var accepted: Set<ConnectionID>

    /// - Parameters:
    ///   - present: the streams that are published already.
    ///   - accepted: the members who accepted already.
    init(_ present: [SessionStream] = [], consent: RecordingConsent = .notify, accepted: Set<ConnectionID> = []) {
        (asks, self.accepted) = (consent == .ask, accepted)
        for stream in present { insert(stream) }
    }

    // MARK: The session

    func contains(_ stream: StreamID) -> Bool { streams[stream] != nil }

    mutating func insert(_ stream: SessionStream) {
        if streams[stream.id] == nil { order.append(stream.id) }
        streams[stream.id] = Stream(details: stream.details)
    }

    /// Removes a stream whose publication has ended.
    ///
    /// - Returns: whether it was included.
    mutating func remove(_ stream: StreamID) -> Bool {
        guard let removed = streams.removeValue(forKey: stream) else { return false }
        order.removeAll { $0 == stream }
        return removed.isIncluded
    }

    /// Returns whether the classes have changed.
    mutating func setClasses(_ classes: [String], of stream: StreamID) -> Bool {
        guard let former = streams[stream]?.details.classes, former != classes else { return false }
        streams[stream]?.details.classes = classes
        return true
    }

    mutating func setConsent(_ accepts: Bool, of client: ConnectionID) {
        if accepts { accepted.insert(client) } else { accepted.remove(client) }
    }

    // MARK: What is included

    func isIncluded(_ stream: StreamID) -> Bool { streams[stream]?.isIncluded == true }

    /// Whether a stream should be included.
    func isActive(in container: some StreamContainer) -> Bool { order.contains { wanted($0, container) != nil } }

    /// The shell cannot include this stream.
    mutating func fail(_ stream: StreamID) {
        streams[stream]?.hasFailed = true
        streams[stream]?.isIncluded = false
    }

    /// Excludes a stream, for example because other tracks of it should be included.
    mutating func exclude(_ stream: StreamID) { streams[stream]?.isIncluded = false }

    /// Excludes the streams that should not be included, and returns them.
    mutating func excludeUnwanted(in container: some StreamContainer) -> [StreamID] {
        let unwanted = order.filter { isIncluded($0) && wanted($0, container) == nil }
        for stream in unwanted { exclude(stream) }
        return unwanted
    }

    /// Includes the streams that should be included, and returns them with the tracks to include.
    ///
    /// - Parameter limit: how many streams may be included in all.
    mutating func includeWanted(in container: some StreamContainer, limit: Int = .max) -> [SessionStream] {
        var count = order.count { isIncluded($0) }
        return order.compactMap { stream in
            guard count < limit else { return nil }
            guard let known = streams[stream], !known.isIncluded, let tracks = wanted(stream, container) else {
                return nil
            }
            streams[stream]?.isIncluded = true
            count += 1
            var details = known.details
            (details.hasAudio, details.hasVideo) = tracks
            return SessionStream(stream, details)
        }
    }

    /// Returns which tracks of a stream should be included; nil for none.
    private func wanted(_ stream: StreamID, _ container: some StreamContainer) -> (audio: Bool, video: Bool)? {
        guard let known = streams[stream], !known.hasFailed else { return nil }
        if asks, !accepted.contains(known.details.publisher) { return nil }
        guard container.streamMode == .manual else { return (true, true) }
        return container.selection.first { $0.stream == stream }.map { ($0.hasAudio, $0.hasVideo) }
    }
}

/// The record of an archive or a broadcast, which contains streams of a session: all, or those that the application has added.
protocol StreamContainer {
    /// What it is called in error messages: "archive" or "broadcast".
    static var noun: String { get }
    /// The code of errors about its state.
    static var conflict: WireError.Code { get }
    var streamMode: StreamMode { get }
    /// The streams that the application has added.
    var selection: [SelectedStream] { get set }
}

extension StreamContainer {
    /// Adds a stream, or changes which of its tracks are included.
    ///
    /// - Returns: whether this has changed anything.
    mutating func select(
        _ selected: SelectedStream, of streams: ChosenStreams, max: Int
    ) throws(WireError) -> Bool {
        try permitSelection()
        guard streams.contains(selected.stream) else {
            throw WireError(.notFound, "This stream is not in the \(Self.noun)'s session. Use the ID of one that is.")
        }
        guard selected.hasAudio || selected.hasVideo else {
            throw WireError(.malformed, "Include the audio of a stream, its video, or both.")
        }
        let former = selection.first { $0.stream == selected.stream }
        guard former != selected else { return false }
        guard former != nil || selection.count < max else {
            throw WireError(
                Self.conflict, "This \(Self.noun) can contain at most \(max) streams. Remove one first.")
        }
        selection.removeAll { $0.stream == selected.stream }
        selection.append(selected)
        return true
    }

    mutating func deselect(_ stream: StreamID) throws(WireError) {
        try permitSelection()
        guard selection.contains(where: { $0.stream == stream }) else {
            throw WireError(.notFound, "This stream is not in the \(Self.noun).")
        }
        selection.removeAll { $0.stream == stream }
    }

    private func permitSelection() throws(WireError) {
        guard streamMode == .manual else {
            throw WireError(
                Self.conflict,
                "This \(Self.noun) contains all streams. Start one with streamMode \"manual\" to choose them.")
        }
    }
}

extension ArchiveRecord: StreamContainer {
    static let noun = "archive"
    static let conflict = WireError.Code.archiveConflict
    var streamMode: StreamMode { request.streamMode }
}

extension BroadcastRecord: StreamContainer {
    static let noun = "broadcast"
    static let conflict = WireError.Code.broadcastConflict
    var streamMode: StreamMode { request.streamMode }
}
