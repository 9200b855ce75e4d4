import RTC

/// What a router passes to a recorder about a stream, in order with the stream's packets.
public enum RecordingMessage: Equatable, Sendable {
    /// Which media the stream has. The first message of the router that serves the publisher.
    case tracks(audio: Bool, video: Bool)
    /// Packets follow from this source. The format is nil for audio.
    case source(VideoPayloadFormat?, isNew: Bool)
    /// A sender report of the current source (RFC 3550 §6.4.1).
    case report(isVideo: Bool, ntp: NTPTime, timestamp: UInt32, arrivedAt: MediaTime)
    /// The audio or video is muted (false), or sent again (true), since this time. The recorder may read the message much later.
    case forwarded(isVideo: Bool, Bool, at: MediaTime)
    /// Nothing follows from this router. Each router sends it once.
    case ended
}

/// What a recorder requests of a stream.
public struct RecordingRequest: Equatable, Sendable {
    /// Whether the audio is recorded.
    public var audio: Bool
    /// Whether the video is recorded.
    public var video: Bool
    /// The largest layer to record, by its height in pixels. If all are higher, the smallest is recorded.
    public var maxHeight: Int
    /// The codecs that can be recorded. A publisher that sends another one and offers one of these is asked to change.
    public var formats: Set<VideoPayloadFormat>

    public init(audio: Bool, video: Bool, maxHeight: Int, formats: Set<VideoPayloadFormat>) {
        (self.audio, self.video, self.maxHeight, self.formats) = (audio, video, maxHeight, formats)
    }
}
