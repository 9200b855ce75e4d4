import Foundation
import Testing

/// One row of the table: the bytes to send after the upgrade, and the expected responses.
struct WebSocketCase: Sendable, CustomTestStringConvertible {
    /// A response of the server. Pings from the server are answered and not listed.
    enum Event: Equatable, Sendable {
        case pong([UInt8])
        /// A `confab.v1` message, by its type.
        case message(String)
        case closed(UInt16)
        /// The connection ended without a close frame.
        case ended
    }

    let name: String
    /// The bytes to send. Each element is sent separately.
    var sends: [[UInt8]]
    /// The allowed sequences of responses. If the received one does not end in a close, the connection must stay open.
    var accepted: [[Event]]
    /// Whether the first bytes are sent in one segment with the upgrade request.
    var joinsUpgrade = false

    var testDescription: String { name }

    init(_ name: String, _ frames: RawFrame..., is events: [Event]) {
        (self.name, sends, accepted) = (name, [frames.flatMap(\.bytes)], [events])
    }

    init(_ name: String, sends: [[UInt8]], isOneOf accepted: [[Event]], joinsUpgrade: Bool = false) {
        (self.name, self.sends, self.accepted, self.joinsUpgrade) = (name, sends, accepted, joinsUpgrade)
    }

    /// Creates a case whose frames must close the connection with one of these codes.
    init(_ name: String, _ frames: RawFrame..., closes codes: UInt16...) {
        (self.name, sends, accepted) = (name, [frames.flatMap(\.bytes)], codes.map { [.closed($0)] })
    }

    /// The whole table. To add a case, add a row to the matching section.
    static let all = framing + fragments + control + closing + text + lengths + segments
}

extension WebSocketCase {
    /// A ping that is sent last if the connection must stay open. The pong shows that it is open.
    static let probe = Array("still there?".utf8)
    private static let closeTimeout: Duration = .seconds(20)

    /// Runs the case. Returns a description of the fault, or nil.
    func fault(port: Int) throws -> String? {
        let line = try open(port: port)
        let endsOpen = !accepted.contains { events in events.contains { $0.isEnd } }
        // Ignore errors while sending, because the server may already have closed. Only its responses count.
        for bytes in sends.dropFirst(joinsUpgrade ? 1 : 0) { line.socket.sendWhatGoes(bytes) }
        if endsOpen { line.socket.sendWhatGoes(RawFrame.ping(Self.probe).bytes) }
        let events = try Self.events(line, until: endsOpen ? .pong(Self.probe) : nil)
        let expected = endsOpen ? accepted.map { $0 + [.pong(Self.probe)] } : accepted
        guard expected.contains(events) else {
            return "expected \(expected.map(Self.text).joined(separator: " or ")), got \(Self.text(events))"
        }
        // RFC 6455 §7.1.1: the server ends the TCP connection first.
        if !endsOpen, !line.socket.isClosedByPeer(within: Self.closeTimeout) {
            return "closed, but the TCP connection is still open"
        }
        return nil
    }

    private func open(port: Int) throws -> RawWebSocket {
        guard joinsUpgrade, let first = sends.first else { return try RawWebSocket.open(port: port) }
        let socket = try RawSocket(port: port)
        try socket.send(Array(RawWebSocket.request().utf8) + first)
        return try RawWebSocket.accept(on: socket)
    }

    private static func events(_ line: RawWebSocket, until last: Event?) throws -> [Event] {
        let deadline = ContinuousClock.now + closeTimeout
        var events: [Event] = []
        while events.last?.isEnd != true, last == nil || events.last != last {
            let frame: ServerFrame?
            do {
                frame = try line.read(within: max(.zero, deadline - ContinuousClock.now))
            } catch let late as TimedOut {
                throw TimedOut("\(late), after \(text(events))")
            }
            guard let frame else { return events + [.ended] }
            switch frame.opcode {
            case 1: events.append(.message(type(of: frame.text)))
            case 8:
                events.append(.closed(frame.closeCode ?? 1005))
                line.socket.sendWhatGoes(RawFrame(opcode: 8, payload: frame.payload).bytes)
            case 9: line.socket.sendWhatGoes(RawFrame.pong(frame.payload).bytes)
            case 10: events.append(.pong(frame.payload))
            default: throw TimedOut("the server sent a frame with opcode \(frame.opcode)")
            }
        }
        return events
    }

    /// The message's type, or the code if it is an error.
    private static func type(of message: String) -> String {
        struct Head: Decodable { var type: String, code: String? }
        guard let head = try? JSONDecoder().decode(Head.self, from: Data(message.utf8)) else { return message }
        return head.code ?? head.type
    }

    private static func text(_ events: [Event]) -> String {
        let words = events.map { event in
            switch event {
            case .pong(let payload): "pong of \(payload.count) bytes"
            case .message(let type): type
            case .closed(let code): "close \(code)"
            case .ended: "end without a close"
            }
        }
        return "[\(words.joined(separator: ", "))]"
    }
}

extension WebSocketCase.Event {
    var isEnd: Bool {
        switch self {
        case .closed, .ended: true
        case .pong, .message: false
        }
    }
}

extension Hostile {
    @Suite("RFC 6455 from raw sockets")
    struct WebSocketTests {
        /// The ping interval is short, because the server waits one interval for a client's close frame. Many pings may
        /// be missed, because a busy machine answers late.
        private static let settings = [
            "CONFAB_CONNECTION_PING_INTERVAL": "250ms", "CONFAB_CONNECTION_MISSED_PINGS": "40",
        ]
        private static let atOnce = 8

        @Test("every frame case ends as the standard requires")
        func frames() async throws {
            try await ServerProcess.run(Self.settings) { server in
                let port = server.port
                let faults = try Self.inParallel(WebSocketCase.all) { try $0.fault(port: port) }
                for (item, fault) in faults { Issue.record("\(item.name): \(fault)") }
                print("hostile    | RFC 6455 | \(WebSocketCase.all.count) cases of frames, \(faults.count) faults")
            }
        }

        @Test("every upgrade request case is answered as the standard requires")
        func handshakes() async throws {
            // The ping interval is long, so that no ping from the server arrives before the expected pong.
            try await ServerProcess.run(["CONFAB_CONNECTION_PING_INTERVAL": "60s"]) { server in
                let port = server.port
                let faults = try Self.inParallel(HandshakeCase.all) { try $0.fault(port: port) }
                for (item, fault) in faults { Issue.record("\(item.name): \(fault)") }
                print("hostile    | RFC 6455 | \(HandshakeCase.all.count) cases of upgrades, \(faults.count) faults")
            }
        }

        /// Runs the cases on a few threads, and returns the failed ones in the table's order.
        private static func inParallel<Case: Sendable>(
            _ cases: [Case], _ play: @escaping @Sendable (Case) throws -> String?
        ) throws -> [(Case, String)] {
            let threads = (0..<atOnce).map { remainder in
                Background {
                    stride(from: remainder, to: cases.count, by: atOnce).compactMap { index in
                        do {
                            return try play(cases[index]).map { (index, $0) }
                        } catch {
                            return (index, "\(error)")
                        }
                    }
                }
            }
            let faults = try threads.flatMap { try $0.join(within: .seconds(240)) }
            return faults.sorted { $0.0 < $1.0 }.map { (cases[$0.0], $0.1) }
        }
    }
}
