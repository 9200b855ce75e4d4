import Signaling
import Wire

/// The packets of Socket.IO 1 to 4 on a connection: the only namespace, `/`, its events, acknowledgments and attachments.
///
/// A part of `EngineIOConnection`, which transports the packets. Invariant: events are accepted only while the namespace is
/// open.
struct SocketIONamespace: Sendable {
    /// A step that the connection carries out.
    enum Action: Equatable, Sendable {
        case send([UInt8])
        case opened
        case left
        case asked(RouletteTokRequest)
        case recover(pid: String, offset: String?)
        /// The client continues an earlier connection, which was suspended.
        case recovered
        /// The packet breaks the protocol. Close the connection, as Socket.IO's own server does.
        case fail
    }

    /// Legal next states: `closed` → `recovering`, `open`; `recovering` → `open`; `open` → `closed`, `left`.
    private enum State: Equatable, Sendable {
        /// The client must open the namespace in time, unless its version does not request it.
        case closed(until: Timestamp)
        /// The client left. Its version cannot open the namespace again.
        case left(until: Timestamp)
        /// The client requested to recover an earlier connection.
        case recovering(offset: String?)
        case open
    }

    let framing: RouletteTokFraming
    /// The public id of this connection.
    private let sid: String
    private var state: State
    /// The state that a later connection can recover; nil if the client does not support that.
    private(set) var recovery: SocketIORecovery?
    /// A packet whose attachments have not all arrived, and how many are missing. The packet is nil if it, or one of its
    /// attachments, exceeded a budget: then nothing is done when the last one arrives. The attachments themselves are not
    /// kept, because no event uses them.
    private var incomplete: (packet: SocketIOMessage?, missing: Int)?

    /// - Parameters:
    ///   - pid: the secret with which the client can recover the connection; nil if it cannot.
    ///   - until: when the client must have opened the namespace.
    init(_ version: EngineIOVersion, sid: String, pid: String?, until: Timestamp) {
        framing = version == .three ? .list : .listWithErrorEvents
        self.sid = sid
        state = .closed(until: until)
        if version == .four { recovery = pid.map { SocketIORecovery(sid: sid, pid: $0) } }
    }

    var isOpen: Bool { state == .open }

    /// Whether the client waits for the answer to its request to recover an earlier connection.
    var isRecovering: Bool { if case .recovering = state { true } else { false } }

    /// When the connection ends because the namespace is not open; nil if it is.
    var deadline: Timestamp? {
        switch state {
        case .closed(let until), .left(let until): until
        case .recovering, .open: nil
        }
    }

    /// Returns whether the client can continue after the event with this offset.
    func canRecover(after offset: String?) -> Bool { isOpen && recovery?.missed(after: offset) != nil }

    /// Opens the namespace for a client whose version does not request it. Does nothing for others, and if it is open.
    mutating func openAutomatically() -> [Action] {
        guard framing == .list, case .closed = state else { return [] }
        state = .open
        return [.send(SocketIOMessage(.connect).encode()), .opened]
    }

    /// Continues with the state of an earlier connection, or opens the namespace without it.
    mutating func recover(_ earlier: SocketIORecovery?) -> [Action] {
        guard case .recovering(let offset) = state else { return [] }
        state = .open
        guard let earlier, let missed = earlier.missed(after: offset) else { return [.send(connected), .opened] }
        recovery = earlier
        return [.send(connected)] + missed.map { .send($0) } + (earlier.wasSuspended ? [.recovered] : [])
    }

    /// The packet that tells the client its ids.
    private var connected: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("sid")
        writer.string(recovery?.sid ?? sid)
        if let pid = recovery?.pid {
            writer.name("pid")
            writer.string(pid)
        }
        writer.endObject()
        return SocketIOMessage(.connect, data: writer.bytes).encode()
    }

    /// Notes that a ping is sent, or that the client answered one.
    mutating func pinged() { recovery?.pinged() }
    mutating func ponged() { recovery?.ponged() }

    /// Prepares a packet for sending.
    mutating func stamp(_ packet: [UInt8]) -> [UInt8] { recovery?.stamp(packet) ?? packet }

    /// Returns the packet that reports an error.
    mutating func error(_ code: WireError.Code) -> [UInt8] {
        let packet = RouletteTokEvent.failed(code).packet(framing)
        return isOpen ? stamp(packet) : packet
    }

    // MARK: Receiving

    mutating func receive(_ text: [UInt8], now: Timestamp, timeout: Duration) -> [Action] {
        // The attachments of a packet must follow it immediately.
        guard incomplete == nil, let packet = try? SocketIOMessage(parsing: text) else { return [.fail] }
        if packet.attachments > 0 {
            guard packet.namespace == "/", isOpen else { return [.fail] }
            incomplete = (packet, packet.attachments)
            return []
        }
        return perform(packet, until: now + timeout)
    }

    mutating func receiveAttachment(now: Timestamp, timeout: Duration) -> [Action] {
        guard let (packet, missing) = incomplete else { return [.fail] }
        incomplete = missing > 1 ? (packet, missing - 1) : nil
        if let packet, missing <= 1 { return perform(packet, until: now + timeout) }
        return []
    }

    /// Skips a message that exceeds a budget, and the packet to which it belongs.
    ///
    /// - Parameter text: the message, or nil for an attachment.
    mutating func skip(_ text: [UInt8]?) {
        if let text {
            let attachments = (try? SocketIOMessage(parsing: text))?.attachments ?? 0
            if incomplete == nil, attachments > 0 { incomplete = (nil, attachments) }
        } else if let missing = incomplete?.missing {
            incomplete = missing > 1 ? (nil, missing - 1) : nil
        }
    }

    private mutating func perform(_ packet: SocketIOMessage, until: Timestamp) -> [Action] {
        if packet.kind == .connect { return connect(packet) }
        guard packet.namespace == "/", isOpen else { return packet.kind == .disconnect ? [] : [.fail] }
        switch packet.kind {
        case .disconnect:
            // A version that opens the namespace automatically would open it again with its next poll.
            state = framing == .list ? .left(until: until) : .closed(until: until)
            if let names = recovery { recovery = SocketIORecovery(sid: names.sid, pid: names.pid) }
            return [.left]
        case .event, .binaryEvent: return event(packet)
        case .acknowledgement, .binaryAcknowledgement: return []
        case .connect, .error: return [.fail]
        }
    }

    private mutating func connect(_ packet: SocketIOMessage) -> [Action] {
        guard packet.namespace == "/" else {
            return [.send(SocketIOMessage.noSuchNamespace(packet.namespace, framing).encode())]
        }
        // The older version opens the namespace without a request, but some of its clients send one.
        if framing == .list { return [] }
        guard case .closed = state, let auth = try? Self.object(packet.data) else { return [.fail] }
        if recovery != nil, case .string(let pid)? = auth["pid"] {
            var offset: String?
            if case .string(let text)? = auth["offset"] { offset = text }
            state = .recovering(offset: offset)
            return [.recover(pid: pid, offset: offset)]
        }
        state = .open
        return [.send(connected), .opened]
    }

    /// Parses the optional object with which a client opens a namespace.
    private static func object(_ data: [UInt8]) throws -> JSONObject {
        if data.isEmpty { return JSONObject() }
        guard case .object(let object) = try JSONReader.parse(data) else {
            throw WireError(.malformed, "The data of a connection must be a JSON object.")
        }
        return object
    }

    private mutating func event(_ packet: SocketIOMessage) -> [Action] {
        // Acknowledge even unknown events, because the client waits for the acknowledgment.
        let answer: [Action] = packet.id.map { [.send(SocketIOMessage.acknowledgement(of: $0).encode())] } ?? []
        do throws(WireError) {
            return answer + [.asked(try RouletteTokRequest(list: packet.data))]
        } catch {
            guard error.code == .unknownType else { return [.fail] }
            return answer + [.send(self.error(.unknownType))]
        }
    }
}
