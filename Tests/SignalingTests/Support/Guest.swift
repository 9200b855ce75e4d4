import Signaling
import Testing
import Wire

/// One client connection as a test plays it: it counts as real clients do, and keeps what it is told until asked for it.
final class Guest: Hashable {
    private unowned let stage: Stage
    /// What its secret proves; another once that is nobody's any more.
    private(set) var identity: IdentityID
    /// Whose device it is: its own unless it was linked.
    private(set) var person: IdentityID
    let name: String?
    let address: String

    private(set) var socket: SocketID?
    private(set) var connection = ConnectionID(high: 0, low: 0)
    private(set) var welcome: Welcome?
    /// What was heard and not yet taken, without the unnumbered.
    private var inbox: [ServerMessage] = []
    /// Unnumbered errors, which close the socket or answer a hello.
    private(set) var refusals: [WireError] = []
    private(set) var closeCode: CloseCode?
    /// The chat at present, as far as this client knows.
    private(set) var match: RouletteNotice.Matched?
    /// The sessions it is in, as far as this client knows.
    private(set) var places: Set<SessionID> = []
    private var leaving: [UInt64: SessionID] = [:]
    private(set) var received: UInt64 = 0
    private var acknowledged: UInt64 = 0
    private var sent: UInt64 = 0
    private var unanswered: Set<UInt64> = []
    /// Which message answered which request.
    private var answers: [UInt64: UInt64] = [:]
    /// Messages sent on a socket that was lost, for tests of resuming.
    private(set) var outbox: [UInt64: ClientMessage] = [:]

    init(on stage: Stage, as identity: IdentityID, name: String? = nil, address: String = "") {
        (self.stage, self.identity, self.name, self.address) = (stage, identity, name, address)
        person = identity
    }

    static func == (left: Guest, right: Guest) -> Bool { left === right }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    // MARK: Coming and going

    /// A name that a program's token vouches for, if any.
    var vouched: String?

    /// - `record`: what storage knows, if not what the stage's archive does.
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
            device: identity
        )
        stage.handle(.arrived(arrival))
    }

    /// Comes back on a new socket, with the secret of the last welcome unless told otherwise, and sends again what the
    /// server lacks.
    func resume(secret: String? = nil, received: UInt64? = nil) {
        let secret = secret ?? welcome?.resume.secret ?? ""
        arrive(resume: Hello.Resume(secret: secret, received: received ?? self.received))
        guard let welcome, welcome.resumed else { return }
        for seq in outbox.keys.sorted() where seq > welcome.received {
            if let message = outbox[seq] { transmit(message, seq: seq) }
        }
    }

    /// The line breaks; nobody said goodbye.
    func drop() { lose(leaving: false) }

    /// The tab is closed.
    func leave() { lose(leaving: true) }

    /// The server is gone, and the line with it.
    func lostServer() { socket = nil }

    private func lose(leaving: Bool) {
        guard let socket else { return }
        self.socket = nil
        stage.disconnect(socket, leaving: leaving)
    }

    // MARK: Saying

    /// Says something with the next number, and returns that number.
    @discardableResult func say(_ message: ClientMessage) -> UInt64 {
        sent += 1
        unanswered.insert(sent)
        outbox[sent] = message
        if case .session(.leave(let leave)) = message { leaving[sent] = leave.session }
        transmit(message, seq: sent)
        return sent
    }

    /// Says something and returns the answer, which is taken out of the inbox.
    @discardableResult func ask(_ message: ClientMessage) -> ServerMessage? {
        let seq = say(message)
        guard let index = inbox.firstIndex(where: { $0.re == seq }) else { return nil }
        return inbox.remove(at: index)
    }

    /// Says it and loses it on the way: the socket is broken already, though nobody knows yet.
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

    /// Real clients say how far they got after 32 messages; without it the server would run out of room.
    var owesAcknowledgement: Bool { received - acknowledged >= 32 }
    func acknowledge() { sayUnnumbered(.ack) }

    // MARK: Hearing

    /// Everything heard since the last time.
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

    /// As if nothing after this message had arrived: it was on the way when the line broke.
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

    /// The number of the last request.
    var lastRequest: UInt64 { sent }

    /// Requests without an answer so far.
    var openRequests: Int { unanswered.count }
}

extension ServerMessage {
    /// The news of people, for tests that are about these.
    var presence: PresenceNotice? { if case .presence(let news) = self { news } else { nil } }
    var nearby: NearbyNotice? { if case .nearby(let news) = self { news } else { nil } }
    var call: CallNotice? { if case .call(let news) = self { news } else { nil } }
    var contact: ContactNotice? { if case .contact(let news) = self { news } else { nil } }

    var errorCode: WireError.Code? {
        if case .error(let error) = self { error.error.code } else { nil }
    }
}
