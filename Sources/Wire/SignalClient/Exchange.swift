/// The numbered messages of one client connection (`protocol/README.md` §1): message numbers in both directions, unanswered
/// requests, and the next acknowledgment. If a connection cannot be resumed, a new exchange starts.
///
/// Invariant: a request is in `unanswered` from `send` until `takeRequest` or the end of the exchange.
struct Exchange: Sendable {
    /// How many messages may arrive before an acknowledgment is sent in a separate message (`protocol/README.md` §1).
    private static let maxUnacknowledged = 32
    /// How much time may pass before an acknowledgment is sent in a separate message.
    private static let maxAcknowledgementDelay = Duration.seconds(2)

    /// A request that was sent and not answered.
    struct Request: Equatable, Sendable {
        var id: SignalClient.RequestID
        /// The request, to send it to another node; nil for a session description, which belongs to one connection.
        var message: ClientMessage?
    }

    private var link: Link
    private let maxRequests: Int
    private var requests: [UInt64: Request] = [:]
    private(set) var acknowledgementDeadline: Timestamp?

    init(bounds: Link.Bounds, maxRequests: Int) { (link, self.maxRequests) = (Link(bounds: bounds), maxRequests) }

    /// The highest message number received from the server.
    var received: UInt64 { link.received }
    var unansweredCount: Int { requests.count }
    /// The unanswered requests, in the order in which they were sent.
    var unanswered: [SignalClient.RequestID] { requests.sorted { $0.key < $1.key }.map(\.value.id) }
    /// Whether so many messages have arrived that an acknowledgment must be sent now, before its deadline.
    var mustAcknowledge: Bool { link.unacknowledgedReceipts >= Self.maxUnacknowledged }

    // MARK: Sending

    /// Gives a request its number, and keeps the request until it is acknowledged.
    ///
    /// - Parameters:
    ///   - limits: the size limits from the server's welcome.
    ///   - isConnected: whether the message can be sent immediately. If not, it must fit into the queue of messages
    ///     that are waiting for a connection.
    /// - Returns: the bytes to send.
    /// - Throws: the reason why the request cannot be sent. In that case, nothing has changed.
    mutating func send(
        _ message: ClientMessage, as id: SignalClient.RequestID, limits: Welcome.Bounds, isConnected: Bool
    ) throws(WireError) -> [UInt8] {
        guard !message.isUnnumbered else { throw .unnumbered(message.type) }
        guard requests.count < maxRequests else { throw .tooManyRequests }
        let bytes = Envelope(seq: link.sent + 1, ack: link.received, message: message).encode()
        guard bytes.count <= (message.hasDescription ? limits.description : limits.message) else {
            throw .tooLargeToSend
        }
        guard isConnected || link.hasRoom(for: bytes.count) else { throw .offlineQueueFull }
        acknowledgementDeadline = nil
        requests[link.sent + 1] = Request(id: id, message: message.hasDescription ? nil : message)
        return link.send { _, _ in bytes }
    }

    /// Returns the number to acknowledge. The caller must send this number to the server.
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

    /// Removes and returns the request with this number; returns nil if it is unknown or was already taken.
    mutating func takeRequest(_ seq: UInt64) -> SignalClient.RequestID? { requests.removeValue(forKey: seq)?.id }

    /// Whether the request with this number can be sent to another node.
    func canRepeat(_ seq: UInt64) -> Bool { requests[seq]?.message != nil }

    /// Removes and returns the request with this number, to send it to another node.
    mutating func takeRepeatable(_ seq: UInt64) -> Request? { requests.removeValue(forKey: seq) }

    /// Returns the number of the request that an unreadable message answers; nil if its member `re` is missing or
    /// unreadable too.
    static func answered(byUnreadable bytes: [UInt8]) -> UInt64? {
        guard let value = try? JSONReader.parse(bytes), case .object(let members) = value,
            case .integer(let re)? = members["re"]
        else { return nil }
        return UInt64(exactly: re)
    }

    /// Returns the messages that the server has not received, in order, or nil if some of them are no longer kept.
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
