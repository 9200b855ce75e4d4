import Wire

/// OpenTok's `hlsStatus` of a broadcast.
public enum HLSStatus: String, Hashable, Sendable, CaseIterable {
    /// Too few segments are there.
    case connecting
    /// Players may begin, and none has asked for a playlist lately.
    case ready
    /// A playlist was requested lately.
    case live
    case ended
    /// The broadcast has failed.
    case error

    /// Players load the playlist every few seconds. If none has for this long, nobody watches.
    public static let watchedFor: Duration = .seconds(30)

    /// - Parameter lastRequest: when a playlist was last requested; nil if none was.
    public init(isReady: Bool, isEnded: Bool, hasFailed: Bool, lastRequest: Timestamp?, at now: Timestamp) {
        if hasFailed {
            self = .error
        } else if isEnded {
            self = .ended
        } else if !isReady {
            self = .connecting
        } else {
            self = lastRequest.map { now - $0 < Self.watchedFor } == true ? .live : .ready
        }
    }
}
