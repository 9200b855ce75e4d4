import Wire

/// What a client of Socket.IO 4.6 or newer recovers after its connection dropped ("connection state recovery"): its ids, and the
/// events that it has not received.
///
/// The offset of an event is the last element of the event's list, as in Socket.IO's own server. A client that reconnects sends
/// `pid` and the last offset that it received. It keeps that offset when it gets a new `pid`, so offsets begin with `sid`:
/// an offset of an earlier connection is not mistaken for one of this connection.
struct SocketIORecovery: Equatable, Sendable {
    /// The maximum number of events that are kept. Older ones are discarded. A client that missed more than this cannot
    /// recover.
    static let maxEvents = 64

    /// An event that was sent, with its offset.
    private struct Event: Equatable, Sendable {
        var offset: UInt64
        var packet: [UInt8]
    }

    /// The public id of the client's connection to the namespace.
    let sid: String
    /// The secret with which the client recovers its connection.
    let pid: String
    /// Whether the client was suspended when another connection took over this state.
    var wasSuspended = false
    private var events: [Event] = []
    private var lastOffset: UInt64 = 0
    /// The last event before the most recent ping.
    private var pingedOffset: UInt64 = 0

    init(sid: String, pid: String) { (self.sid, self.pid) = (sid, pid) }

    /// The size of the events that are kept, in bytes.
    var bytes: Int { events.reduce(0) { $0 + $1.packet.count } }

    /// Adds an offset to an event and keeps the event.
    ///
    /// - Parameter packet: an event packet, which ends with the bracket of its list. Other packets are not changed.
    mutating func stamp(_ packet: [UInt8]) -> [UInt8] {
        let isEvent = packet.first == SocketIOMessage.Kind.event.rawValue + UInt8(ascii: "0")
        guard isEvent, packet.last == UInt8(ascii: "]") else { return packet }
        lastOffset += 1
        let stamped = packet.dropLast() + Array(",\"\(sid)-\(lastOffset)\"]".utf8)
        events.append(Event(offset: lastOffset, packet: stamped))
        if events.count > Self.maxEvents { events.removeFirst() }
        return stamped
    }

    mutating func pinged() { pingedOffset = lastOffset }

    /// Discards the events before the most recent ping. The client answered it, so it has received them.
    mutating func ponged() {
        let received = pingedOffset
        events.removeAll { $0.offset <= received }
    }

    /// Returns the events after an offset, or nil if some of them are no longer kept, or if no event had this offset.
    ///
    /// - Parameter offset: the last offset that the client received; nil if it received none.
    func missed(after offset: String?) -> [[UInt8]]? {
        let oldest = events.first?.offset ?? lastOffset + 1
        guard let received = number(of: offset), received <= lastOffset, received + 1 >= oldest else { return nil }
        return events.filter { $0.offset > received }.map(\.packet)
    }

    /// Returns the number of the event with this offset, or nil if the offset is not one of this connection.
    private func number(of offset: String?) -> UInt64? {
        guard let offset else { return 0 }
        return offset.hasPrefix(sid + "-") ? UInt64(offset.dropFirst(sid.count + 1)) : nil
    }
}
