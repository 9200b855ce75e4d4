import RTC

extension PeerTransport {
    /// Whether media can be sent.
    var isWritable: Bool { profile != nil && selectedPath != nil }
}
