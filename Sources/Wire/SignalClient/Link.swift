/// One side of a client connection's numbering (`protocol/README.md` §1 and §3): which messages were sent and not yet
/// acknowledged, and which were received. It has no socket and no clock, so that the server, the SDK and the tests can
/// use the same code.
///
/// Invariant: every message that was sent with `send` is acknowledged, kept for replay, or was dropped because of the
/// bounds. If a dropped message would be needed, `replay` returns nil.
public struct Link: Equatable, Sendable {
    /// How many sent messages are kept for a resume. All three limits apply.
    public struct Bounds: Equatable, Sendable {
        /// Maximum number of messages.
        public var messages: Int
        /// The maximum total size, in bytes, of the messages of normal size: those that have at most this many bytes
        /// each.
        public var bytes: Int
        /// The maximum total size, in bytes, of the messages that are larger than `bytes`, such as session
        /// descriptions.
        public var largeBytes: Int
        public init(messages: Int = 256, bytes: Int = 64 * 1024, largeBytes: Int = 0) {
            (self.messages, self.bytes, self.largeBytes) = (messages, bytes, largeBytes)
        }
    }

    /// What to do with a received message.
    public enum Receipt: Equatable, Sendable {
        /// The message is the next one. Deliver it.
        case deliver
        /// The message was already delivered. Ignore it.
        case duplicate
        /// A message before this one is missing. The connection must not continue.
        case gap
    }

    /// A sent message that is kept for replay.
    private struct Kept: Equatable, Sendable {
        var seq: UInt64
        var bytes: [UInt8]
    }

    private let bounds: Bounds
    private var kept: [Kept] = []
    /// The index of the first message that is still kept. Acknowledged messages before this index stay in the array for a
    /// while, because removing each one immediately would move all others.
    private var first = 0
    /// The total bytes of the messages that are kept because the other side has not acknowledged them.
    public var keptBytes: Int { usualBytes + largeBytes }
    private var usualBytes = 0
    private var largeBytes = 0
    private var nextSequence: UInt64 = 1
    /// The highest message number that the other side has acknowledged.
    private var acknowledged: UInt64 = 0

    /// The number of the most recently sent message; 0 before the first.
    public var sent: UInt64 { nextSequence - 1 }
    /// The highest message number received from the other side; every number below it was received too.
    public private(set) var received: UInt64 = 0
    /// How many numbered messages were received since this side last sent an acknowledgment.
    public private(set) var unacknowledgedReceipts = 0

    public init(bounds: Bounds = Bounds()) { self.bounds = bounds }

    /// Whether another message of `byteCount` bytes can be kept without dropping an older one.
    public func hasRoom(for byteCount: Int) -> Bool {
        guard kept.count - first < bounds.messages else { return false }
        return isLarge(byteCount)
            ? largeBytes + byteCount <= bounds.largeBytes : usualBytes + byteCount <= bounds.bytes
    }

    private func isLarge(_ byteCount: Int) -> Bool { byteCount > bounds.bytes }
    private mutating func count(_ byteCount: Int, times sign: Int) {
        if isLarge(byteCount) { largeBytes += sign * byteCount } else { usualBytes += sign * byteCount }
    }
    private var isOverfull: Bool {
        kept.count - first > bounds.messages || usualBytes > bounds.bytes || largeBytes > bounds.largeBytes
    }

    /// Gives a message its number, keeps the message, and returns it ready to send. If the kept messages exceed the bounds, the
    /// oldest are dropped. The newest message is always kept.
    ///
    /// - Parameter encode: encodes the message with its number and the number to acknowledge.
    public mutating func send(_ encode: (_ seq: UInt64, _ ack: UInt64) -> [UInt8]) -> [UInt8] {
        let bytes = encode(nextSequence, received)
        unacknowledgedReceipts = 0
        kept.append(Kept(seq: nextSequence, bytes: bytes))
        count(bytes.count, times: 1)
        nextSequence += 1
        while kept.count - first > 1, isOverfull { dropFirst() }
        return bytes
    }

    /// Returns the number to acknowledge, and records that it was sent.
    public mutating func acknowledge() -> UInt64 {
        unacknowledgedReceipts = 0
        return received
    }

    /// Records a received message. A duplicate, or a message after a gap, changes nothing.
    ///
    /// - Returns: what to do with it.
    public mutating func receive(seq: UInt64) -> Receipt {
        if seq <= received { return .duplicate }
        guard seq == received + 1 else { return .gap }
        received = seq
        unacknowledgedReceipts += 1
        return .deliver
    }

    /// Records that the other side has received all messages up to the number `ack`. A number that was never sent is
    /// ignored.
    public mutating func acknowledged(upTo ack: UInt64) {
        guard ack > acknowledged, ack < nextSequence else { return }
        acknowledged = ack
        while first < kept.count, kept[first].seq <= ack { dropFirst() }
    }

    /// Returns the messages that the other side has not received, in order, or nil if some of them are no longer kept
    /// or `received` is impossible.
    ///
    /// - Parameter received: the highest message number that the other side has received.
    public mutating func replay(after received: UInt64) -> [[UInt8]]? {
        guard received < nextSequence, received >= acknowledged else { return nil }
        acknowledged(upTo: received)
        let missing = kept[first...]
        guard received + 1 == nextSequence || missing.first?.seq == received + 1 else { return nil }
        return missing.map(\.bytes)
    }

    private mutating func dropFirst() {
        count(kept[first].bytes.count, times: -1)
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
