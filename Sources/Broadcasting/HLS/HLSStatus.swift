import Wire

extension HLSStatus {
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
