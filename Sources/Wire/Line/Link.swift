/// One end of a client connection's numbering (protocol §1 and §3): what was sent and not yet acknowledged, what was
/// received. It owns no socket and knows no time, so the same machine serves the server, the SDK and the tests.
///
/// Invariant: every message handed to `send` is either acknowledged, kept for replay, or the link says that it overran.
public struct Link: Equatable, Sendable {
    /// How much is kept for a resume.
    public struct Bounds: Equatable, Sendable {
        public var messages: Int
        public var bytes: Int
        public init(messages: Int = 256, bytes: Int = 64 * 1024) { (self.messages, self.bytes) = (messages, bytes) }
    }

    /// What to do with a received message.
    public enum Receipt: Equatable, Sendable {
        case deliver
        /// Already delivered; ignore it.
        case duplicate
        /// Something before it never came.
        case gap
    }

    private struct Kept: Equatable, Sendable {
        var seq: UInt64
        var bytes: [UInt8]
    }

    private let bounds: Bounds
    private var kept: [Kept] = []
    /// Where `kept` begins: dropping from the front of an array each time would move the rest.
    private var first = 0
    private var keptBytes = 0
    private var nextSequence: UInt64 = 1
    private var acknowledged: UInt64 = 0

    /// The number of the last message sent; 0 before the first.
    public var sent: UInt64 { nextSequence - 1 }
    /// The highest number received; everything below it came too.
    public private(set) var received: UInt64 = 0
    /// Numbered messages received since this end last said how far it got.
    public private(set) var unacknowledgedReceipts = 0

    public init(bounds: Bounds = Bounds()) { self.bounds = bounds }

    /// Returns whether another message of `byteCount` bytes can be kept without dropping an older one.
    public func hasRoom(for byteCount: Int) -> Bool {
        kept.count - first < bounds.messages && keptBytes + byteCount <= bounds.bytes
    }

    /// Numbers a message, keeps it, and returns it ready to send.
    public mutating func send(_ encode: (_ seq: UInt64, _ ack: UInt64) -> [UInt8]) -> [UInt8] {
        let bytes = encode(nextSequence, received)
        unacknowledgedReceipts = 0
        kept.append(Kept(seq: nextSequence, bytes: bytes))
        keptBytes += bytes.count
        nextSequence += 1
        while kept.count - first > 1, kept.count - first > bounds.messages || keptBytes > bounds.bytes { dropFirst() }
        return bytes
    }

    /// Says how far this end got, in a message of its own.
    public mutating func acknowledge() -> UInt64 {
        unacknowledgedReceipts = 0
        return received
    }

    public mutating func receive(seq: UInt64) -> Receipt {
        if seq <= received { return .duplicate }
        guard seq == received + 1 else { return .gap }
        received = seq
        unacknowledgedReceipts += 1
        return .deliver
    }

    /// The other end has everything up to `ack`. A number never sent is ignored.
    public mutating func acknowledged(upTo ack: UInt64) {
        guard ack > acknowledged, ack < nextSequence else { return }
        acknowledged = ack
        while first < kept.count, kept[first].seq <= ack { dropFirst() }
    }

    /// What the other end lacks, in order, or `nil` when some of it is no longer kept.
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
