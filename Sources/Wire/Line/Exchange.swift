/// One numbering of a client connection (`protocol/README.md` §1): the messages in both directions, the requests without an
/// answer, and the acknowledgement that is due. A connection that could not be resumed starts a new one.
///
/// Invariant: a request is in `unanswered` from `send` until `takeRequest` or the end of the exchange.
struct Exchange: Sendable {
    /// How many messages may arrive, and how much time may pass, before an acknowledgement is sent alone (`protocol/README.md`
    /// §1).
    private static let maxUnacknowledged = 32
    private static let maxAcknowledgementDelay = Duration.seconds(2)

    private var link: Link
    private let maxRequests: Int
    private var requests: [UInt64: ClientLine.RequestID] = [:]
    private(set) var acknowledgementDeadline: Timestamp?

    init(bounds: Link.Bounds, maxRequests: Int) { (link, self.maxRequests) = (Link(bounds: bounds), maxRequests) }

    /// The highest number received.
    var received: UInt64 { link.received }
    var unansweredCount: Int { requests.count }
    /// The requests without an answer, in the order in which they were sent.
    var unanswered: [ClientLine.RequestID] { requests.sorted { $0.key < $1.key }.map(\.value) }
    /// Whether an acknowledgement must be sent before its deadline.
    var mustAcknowledge: Bool { link.unacknowledgedReceipts >= Self.maxUnacknowledged }

    // MARK: Sending

    /// Numbers a request and keeps it.
    ///
    /// - Parameters:
    ///   - limits: what the server accepts, from its welcome.
    ///   - isConnected: whether the message is sent at once. Otherwise it must fit next to the others that wait.
    /// - Returns: the bytes to send.
    /// - Throws: why it cannot be sent. Nothing has changed then.
    mutating func send(
        _ message: ClientMessage, as id: ClientLine.RequestID, limits: Welcome.Bounds, isConnected: Bool
    ) throws(WireError) -> [UInt8] {
        guard !message.isUnnumbered else { throw .unnumbered(message.type) }
        guard requests.count < maxRequests else { throw .tooManyRequests }
        let bytes = Envelope(seq: link.sent + 1, ack: link.received, message: message).encode()
        guard bytes.count <= (message.hasDescription ? limits.description : limits.message) else {
            throw .tooLargeToSend
        }
        guard isConnected || link.hasRoom(for: bytes.count) else { throw .offlineQueueFull }
        acknowledgementDeadline = nil
        requests[link.sent + 1] = id
        return link.send { _, _ in bytes }
    }

    /// Returns the number to acknowledge, for a message that carries it.
    mutating func acknowledge() -> UInt64 {
        acknowledgementDeadline = nil
        return link.acknowledge()
    }

    // MARK: Receiving

    mutating func receive(seq: UInt64, now: Timestamp) -> Link.Receipt {
        let receipt = link.receive(seq: seq)
        if receipt == .deliver, acknowledgementDeadline == nil {
            acknowledgementDeadline = now + Self.maxAcknowledgementDelay
        }
        return receipt
    }

    mutating func acknowledged(upTo ack: UInt64) { link.acknowledged(upTo: ack) }

    /// Removes and returns the request with this number.
    mutating func takeRequest(_ seq: UInt64) -> ClientLine.RequestID? { requests.removeValue(forKey: seq) }

    /// Returns the messages that the server lacks, in order, or nil if some of them are no longer kept.
    mutating func replay(after received: UInt64) -> [[UInt8]]? { link.replay(after: received) }
}

extension ClientMessage {
    /// Whether the larger limit for session descriptions applies (`protocol/README.md` §1).
    fileprivate var hasDescription: Bool {
        switch self {
        case .session(.negotiate(let verb)): verb.description != nil
        case .media(.offer): true
        default: false
        }
    }
}
