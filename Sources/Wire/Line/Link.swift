/// One end of a client connection's numbering (`protocol/README.md` §1 and §3): which messages were sent and not yet
/// acknowledged, and which were received. It owns no socket and reads no clock, so the server, the SDK and the tests use the
/// same machine.
///
/// Invariant: every message that went through `send` is acknowledged or kept for replay, or `replay` reports that it was
/// dropped.
public struct Link: Equatable, Sendable {
    /// How much is kept for a resume. Whichever bound is reached first applies.
    public struct Bounds: Equatable, Sendable {
        /// Maximum number of messages.
        public var messages: Int
        /// Maximum bytes of all messages together.
        public var bytes: Int
        public init(messages: Int = 256, bytes: Int = 64 * 1024) { (self.messages, self.bytes) = (messages, bytes) }
    }

    /// The right way to handle a received message.
    public enum Receipt: Equatable, Sendable {
        /// It is the next one: deliver it.
        case deliver
        /// It was delivered before: ignore it.
        case duplicate
        /// A message before it is missing: the connection must not continue.
        case gap
    }

    private struct Kept: Equatable, Sendable {
        var seq: UInt64
        var bytes: [UInt8]
    }

    private let bounds: Bounds
    private var kept: [Kept] = []
    /// Index of the first message that is still kept. Removing it from the array each time would move all others.
    private var first = 0
    private var keptBytes = 0
    private var nextSequence: UInt64 = 1
    /// The highest number that the other end has acknowledged.
    private var acknowledged: UInt64 = 0

    /// The number of the last message sent; 0 before the first.
    public var sent: UInt64 { nextSequence - 1 }
    /// The highest number received; every number below it was received too.
    public private(set) var received: UInt64 = 0
    /// Numbered messages received since this end last sent an acknowledgement.
    public private(set) var unacknowledgedReceipts = 0

    public init(bounds: Bounds = Bounds()) { self.bounds = bounds }

    /// Whether another message of `byteCount` bytes can be kept without dropping an older one.
    public func hasRoom(for byteCount: Int) -> Bool {
        kept.count - first < bounds.messages && keptBytes + byteCount <= bounds.bytes
    }

    /// Numbers a message, keeps it, and returns it ready to send. Older messages are dropped beyond the bounds; the newest is
    /// always kept.
    ///
    /// - Parameter encode: makes the message, with its number and the number that it acknowledges.
    public mutating func send(_ encode: (_ seq: UInt64, _ ack: UInt64) -> [UInt8]) -> [UInt8] {
        let bytes = encode(nextSequence, received)
        unacknowledgedReceipts = 0
        kept.append(Kept(seq: nextSequence, bytes: bytes))
        keptBytes += bytes.count
        nextSequence += 1
        while kept.count - first > 1, kept.count - first > bounds.messages || keptBytes > bounds.bytes { dropFirst() }
        return bytes
    }

    /// Returns the number to send in an acknowledgement, and counts it as sent.
    public mutating func acknowledge() -> UInt64 {
        unacknowledgedReceipts = 0
        return received
    }

    /// Counts a received message.
    ///
    /// - Returns: whether to deliver it.
    public mutating func receive(seq: UInt64) -> Receipt {
        if seq <= received { return .duplicate }
        guard seq == received + 1 else { return .gap }
        received = seq
        unacknowledgedReceipts += 1
        return .deliver
    }

    /// Records that the other end has everything up to `ack`. A number that was never sent is ignored.
    public mutating func acknowledged(upTo ack: UInt64) {
        guard ack > acknowledged, ack < nextSequence else { return }
        acknowledged = ack
        while first < kept.count, kept[first].seq <= ack { dropFirst() }
    }

    /// Returns the messages that the other end lacks, in order, or nil if some of them are no longer kept.
    ///
    /// - Parameter received: the highest number that the other end received.
    public mutating func replay(after received: UInt64) -> [[UInt8]]? {
        guard received < nextSequence, received >= acknowledged else { return nil }
        acknowledged(upTo: received)
        let missing = kept[first...]
        guard received + 1 == nextSequence || missing.first?.seq == received + 1 else { return nil }
        return missing.map(\.bytes)
    }

    private mutating func dropFirst() {
        keptBytes -= kept[first].bytes.count
        kept[first].bytes = []
        first += 1
        if first == kept.count {
            kept.removeAll(keepingCapacity: first <= 16)
            first = 0
        } else if first > 64 {
            kept.removeFirst(first)
            first = 0
        }
    }
}
