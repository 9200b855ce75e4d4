import Signaling
import Wire

/// Eight seats in front of one hub, each with or without a socket. The crowd acts as the server's shell: it numbers sockets,
/// answers a close with `closed`, and fires timers when they are due.
///
/// Invariants: clients can parse the hub's messages, which are numbered without gaps; no disconnected person is in the queue;
/// timers end eventually; and nothing is left once everyone has disconnected.
struct Crowd {
    struct Seat {
        var socket: SocketID?
        /// Whether the seat is used by a legacy client, and the state of that client.
        var isLegacy = false
        /// Whether the seat is used by a client of PerchRTC's protocol.
        var isPhone = false
        var isPaired = false
        var hasAsked = false
        var sent: UInt64 = 0
        var received: UInt64 = 0
        var secret = ""
    }

    /// The maximum number of timer events, more than any rule needs.
    private static let maxWakeUps = 5000

    private var hub: Hub
    private(set) var now = FuzzProject.now
    var seats = [Seat](repeating: Seat(), count: 8)
    private var lastSocket: UInt64 = 0
    var heard = KnownIDs()

    init() {
        var rules = Rules()
        // Small limits, so that short inputs reach all of them.
        rules.replay = Link.Bounds(messages: 8, bytes: 4096)
        rules.sessionsPerClient = 3
        rules.connectionsPerSession = 4
        rules.streamsPerConnection = 2
        rules.reportLines = 3
        rules.skipsBeforeWait = 2
        rules.maxInterests = 3
        rules.maxBlocks = 2
        rules.entriesPerAddress = 3
        rules.candidatesPerAttempt = 2
        (rules.roomCapacity, rules.maxRooms, rules.roomsPerPerson) = (3, 3, 2)
        (rules.roomLobby, rules.roomBans, rules.roomChatLines) = (2, 1, 3)
        // Shorter than what `goHome` waits.
        rules.roomRetention = .seconds(86_400)
        let ice = ICEProvision(
            stunServers: ["stun:stun.example.org"], turnServers: ["turn:turn.example.org"],
            credentials: .timeLimited(secret: "turn", lifetime: .seconds(300)))
        hub = Hub(
            hubSettings: HubSettings(rules: rules, project: FuzzProject.project, ice: ice, version: "fuzz"),
            generator: CountingGenerator())
    }

    // MARK: Events

    mutating func event(from input: inout InputReader) throws(BrokenProperty) {
        let choice = input.byte()
        let seat = input.index(below: seats.count)
        // Earlier inputs mean the same as before: the largest bytes were only repetitions of the smallest.
        if choice >= 240 { return try dial(seat, from: &input) }
        switch choice % 16 {
        case 0: try arrive(seat, from: &input)
        case 1: try resume(seat, from: &input)
        case 2:
            try leave(seat, leaving: true)
            seats[seat] = Seat(isLegacy: true)
            let arrival = LegacyArrival(socket: connect(seat), address: KnownIDs.address(from: &input))
            try handle(.legacyArrived(arrival))
        case 3: try leave(seat, leaving: input.byte() & 1 == 0)
        case 4: try pass(KnownIDs.duration(from: &input))
        case 5: try operate(seat, from: &input)
        case 6: try sayText(seat, input.bytes(Int(input.byte())))
        default: try say(seat, from: &input)
        }
    }

    mutating func connect(_ seat: Int) -> SocketID {
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        seats[seat].socket = socket
        return socket
    }

    private mutating func arrive(_ seat: Int, from input: inout InputReader) throws(BrokenProperty) {
        try leave(seat, leaving: true)
        seats[seat] = Seat()
        let who = input.byte()
        var record = PersonRecord()
        if who & 0x40 != 0 { record.blocked = [KnownIDs.identity(input.byte())] }
        if who & 0x80 != 0 { record.ban = KnownIDs.ban(.identity(KnownIDs.identity(who)), at: now, from: &input) }
        let identity = Identity(id: KnownIDs.identity(who), name: who & 0x20 != 0 ? "Vouched" : nil)
        let arrival = Arrival(
            socket: connect(seat), identity: identity, newIdentitySecret: who & 0x10 != 0 ? "a_secret" : nil,
            record: record,
            address: KnownIDs.address(from: &input), name: heard.name(from: &input))
        try handle(.arrived(arrival))
    }

    /// Resumes the client of this or another seat, with or without lost messages.
    private mutating func resume(_ seat: Int, from input: inout InputReader) throws(BrokenProperty) {
        let (claimed, missed) = (input.index(below: seats.count), UInt64(input.byte() % 12))
        let other = seats[claimed]
        let received = other.received >= missed ? other.received - missed : other.received + missed
        try leave(seat, leaving: false)
        if input.byte() & 1 == 0 { try leave(claimed, leaving: false) }
        seats[seat] = Seat(sent: other.sent, received: received, secret: other.secret)
        let arrival = Arrival(
            socket: connect(seat), identity: Identity(id: KnownIDs.identity(input.byte())),
            resume: Hello.Resume(secret: other.secret, received: received), address: KnownIDs.address(from: &input))
        try handle(.arrived(arrival))
    }

    mutating func leave(_ seat: Int, leaving: Bool) throws(BrokenProperty) {
        guard let socket = seats[seat].socket else { return }
        seats[seat].socket = nil
        try handle(.closed(socket, leaving: leaving))
    }

    private mutating func operate(_ seat: Int, from input: inout InputReader) throws(BrokenProperty) {
        let identity = KnownIDs.identity(input.byte())
        switch input.byte() % 4 {
        case 0: try handle(.banned(KnownIDs.ban(.identity(identity), at: now, from: &input)))
        case 1: try handle(.banned(KnownIDs.ban(.address("203.0.113.1"), at: now, from: &input)))
        case 2: try handle(.unbanned(identity))
        default:
            guard let socket = seats[seat].socket else { return }
            try handle(.expel(socket, WireError(.banned, "You are banned from this server."), .forbidden))
        }
    }

    private mutating func say(_ seat: Int, from input: inout InputReader) throws(BrokenProperty) {
        guard let socket = seats[seat].socket else { return }
        if seats[seat].isPhone { return try signal(seat, from: &input) }
        if seats[seat].isLegacy {
            let request: RouletteTokRequest = input.byte() & 1 == 0 ? .next : .disconnectPartners
            if request == .next { seats[seat].hasAsked = true }
            return try handle(.asked(socket, request))
        }
        let message = heard.message(from: &input)
        let seq = message.isUnnumbered ? nil : seats[seat].sent + 1
        // Encode the message like one from the network, so that it cannot be longer than allowed.
        try sayText(seat, Envelope(seq: seq, ack: seats[seat].received, message: message).encode())
    }

    /// Sends arbitrary text in place of a whole message, including its number.
    private mutating func sayText(_ seat: Int, _ text: [UInt8]) throws(BrokenProperty) {
        guard let socket = seats[seat].socket else { return }
        if seats[seat].isPhone { return try sayToPhones(text, seat) }
        let input: Input
        let seq: UInt64?
        do throws(UnreadableMessage) {
            let envelope = try Envelope<ClientMessage>.decode(text)
            (input, seq) = (.message(socket, envelope), envelope.message.isUnnumbered ? nil : envelope.seq)
        } catch {
            (input, seq) = (.unreadable(socket, error), error.seq)
        }
        if seq == seats[seat].sent + 1 { seats[seat].sent += 1 }
        try handle(input)
    }

    // MARK: The hub's messages

    mutating func handle(_ input: Input) throws(BrokenProperty) {
        try carryOut(hub.handle(input, now: now))
        try ring(until: now)
        try checkFigures()
    }

    private mutating func pass(_ duration: Duration) throws(BrokenProperty) {
        try ring(until: now + duration)
        now = now + duration
        try checkFigures()
    }

    private mutating func ring(until end: Timestamp) throws(BrokenProperty) {
        var wakeUps = 0
        while let next = hub.nextTimeout, next <= end {
            now = max(now, next)
            try carryOut(hub.handleTimeout(now: now))
            wakeUps += 1
            try require(
                wakeUps < Self.maxWakeUps, "there are \(wakeUps) timer events until \(end), more than any rule needs")
        }
    }

    private func checkFigures() throws(BrokenProperty) {
        try require(hub.waitingCount <= hub.personCount, "\(hub.waitingCount) of \(hub.personCount) people wait")
        try require(
            2 * hub.matchCount <= hub.personCount,
            "there are \(hub.matchCount) matches for only \(hub.personCount) people")
        let here = seats.count { $0.socket != nil }
        try require(hub.clientCount >= here, "\(here) sockets are open, but there are \(hub.clientCount) clients")
    }

    private mutating func carryOut(_ effects: [Effect]) throws(BrokenProperty) {
        var closing: [(SocketID, CloseCode)] = []
        var questions: [Question] = []
        for effect in effects {
            switch effect {
            case .persist, .media, .reply, .answer, .push, .deleteFile, .reach, .releasePlace, .post, .recording,
                .broadcast, .composeAhead, .compose, .relay:
                break
            case .query(let question): questions.append(question)
            case .transmit(let socket, let bytes):
                try require(
                    !closing.contains { $0.0 == socket }, "the hub sends something on a socket after closing it")
                if let seat = seats.firstIndex(where: { $0.socket == socket }) { try hear(bytes, at: seat) }
            case .close(let socket, let code, _): closing.append((socket, code))
            }
        }
        for (socket, code) in closing {
            guard let seat = seats.firstIndex(where: { $0.socket == socket }) else { continue }
            seats[seat].socket = nil
            try carryOut(hub.handle(.closed(socket, leaving: code.isLeaving), now: now))
        }
        for question in questions { try carryOut(hub.handle(.answered(question, finding(for: question)), now: now)) }
    }

    /// Returns the answer of a storage that knows every identity but has no data about any.
    private func finding(for question: Question) -> Finding {
        switch question.query {
        case .person(let person, _):
            let known = (0..<6).map { KnownIDs.identity($0) }.first { FuzzProject.project.personID(of: $0) == person }
            return .person(known.map { FoundRecord(identity: $0, record: PersonRecord(profile: Profile())) })
        case .callLog: return .callLog([], next: nil)
        case .callHome: return .callHome(nil)
        case .register: return .push(isReachable: true)
        case .unregister, .wakeable: return .push(isReachable: false)
        }
    }

    private mutating func hear(_ bytes: [UInt8], at seat: Int) throws(BrokenProperty) {
        if seats[seat].isLegacy { return try receiveLegacy(bytes, at: seat) }
        if seats[seat].isPhone { return try receivePhone(bytes) }
        guard let envelope = try? Envelope<ServerMessage>.decode(bytes) else {
            throw BrokenProperty(
                description: "a message from the hub cannot be parsed: \(String(decoding: bytes, as: UTF8.self))")
        }
        if case .welcome(let welcome) = envelope.message {
            seats[seat].secret = welcome.resume.secret
            if welcome.resumed {
                seats[seat].sent = welcome.received
            } else {
                (seats[seat].sent, seats[seat].received) = (0, 0)
            }
        }
        if let seq = envelope.seq {
            let expected = seats[seat].received + 1
            try require(seq == expected, "received \(seq) instead of \(expected): \(envelope.message)")
            seats[seat].received = seq
        }
        heard.note(envelope.message)
    }

    /// Reads one packet for a legacy client. `RouletteTokEvent.packet(_:)` documents what the clients of 2012 can parse, and
    /// `LegacyClient` what they can rely on.
    private mutating func receiveLegacy(_ bytes: [UInt8], at seat: Int) throws(BrokenProperty) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let packet = try? SocketIOPacket(parsing: bytes) else {
            throw BrokenProperty(description: "a packet for a legacy client is invalid: \(text)")
        }
        guard packet.kind == .event else { return }
        guard case .object(let event)? = try? JSONReader.parse(packet.data) else {
            throw BrokenProperty(description: "an event for a legacy client is not JSON: \(text)")
        }
        try require(text.ranges(of: ":::").count == 1, "a client that splits at colons cannot parse \(text)")
        switch event["name"] {
        case .string("subscribe"):
            try require(
                !seats[seat].isPaired || seats[seat].hasAsked,
                "a legacy client got a second partner without requesting one")
            (seats[seat].isPaired, seats[seat].hasAsked) = (true, false)
        case .string("disconnectPartner"):
            try require(seats[seat].isPaired, "a legacy client without a partner is notified that its partner left")
            seats[seat].isPaired = false
        default: break
        }
    }

    // MARK: The end

    /// Disconnects everyone and then advances the clock.
    mutating func goHome() throws(BrokenProperty) {
        for seat in seats.indices { try leave(seat, leaving: seat % 2 == 0) }
        try ring(until: now + .seconds(7 * 24 * 3600))
        try require(hub.nextTimeout == nil, "a timer is left for \(String(describing: hub.nextTimeout))")
        let left = [
            hub.clientCount, hub.personCount, hub.sessionCount, hub.matchCount, hub.waitingCount, hub.callCount,
            hub.roomCount,
        ]
        try require(
            left.allSatisfy { $0 == 0 },
            "clients, people, sessions, matches, waiting, calls and rooms are left: \(left)")
    }
}
