extension CongestionControl {
    /// The properties that the server needs a few times a second, read at once: to read one from another module copies the whole
    /// value.
    public struct Status: Sendable {
        public var estimate: Bitrate?
        public var budget: Bitrate?
        public var queueDelay: MediaInterval
        public var inherentLossRatio: Double
        public var isUnsettled: Bool
    }
}
