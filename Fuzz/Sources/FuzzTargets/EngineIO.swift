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

/// An Engine.IO connection that follows a script, and what its shell must be able to rely on.
private struct EngineIOScriptedConnection {
    private let settings = SocketIOConnection.Settings(ConfabConfiguration())
    private var connection: EngineIOConnection
    private var now = Timestamp(milliseconds: 1_000_000)
    private var polls: UInt64 = 0
    private var answered: Set<SocketIOPollID> = []
    private var opened = 0
    private var gone = 0
    private var isOver = false

    init(_ choice: UInt8) {
        let version: EngineIOVersion = choice & 1 == 0 ? .four : .three
        connection = EngineIOConnection(
            version, choice & 2 == 0 ? .webSocket : .polling,
            names: .init(id: "id", sid: "sid", pid: choice & 4 == 0 ? "pid" : nil), settings: settings, now: now)
    }

    mutating func step(_ line: ArraySlice<UInt8>) throws(BrokenProperty) {
        let rest = Array(line.dropFirst())
        switch line.first.map({ $0 % 12 }) {
        case 0: try handle(.webSocketOpened)
        case 1: try handle(.webSocketClosed)
        case 2: try handle(.webSocketDropped)
        case 3:
            if connection.acceptance(ofPoll: true) == .accepted {
                polls += 1
                try handle(.polled(SocketIOPollID(rawValue: polls)))
            } else {
                try handle(.overlapped)
            }
        case 4: try handle(.pollLost(SocketIOPollID(rawValue: polls)))
        case 5:
            let packets = try? EngineIOPayload.decode(rest, connection.version)
            try handle(packets.map { .packets($0) } ?? .unreadable)
        case 6: try handle(.receivedBinary(rest))
        case 7: try pass(.seconds(Int64(rest.first ?? 0)))
        case 8: try handle(.send(RouletteTokEvent.empty.packet(connection.framing)))
        case 9: try handle(.flush)
        case 10: try handle(.end(rest.isEmpty ? .booted : .goingAway))
        default: if String(validating: rest, as: UTF8.self) != nil { try handle(.received(rest)) }
        }
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
        var isRecovering = false
        for output in outputs {
            try require(!isOver, "\(output) after the end")
            switch output {
            case .opened: opened += 1
            case .gone: gone += 1
            case .over: isOver = true
            case .answer(let poll, let packets):
                try require(answered.insert(poll).inserted, "a poll is answered twice")
                try require(!packets.isEmpty, "a poll is answered with nothing")
            case .recover: isRecovering = true
            case .asked: try require(opened > gone, "a request without a client")
            default: break
            }
        }
        try require(opened == gone || opened == gone + 1, "a client opened \(opened) times and left \(gone) times")
        try require(connection.queuedBytes <= settings.queuedBytes + settings.messageSize, "the queue is not bounded")
        try require(connection.isOver == isOver, "the end is not reported")
        if isRecovering, !isOver { try handle(.recovery(nil)) }
    }

    /// Lets the connection time out, after which nothing may remain.
    mutating func end() throws(BrokenProperty) {
        try pass(.seconds(600))
        try require(isOver, "a silent connection does not end")
        try require(opened == gone, "a client remains after the end of its connection")
    }
}
