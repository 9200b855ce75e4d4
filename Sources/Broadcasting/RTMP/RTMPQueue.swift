import Wire

/// Decides which parts a slow RTMP target gets: all that fit into its queue, and after a part that does not fit, none before the next
/// keyframe.
///
/// Pure. The bytes are in the queue of the child process; this knows only how many.
public struct RTMPQueue: Sendable {
    /// The maximum number of bytes that wait: 16 s at 2 Mbit/s.
    public static let maxBytes = 4 << 20

    /// Since when nothing fits; nil if the last part did.
    public private(set) var fullSince: Timestamp?
    /// How many parts were left out.
    public private(set) var dropped = 0

    public init() {}

    /// Takes the start of another ffmpeg, whose queue is empty.
    public mutating func restart() { fullSince = nil }

    /// Decides about a part.
    ///
    /// - Parameter waiting: the number of bytes that wait.
    /// - Returns: whether to append it to the queue.
    public mutating func take(_ part: MediaPart, waiting: Int, at now: Timestamp) -> Bool {
        let fits = part.bytes.count <= Self.maxBytes - min(waiting, Self.maxBytes)
        guard fits, fullSince == nil || part.isIndependent else {
            // A part that would fit waits for its keyframe, which is no stall.
            if !fits, fullSince == nil { fullSince = now }
            dropped += 1
            return false
        }
        fullSince = nil
        return true
    }
}
