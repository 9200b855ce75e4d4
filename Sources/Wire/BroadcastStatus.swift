/// The status of a broadcast over HLS, with the names of OpenTok's `hlsStatus`.
public enum HLSStatus: String, Hashable, Sendable, CaseIterable {
    /// Too few segments are there.
    case connecting
    /// Players may begin, and none has asked for a playlist lately.
    case ready
    /// A playlist was requested lately.
    case live
    /// The playlist has its end. Viewers can still play what is in it.
    case ended
    /// The broadcast has failed.
    case error
}

/// The status of one RTMP target of a broadcast, with OpenTok's names.
public enum RTMPStatus: String, Hashable, Sendable, CaseIterable {
    /// First, until media arrives at the target.
    case connecting
    /// Media arrives at the target.
    case live
    /// The target cannot be reached, refuses the stream, or is too slow.
    case offline
    /// ffmpeg cannot be started.
    case error
}
