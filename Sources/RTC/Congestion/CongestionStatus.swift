extension CongestionControl {
    /// The properties that the server needs a few times per second. They are read together, because reading one of them
    /// from another module copies the whole value.
    public struct Status: Sendable {
        public var estimate: Bitrate?
        public var budget: Bitrate?
        public var queueDelay: MediaInterval
        public var inherentLossRatio: Double
        public var isUnsettled: Bool
        public var isHoldingVideo: Bool
    }
}
