import Signaling
import Wire

@testable import Server

extension FuzzTarget {
    /// Fuzzes the body of a polling request of Engine.IO. The first byte chooses the version.
    static let engineIOPayloads = FuzzTarget("engineio-payloads", dictionary: "engineio") {
        input throws(BrokenProperty) in
        guard let first = input.first else { return }
        let version: EngineIOVersion = first & 1 == 0 ? .four : .three
        let body = Array(input.dropFirst())
        _ = try? EngineIOPacket(binary: body, version)
        guard let packets = try? EngineIOPayload.decode(body, version) else { return }
        try require((1...SocketIOPayload.maxPackets).contains(packets.count), "\(packets.count) packets in one body")
        try require(packets.reduce(0) { $0 + $1.data.count } <= body.count, "the packets are longer than the body")
        // In version 4, the separator cannot be part of a text packet.
        let texts = packets.map { $0.encode(version) }
        let again = try? EngineIOPayload.decode(EngineIOPayload.encode(texts, version), version)
        try require(again == packets, "\(packets) are read back as \(String(describing: again))")
    }

    /// Fuzzes a posted form of Engine.IO's JSONP.
    static let engineIOForms = FuzzTarget("engineio-forms", dictionary: "engineio") { input throws(BrokenProperty) in
        guard let payload = try? EngineIOScript.payload(form: input) else { return }
        try require(payload.count <= input.count, "a form's payload is longer than the form")
    }

    /// Fuzzes a packet of Socket.IO 1 to 4 and the event in it.
    static let socketIOMessages = FuzzTarget("socketio-messages", dictionary: "engineio") {
        input throws(BrokenProperty) in
        guard let packet = try? SocketIOMessage(parsing: input) else { return }
        try require(packet.attachments <= SocketIOMessage.maxAttachments, "\(packet.attachments) attachments")
        // A slash after an explicit default namespace would be read as another namespace.
        if packet.data.first != UInt8(ascii: "/") {
            let again = try? SocketIOMessage(parsing: packet.encode())
            try require(again == packet, "\(packet) is read back as \(String(describing: again))")
        }
        _ = try? RouletteTokRequest(list: packet.data)
        for framing in RouletteTokFraming.allCases {
            let refusal = SocketIOMessage.noSuchNamespace(packet.namespace, framing)
            try require(
                packet.namespace == "/" || (try? SocketIOMessage(parsing: refusal.encode())) == refusal,
                "the error for \(packet.namespace) cannot be parsed")
        }
    }

    /// Fuzzes a connection: each line of the input is a step, chosen by its first byte.
    static let engineIOConnections = FuzzTarget("engineio-connections", dictionary: "engineio") {
        input throws(BrokenProperty) in
        guard let first = input.first else { return }
        var script = EngineIOScriptedConnection(first)
        for line in input.dropFirst().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true) {
            try script.step(line)
        }
        try script.end()
    }
}

/// An Engine.IO client that follows a script, and what the shell of its connections must be able to rely on.
private struct EngineIOScriptedConnection {
    private let settings = SocketIOConnection.Settings(ConfabConfiguration())
    private let version: EngineIOVersion
    private let canRecover: Bool
    private var connection: EngineIOConnection
    /// The client's connection before this one, whose state it can recover, and whether the hub knows the client by it.
    private var earlier: (connection: EngineIOConnection, hasClient: Bool)?
    private var connections = 0
    private var now = Timestamp(milliseconds: 1_000_000)
    private var polls: UInt64 = 0
    private var answered: Set<SocketIOPollID> = []
    private var opened = 0
    private var gone = 0
    private var isOver = false
    /// The number of the last event that was sent, and of the last one that the client received; nil if any may be next.
    private var sent = 0
    private var received: Int?
    /// The number of the first event in the last answer, and whether the client may get it again, because the answer was lost.
    private var firstInAnswer = 0
    private var isAnswerLost = false

    init(_ choice: UInt8) {
        version = choice & 1 == 0 ? .four : .three
        canRecover = choice & 4 == 0
        connection = Self.connection(version, choice & 2 == 0 ? .webSocket : .polling, 0, canRecover, settings, now)
    }

    private static func connection(
        _ version: EngineIOVersion, _ transport: EngineIOConnection.Transport, _ number: Int, _ canRecover: Bool,
        _ settings: SocketIOConnection.Settings, _ now: Timestamp
    ) -> EngineIOConnection {
        let names = EngineIOConnection.Names(id: "id", sid: "sid\(number)", pid: canRecover ? "pid" : nil)
        return EngineIOConnection(version, transport, names: names, settings: settings, now: now)
    }

    mutating func step(_ line: ArraySlice<UInt8>) throws(BrokenProperty) {
        let rest = Array(line.dropFirst())
        switch line.first.map({ $0 % 12 }) {
        case 0: try handle(.webSocketOpened)
        case 1: if let choice = rest.first { try reconnect(choice) } else { try handle(.webSocketClosed) }
        case 2: try handle(.webSocketDropped)
        case 3: try poll()
        case 4:
            isAnswerLost = answered.contains(SocketIOPollID(rawValue: polls))
            try handle(.pollLost(SocketIOPollID(rawValue: polls)))
        case 5:
            let packets = try? EngineIOPayload.decode(rest, version)
            try handle(packets.map { .packets($0) } ?? .unreadable)
        case 6: try handle(.receivedBinary(rest))
        case 7: try pass(.seconds(Int64(rest.first ?? 0)))
        case 8:
            if opened > gone { sent += 1 }
            try handle(.send(Array("2[\"event\",\(sent)]".utf8)))
        case 9: try handle(.flush)
        case 10: try handle(.end(rest.isEmpty ? .booted : .goingAway))
        default: if String(validating: rest, as: UTF8.self) != nil { try handle(.received(rest)) }
        }
    }

    private mutating func poll() throws(BrokenProperty) {
        guard connection.acceptance(ofPoll: true) == .accepted else { return try handle(.overlapped) }
        polls += 1
        try handle(.polled(SocketIOPollID(rawValue: polls)))
    }

    /// Opens another connection, on which the client may recover the one that it had.
    private mutating func reconnect(_ choice: UInt8) throws(BrokenProperty) {
        try endEarlier()
        earlier = (connection, opened > gone)
        connections += 1
        connection = Self.connection(
            version, choice & 1 == 0 ? .polling : .webSocket, connections, canRecover, settings, now)
        (opened, gone, isOver, received) = (0, 0, false, nil)
    }

    private mutating func endEarlier() throws(BrokenProperty) {
        guard let (connection, hasClient) = earlier else { return }
        earlier = nil
        var old = connection
        var outputs = old.handle(.end(.goingAway), now: now)
        // The last packets for a removed client may wait for its next poll.
        if let until = old.nextTimeout { outputs += old.handleTimeout(now: until) }
        try require(outputs.contains(.gone) == hasClient, "a client remains after the end of its earlier connection")
        try require(old.isOver, "an earlier connection does not end")
    }

    private mutating func pass(_ duration: Duration) throws(BrokenProperty) {
        let end = now + duration
        var steps = 0
        while let next = connection.nextTimeout, next <= end {
            now = max(now, next)
            try check(connection.handleTimeout(now: now))
            steps += 1
            try require(steps < 1000, "the timeouts of a connection do not advance")
        }
        now = end
    }

    private mutating func handle(_ input: SocketIOInput) throws(BrokenProperty) {
        try check(connection.handle(input, now: now))
    }

    private mutating func check(_ outputs: [SocketIOOutput]) throws(BrokenProperty) {
        var offset: String??
        for output in outputs {
            try require(!isOver, "\(output) after the end")
            switch output {
            case .opened: opened += 1
            case .gone: gone += 1
            case .over: isOver = true
            case .answer(let poll, let packets):
                try require(answered.insert(poll).inserted, "a poll is answered twice")
                try require(!packets.isEmpty, "a poll is answered with nothing")
                let events = packets.compactMap(Self.number)
                firstInAnswer = events.first ?? (received ?? 0) + 1
                for number in events { try receive(number) }
            case .frame(let packet): if let number = Self.number(packet) { try receive(number) }
            case .recover(_, let after): offset = .some(after)
            case .asked, .recovered: try require(opened > gone, "\(output) without a client")
            default: break
            }
        }
        try require(opened == gone || opened == gone + 1, "a client opened \(opened) times and left \(gone) times")
        try require(
            connection.queuedBytes <= 2 * (settings.queuedBytes + settings.messageSize), "the queue is not bounded")
        try require(connection.isOver == isOver, "the end is not reported")
        if let offset, !isOver { try recover(after: offset) }
    }

    /// Returns the number of the event in a packet; nil if it is another packet.
    private static func number(_ packet: [UInt8]) -> Int? {
        let prefix = Array("42[\"event\",".utf8)
        guard packet.starts(with: prefix) else { return nil }
        let digits = packet.dropFirst(prefix.count).prefix { 0x30...0x39 ~= $0 }
        return Int(String(decoding: digits, as: UTF8.self))
    }

    /// Checks that events arrive once and in order, unless an answer with them was lost.
    private mutating func receive(_ number: Int) throws(BrokenProperty) {
        let isNext = received.map { number == $0 + 1 } ?? true
        let isRepeated = isAnswerLost && number == firstInAnswer
        try require(isNext || isRepeated, "event \(number) follows event \(received ?? 0)")
        (received, isAnswerLost) = (number, false)
    }

    /// Hands the client over from its earlier connection, as the shell does.
    private mutating func recover(after offset: String?) throws(BrokenProperty) {
        guard var (old, _) = earlier, old.canHandOver(after: offset), let (state, outputs) = old.handOver() else {
            try endEarlier()
            return try handle(.recovery(nil))
        }
        earlier = nil
        try require(outputs.last == .over && !outputs.contains(.gone), "\(outputs) after a hand-over")
        opened += 1
        try handle(.recovery(state))
    }

    /// Lets the connections time out, after which nothing may remain.
    mutating func end() throws(BrokenProperty) {
        try endEarlier()
        try pass(.seconds(600))
        try require(isOver, "a silent connection does not end")
        try require(opened == gone, "a client remains after the end of its connection")
    }
}
