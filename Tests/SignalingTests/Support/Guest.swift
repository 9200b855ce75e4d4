import Signaling
import Testing
import Wire

/// A client connection driven by a test. It numbers and acknowledges messages as real clients do, and stores received
/// messages until the test takes them.
final class Guest: Hashable {
    private unowned let stage: Stage
    /// The identity that its secret proves. It changes if the identity is deleted.
    private(set) var identity: IdentityID
    /// The identity of the guest's person. It differs from `identity` on a linked device.
    private(set) var person: IdentityID
    let name: String?
    var address: String

    private(set) var socket: SocketID?
    private(set) var connection = ConnectionID(high: 0, low: 0)
    private(set) var welcome: Welcome?
    /// Numbered messages that were received and not yet taken.
    private var inbox: [ServerMessage] = []
    /// Unnumbered errors, which close the socket or answer `hello`.
    private(set) var refusals: [WireError] = []
    private(set) var closeCode: CloseCode?
    /// The current chat, as this client knows it.
    private(set) var match: RouletteNotice.Matched?
    /// The sessions that this client believes it is in.
    private(set) var places: Set<SessionID> = []
    private var leaving: [UInt64: SessionID] = [:]
    private(set) var received: UInt64 = 0
    private var acknowledged: UInt64 = 0
    private var sent: UInt64 = 0
    private var unanswered: Set<UInt64> = []
    /// The number of the answer to each request.
    private var answers: [UInt64: UInt64] = [:]
    /// Messages sent on a lost socket, for tests of resuming.
    private(set) var outbox: [UInt64: ClientMessage] = [:]

    init(on stage: Stage, as identity: IdentityID, name: String? = nil, address: String = "") {
        (self.stage, self.identity, self.name, self.address) = (stage, identity, name, address)
        person = identity
    }

    static func == (left: Guest, right: Guest) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    // MARK: Connecting and disconnecting

    /// The name of the node of the cluster that the guest asks for, if any.
    var at: String?
    /// The name in the guest's token from an embedding program, if any.
    var vouched: String?
    /// Whether the guest's hello says that it shows warnings.
    var showsWarnings = false

    /// - `record`: what storage knows, if it differs from the stage's archive.
    func arrive(resume: Hello.Resume? = nil, record: PersonRecord? = nil) {
        closeCode = nil
        let socket = stage.connect(self)
        self.socket = socket
        switch stage.archive.resolve(identity) {
        case .itself: person = identity
        case .person(let other): person = other
        case .retired:
            identity = stage.identity()
            person = identity
        }
        let arrival = Arrival(
            socket: socket, identity: Identity(id: person, name: vouched),
            record: record ?? stage.archive.record(of: person), resume: resume, address: address, name: name,
            device: identity, at: at, showsWarnings: showsWarnings
        )
        stage.handle(.arrived(arrival))
    }

    /// Reconnects on a new socket, with the secret of the last welcome unless given, and sends the messages that the
    /// server has not received.
    func resume(secret: String? = nil, received: UInt64? = nil) {
        let secret = secret ?? welcome?.resume.secret ?? ""
        arrive(resume: Hello.Resume(secret: secret, received: received ?? self.received))
        guard let welcome, welcome.resumed else { return }
        for seq in outbox.keys.sorted() where seq > welcome.received {
            if let message = outbox[seq] { transmit(message, seq: seq) }
        }
    }

    /// Drops the connection without `bye`.
    func drop() { lose(leaving: false) }

    /// Closes the tab.
    func leave() { lose(leaving: true) }

    /// Loses the connection because the server was stopped or killed.
    func lostServer() { socket = nil }

    private func lose(leaving: Bool) {
        guard let socket else { return }
        self.socket = nil
        stage.disconnect(socket, leaving: leaving)
    }

    // MARK: Sending

    /// Sends a message with the next number and returns that number.
    @discardableResult func say(_ message: ClientMessage) -> UInt64 {
        sent += 1
        unanswered.insert(sent)
        outbox[sent] = message
        if case .session(.leave(let leave)) = message { leaving[sent] = leave.session }
        transmit(message, seq: sent)
        return sent
    }

    /// Sends a request and returns its answer, which is removed from the inbox.
    @discardableResult func ask(_ message: ClientMessage) -> ServerMessage? {
        let seq = say(message)
        guard let index = inbox.firstIndex(where: { $0.re == seq }) else { return nil }
        return inbox.remove(at: index)
    }

    /// Sends a message that is lost, because the socket is broken and neither end knows it yet.
    func sayInVain(_ message: ClientMessage) {
        sent += 1
        unanswered.insert(sent)
        outbox[sent] = message
    }

    func sayUnnumbered(_ message: ClientMessage) {
        guard let socket else { return }
        acknowledged = received
        stage.handle(.message(socket, Envelope(ack: received, message: message)))
    }

    func transmit(_ message: ClientMessage, seq: UInt64) {
        guard let socket else { return }
        acknowledged = received
        stage.handle(.message(socket, Envelope(seq: seq, ack: received, message: message)))
    }

    func mumble(_ error: WireError, numbered: Bool = true) {
        guard let socket else { return }
        if numbered {
            sent += 1
            unanswered.insert(sent)
        }
        stage.handle(.unreadable(socket, UnreadableMessage(seq: numbered ? sent : nil, ack: received, error: error)))
    }

    /// Real clients acknowledge every 32 messages. Without that, the server's buffer would overflow.
    var owesAcknowledgement: Bool { received - acknowledged >= 32 }
    func acknowledge() { sayUnnumbered(.ack) }

    // MARK: Receiving

    /// Returns all messages received since the previous take.
    @discardableResult func take() -> [ServerMessage] {
        defer { inbox = [] }
        return inbox
    }

    func receive(_ bytes: [UInt8], on socket: SocketID) {
        guard socket == self.socket else { return }
        guard let envelope = try? Envelope<ServerMessage>.decode(bytes) else {
            Issue.record("unreadable: \(String(decoding: bytes, as: UTF8.self))")
            return
        }
        guard let seq = envelope.seq else { return receiveUnnumbered(envelope.message) }
        guard seq == received + 1 else {
            Issue.record("\(seq) came after \(received): \(envelope.message)")
            return
        }
        received = seq
        if let re = envelope.message.re {
            answers[seq] = re
            answered(re, envelope.message)
        }
        switch envelope.message {
        case .roulette(.matched(let matched)): match = matched
        case .roulette(.ended(let ended)) where ended.match == match?.match: match = nil
        case .session(.joined(let joined)): places.insert(joined.session)
        case .session(.left(let left)): places.remove(left.session)
        case .ok(let answer): if let session = leaving.removeValue(forKey: answer.re) { places.remove(session) }
        default: break
        }
        inbox.append(envelope.message)
    }

    private func receiveUnnumbered(_ message: ServerMessage) {
        switch message {
        case .welcome(let welcome):
            self.welcome = welcome
            connection = welcome.connection
            if !welcome.resumed { startAfresh() }
        case .error(let error):
            refusals.append(error.error)
            if let re = error.re { answered(re, message) }
        case .pong, .ack: inbox.append(message)
        default: Issue.record("\(message.type) came without a number")
        }
    }

    /// Discards everything after this message, as if it had been in flight when the connection dropped.
    func miss(after seq: UInt64) {
        for (later, re) in answers where later > seq { unanswered.insert(re) }
        (received, acknowledged) = (seq, min(acknowledged, seq))
        inbox = []
    }

    private func startAfresh() {
        (received, acknowledged, sent) = (0, 0, 0)
        (unanswered, answers) = ([], [:])
        outbox = [:]
        (match, places, leaving) = (nil, [], [:])
    }

    private func answered(_ re: UInt64, _ message: ServerMessage) {
        if unanswered.remove(re) == nil { Issue.record("\(re) was answered twice or never asked: \(message)") }
    }

    func closed(_ code: CloseCode, on socket: SocketID) {
        guard socket == self.socket else { return }
        self.socket = nil
        closeCode = code
    }

    /// The number of the most recent request.
    var lastRequest: UInt64 { sent }

    /// The number of requests without an answer.
    var openRequests: Int { unanswered.count }
}

extension ServerMessage {
    /// The presence notice in this message, if any.
    var presence: PresenceNotice? { if case .presence(let news) = self { news } else { nil } }
    var nearby: NearbyNotice? { if case .nearby(let news) = self { news } else { nil } }
    var call: CallNotice? { if case .call(let news) = self { news } else { nil } }
    var contact: ContactNotice? { if case .contact(let news) = self { news } else { nil } }

    var errorCode: WireError.Code? {
        if case .error(let error) = self { error.error.code } else { nil }
    }
}
