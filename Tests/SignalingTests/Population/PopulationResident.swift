import Cluster
import Wire

/// What a simulated population keeps of one person with one device, in about 120 bytes.
struct PopulationResident {
    enum State: UInt8 {
        /// Has no connection.
        case away
        /// Has a connection and does nothing.
        case idle
        /// Waits for a stranger.
        case searching
        case chatting
        /// Has placed a call that was not accepted yet.
        case calling
        /// A call rings here.
        case ringing
        case talking
        case inRoom
    }

    /// What the person wants to be in, and asks for again after a redirect.
    enum Wish: UInt8 {
        case nothing
        case chat
        case room
        case call
    }

    private(set) var state = State.away
    var wish = Wish.nothing
    /// The node of the connection.
    var node: UInt8 = 0
    /// The node to which the person was redirected, from 1; 0 for none.
    var target: UInt8 = 0
    /// The redirects since the last answer.
    var redirects: UInt8 = 0
    /// Whether this person placed the call that is in progress.
    var isCaller = false
    /// Counts the connections, so that what belongs to an earlier one is ignored.
    private(set) var connections: UInt32 = 0
    /// Counts the changes of the state.
    private(set) var states: UInt32 = 0
    /// The number of the contact to call.
    var callee: UInt32 = 0
    /// The number of the request for the wish; 0 if it was not sent.
    var asked: UInt32 = 0
    var received: UInt32 = 0
    private var acknowledged: UInt32 = 0
    private var sent: UInt32 = 0
    /// The requests without an answer among the last 64. The bit of a request is its number modulo 64.
    private var open: UInt64 = 0
    /// When the last request was sent, and since when the person is in its state.
    private(set) var askedAt = Timestamp(milliseconds: 0)
    private(set) var since = Timestamp(milliseconds: 0)
    var connection = ConnectionID(high: 0, low: 0)
    /// The match or the call.
    var binding = (high: UInt64(0), low: UInt64(0))
    var session: SessionID?

    var isConnected: Bool { state != .away }
    var isEverythingAnswered: Bool { open == 0 }

    mutating func become(_ state: State, at now: Timestamp) {
        (self.state, since) = (state, now)
        states &+= 1
    }

    /// Begins a connection, on which messages are numbered from 1.
    mutating func connect(to node: UInt8, at now: Timestamp) {
        become(.idle, at: now)
        connections &+= 1
        self.node = node
        (received, acknowledged, sent, open, asked) = (0, 0, 0, 0, 0)
        (session, isCaller) = (nil, false)
    }

    // MARK: Numbers

    /// Numbers a request. Returns nil if the one 64 before has no answer yet.
    mutating func ask(at now: Timestamp) -> UInt32? {
        sent += 1
        let bit = UInt64(1) << UInt64(sent % 64)
        guard open & bit == 0 else { return nil }
        open |= bit
        askedAt = now
        return sent
    }

    /// Notes an answer. Returns false if there is no such request, or if it was answered before.
    mutating func answered(_ request: UInt64) -> Bool {
        guard request <= UInt64(sent), request + 64 > UInt64(sent) else { return false }
        let bit = UInt64(1) << (request % 64)
        guard open & bit != 0 else { return false }
        open &= ~bit
        return true
    }

    /// Whether a client should acknowledge what it has received, even if it has nothing to say. Real clients do after 32 messages.
    var owesAcknowledgment: Bool { received - acknowledged >= 32 }

    /// The number of the last message, which the client now acknowledges.
    mutating func acknowledge() -> UInt64 {
        acknowledged = received
        return UInt64(received)
    }
}
