import RTC

extension PeerTransport {
    /// Whether media can be sent over the transport.
    var isWritable: Bool { profile != nil && selectedPath != nil }
}
