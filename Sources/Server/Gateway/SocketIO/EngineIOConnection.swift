import Signaling
import Wire

/// The state machine of an Engine.IO connection: polling, the upgrade to a WebSocket, heartbeats, and timeouts.
///
/// It owns the transport of Socket.IO 1 to 4. `SocketIONamespace`, a part of it, owns Socket.IO's packets. Invariant: packets
/// reach the client once and in order, or the connection ends or is suspended.
struct EngineIOConnection: SocketIOMachine {
    /// The transports. A polling client may upgrade to a WebSocket once.
    enum Transport: String, Sendable, CaseIterable {
        case polling
        case webSocket = "websocket"
    }

    /// Legal next states: `connecting` → `webSocket`; `polling` → `webSocket`, `leaving`; `polling`, `webSocket` → `suspended`;
    /// all → `over`.
    private enum State: Equatable, Sendable {
        /// The WebSocket's handshake was accepted.
        case connecting(until: Timestamp)
        case polling(Poll, Upgrade)
        case webSocket
        /// The transport dropped. The client may recover the connection's state with another connection.
        case suspended(until: Timestamp)
        /// The server ended the connection between two polls. The next poll gets the last packets.
        case leaving(until: Timestamp)
        case over
    }

    /// Whether the client waits for packets.
    private enum Poll: Equatable, Sendable {
        case waiting(SocketIOPollID, until: Timestamp)
        case none(until: Timestamp)
    }

    /// The state of a polling client's upgrade.
    private enum Upgrade: Equatable, Sendable {
        case none
        /// The WebSocket is open. The client must send a probe.
        case opened(until: Timestamp)
        /// The probe was answered. The client must switch.
        case probed(until: Timestamp)

        var deadline: Timestamp? {
            switch self {
            case .none: nil
            case .opened(let until), .probed(let until): until
            }
        }
    }

    /// How long a poll waits while the client switches to its WebSocket.
    private static let pollDurationInUpgrade = Duration.milliseconds(100)

    let version: EngineIOVersion
    /// The secret id of the connection, which is part of URLs.
    let id: String
    var settings: SocketIOConnection.Settings
    private var state: State
    private var namespace: SocketIONamespace
    private var queue: [[UInt8]] = []
    /// The packets after a request to recover an earlier connection. They are handled after the recovery.
    private var unhandled: [EngineIOPacket] = []
    /// The most recent poll that was answered, and the packets in its response. They are sent again if the response is
    /// lost. Nil once the client has received it.
    private var lastAnswer: (poll: SocketIOPollID, packets: [[UInt8]])?
    private var lastLife: Timestamp
    private var nextPing: Timestamp
    private var packets: Budget
    private var refusals: Budget

    /// The random ids of a connection.
    struct Names: Sendable {
        /// The secret id of the connection, which is part of URLs.
        var id: String
        /// The public id of the connection to the namespace.
        var sid: String
        /// The secret with which the client can recover the connection; nil if its version cannot.
        var pid: String?
    }

    init(
        _ version: EngineIOVersion, _ transport: Transport, names: Names, settings: SocketIOConnection.Settings,
        now: Timestamp
    ) {
        (self.version, id, self.settings) = (version, names.id, settings)
        let until = now + settings.times.handshakeTimeout
        state = transport == .polling ? .polling(.none(until: until), .none) : .connecting(until: until)
        namespace = SocketIONamespace(version, sid: names.sid, pid: names.pid, until: until)
        lastLife = now
        nextPing = now + settings.times.heartbeatInterval
        packets = Budget(settings.packets, now: now)
        refusals = Budget(settings.refusals, now: now)
    }

    var isOver: Bool { state == .over }

    /// How the events of RouletteTok are written for this client.
    var framing: RouletteTokFraming { namespace.framing }

    /// The secret with which the client can recover the connection; nil if it cannot.
    var pid: String? { namespace.recovery?.pid }

    var queuedBytes: Int { keptBytes + waitingBytes }

    /// The size of the events that are kept for a recovery, in bytes.
    private var keptBytes: Int { namespace.recovery?.bytes ?? 0 }

    /// The size of the packets that wait for the next poll, in bytes.
    private var waitingBytes: Int { queue.reduce(0) { $0 + $1.count } }

    /// Whether a request with this transport and method is allowed in the current state. Requests of a suspended connection
    /// are answered like those of an unknown one.
    enum Acceptance { case accepted, overlapping, unsuitable, unknown }

    func acceptance(ofPoll isPoll: Bool) -> Acceptance {
        switch state {
        case .polling(.waiting, _) where isPoll: .overlapping
        case .polling, .leaving: .accepted
        case .webSocket, .connecting: .unsuitable
        case .suspended, .over: .unknown
        }
    }

    var acceptsUpgrade: Acceptance {
        switch state {
        case .polling(_, .none): .accepted
        case .polling, .webSocket, .connecting, .leaving: .unsuitable
        case .suspended, .over: .unknown
        }
    }

    /// The first packet, with the settings of the connection.
    ///
    /// - Parameters:
    ///   - transport: the transport on which it is sent.
    ///   - isScript: true for JSONP, whose forms contain a packet's byte as up to four, such as `%5Cn` for a line break.
    func openPacket(_ transport: Transport, isScript: Bool = false) -> [UInt8] {
        let times = settings.times
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("sid")
        writer.string(id)
        writer.name("upgrades")
        writer.beginArray()
        if transport == .polling { writer.string(Transport.webSocket.rawValue) }
        writer.endArray()
        writer.name("pingInterval")
        writer.integer(times.heartbeatInterval.wholeMilliseconds)
        writer.name("pingTimeout")
        writer.integer(max(1000, (times.heartbeatTimeout - times.heartbeatInterval).wholeMilliseconds))
        writer.name("maxPayload")
        writer.integer(isScript ? (settings.messageSize - "d=".utf8.count) / 4 : settings.messageSize)
        writer.endObject()
        return EngineIOPacket(.open, data: writer.bytes).encode(version)
    }

    // MARK: Time

    var nextTimeout: Timestamp? {
        switch state {
        case .over: nil
        case .connecting(let until), .suspended(let until), .leaving(let until): until
        case .polling(.waiting(_, let until), let upgrade), .polling(.none(let until), let upgrade):
            [until, upgrade.deadline].compactMap { $0 }.reduce(connectionTimeout, min)
        case .webSocket: connectionTimeout
        }
    }

    /// The next timeout that does not depend on the transport.
    private var connectionTimeout: Timestamp {
        let silence = lastLife + settings.times.heartbeatTimeout
        return [version == .four ? nextPing : nil, namespace.deadline].compactMap { $0 }.reduce(silence, min)
    }

    mutating func handleTimeout(now: Timestamp) -> [SocketIOOutput] {
        guard let due = nextTimeout, due <= now else { return [] }
        switch state {
        case .over: return []
        case .connecting, .suspended: return finish()
        case .leaving:
            state = .over
            return [.over]
        case .polling(let poll, let upgrade):
            if let outputs = connectionTimedOut(now: now) { return outputs }
            if let until = upgrade.deadline, until <= now {
                state = .polling(poll, .none)
                return [.closeWebSocket(.timeout)]
            }
            guard case .waiting(let id, _) = poll else { return closeProbe + drop(now: now) }
            // Respond to the poll before a proxy times out.
            return answer(id, [noop], now: now)
        case .webSocket: return connectionTimedOut(now: now) ?? []
        }
    }

    private mutating func connectionTimedOut(now: Timestamp) -> [SocketIOOutput]? {
        if let until = namespace.deadline, until <= now { return leave(.timeout, saying: [], now: now) }
        if lastLife + settings.times.heartbeatTimeout <= now {
            return (state == .webSocket ? [.closeWebSocket(.goingAway)] : closeProbe) + drop(now: now)
        }
        guard version == .four, nextPing <= now else { return nil }
        nextPing = now + settings.times.heartbeatInterval
        namespace.pinged()
        return transmit(EngineIOPacket(.ping)) + flush(now: now)
    }

    private var noop: [UInt8] { EngineIOPacket(.noop).encode(version) }

    // MARK: Events

    mutating func handle(_ input: SocketIOInput, now: Timestamp) -> [SocketIOOutput] {
        switch (input, state) {
        case (_, .over): []
        case (.webSocketOpened, _): openWebSocket(now: now)
        case (.webSocketClosed, .webSocket), (.webSocketClosed, .connecting): finish()
        case (.webSocketDropped, .webSocket), (.webSocketDropped, .connecting): drop(now: now)
        case (.webSocketClosed, .polling(let poll, _)), (.webSocketDropped, .polling(let poll, _)):
            abandonUpgrade(poll)
        case (.polled(let poll), _): polled(poll, now: now)
        case (.pollLost(let poll), _): lost(poll, now: now)
        case (.overlapped, _), (.unreadable, _): fail(now: now)
        case (.received(let bytes), _): receivedFrame(bytes, now: now)
        case (.receivedBinary(let bytes), _): receivedBinary(bytes, now: now)
        case (.packets(let packets), .polling): received(packets, now: now)
        case (.refused, _): namespace.isOpen ? refuse(now: now) + flush(now: now) : []
        case (.receivedFrame, .webSocket): alive(now)
        case (.disconnectRequested, _): leave(.normal, saying: [], now: now)
        case (.send(let packet), _): send(packet)
        case (.flush, _): flush(now: now)
        case (.recovery(let earlier), _): recover(earlier, now: now)
        case (.end(.booted), _):
            leave(.normal, saying: namespace.isOpen ? [SocketIOMessage(.disconnect).encode()] : [], now: now)
        case (.end(.goingAway), _): leave(.goingAway, saying: [], now: now)
        case (.webSocketClosed, _), (.webSocketDropped, _), (.packets, _), (.receivedFrame, _): []
        }
    }

    private mutating func alive(_ now: Timestamp) -> [SocketIOOutput] {
        lastLife = now
        return []
    }

    // MARK: Ending

    /// Ends the connection without sending another packet.
    private mutating func finish() -> [SocketIOOutput] {
        let wasOpen = namespace.isOpen
        state = .over
        queue = []
        return wasOpen ? [.gone, .over] : [.over]
    }

    /// Handles the loss of the transport. The connection stays suspended if the client can recover it.
    private mutating func drop(now: Timestamp) -> [SocketIOOutput] {
        let released: [SocketIOOutput] =
            if case .polling(.waiting(let poll, _), _) = state { [.answer(poll, [noop])] } else { [] }
        guard namespace.isOpen, namespace.recovery != nil, settings.recoveryTime > .zero else {
            return released + finish()
        }
        state = .suspended(until: now + settings.recoveryTime)
        (queue, lastAnswer) = ([], nil)
        return released + [.suspended]
    }

    /// Ends the connection after sending the Socket.IO packets in `last`. If the client has no poll open at the moment, they
    /// wait for its next poll.
    private mutating func leave(_ code: CloseCode, saying last: [[UInt8]], now: Timestamp) -> [SocketIOOutput] {
        let last = last.map { EngineIOPacket(.message, data: $0).encode(version) }
        switch state {
        case .over: return []
        case .suspended, .connecting: return finish()
        case .leaving: return []
        case .webSocket: return last.map { .frame($0) } + [.closeWebSocket(code)] + finish()
        case .polling(.waiting(let poll, _), _):
            let end = closeProbe
            return [.answer(poll, queue + last + [EngineIOPacket(.close).encode(version)])] + end + finish()
        case .polling(.none, _):
            guard !last.isEmpty else { return closeProbe + finish() }
            let end = closeProbe
            queue += last + [EngineIOPacket(.close).encode(version)]
            state = .leaving(until: now + settings.times.closeTimeout)
            return namespace.isOpen ? end + [.gone] : end
        }
    }

    /// Ends the connection because the client broke the protocol.
    private mutating func fail(now: Timestamp) -> [SocketIOOutput] { leave(.malformed, saying: [], now: now) }

    /// Closes the WebSocket of an unfinished upgrade.
    private var closeProbe: [SocketIOOutput] {
        if case .polling(_, let upgrade) = state, upgrade != .none { [.closeWebSocket(.normal)] } else { [] }
    }

    /// False if the hub no longer knows the client, or never did.
    private var hasClient: Bool {
        switch state {
        case .polling, .webSocket, .suspended: true
        case .connecting, .leaving, .over: false
        }
    }

    /// Returns whether another connection can continue after the event with this offset.
    func canHandOver(after offset: String?) -> Bool { hasClient && namespace.canRecover(after: offset) }

    /// Ends this connection because another one recovers its state.
    ///
    /// - Returns: nil if there is no state to recover. Otherwise the state, and what to do with the transport.
    mutating func handOver() -> (state: SocketIORecovery, outputs: [SocketIOOutput])? {
        guard hasClient, namespace.isOpen, var recovery = namespace.recovery else { return nil }
        let outputs: [SocketIOOutput]
        switch state {
        case .webSocket: outputs = [.closeWebSocket(.replaced)]
        case .polling(.waiting(let poll, _), _): outputs = [.answer(poll, [noop])] + closeProbe
        default: outputs = closeProbe
        }
        recovery.wasSuspended = if case .suspended = state { true } else { false }
        state = .over
        return (recovery, outputs + [.over])
    }

    /// Continues with the state of an earlier connection, or without it, and handles the packets that waited for this.
    private mutating func recover(_ earlier: SocketIORecovery?, now: Timestamp) -> [SocketIOOutput] {
        let outputs = perform(namespace.recover(earlier), now: now)
        let packets = unhandled
        unhandled = []
        return outputs + handle(packets, now: now) + flush(now: now)
    }

    // MARK: Transports

    private mutating func openWebSocket(now: Timestamp) -> [SocketIOOutput] {
        switch state {
        case .connecting:
            state = .webSocket
            lastLife = now
            return [.frame(openPacket(.webSocket))] + perform(namespace.openAutomatically(), now: now)
        case .polling(let poll, .none):
            state = .polling(poll, .opened(until: now + settings.times.handshakeTimeout))
            return []
        case .polling(let poll, _):
            // A second WebSocket has replaced the first one. The client may try again.
            state = .polling(poll, .none)
            return [.closeWebSocket(.normal)]
        case .webSocket, .suspended, .leaving, .over: return [.closeWebSocket(.normal)]
        }
    }

    private mutating func abandonUpgrade(_ poll: Poll) -> [SocketIOOutput] {
        state = .polling(poll, .none)
        return []
    }

    /// Handles a frame on a WebSocket that is not used yet: the client probes it and then switches to it.
    private mutating func probe(
        _ packet: EngineIOPacket?, _ poll: Poll, _ upgrade: Upgrade, now: Timestamp
    ) -> [SocketIOOutput] {
        switch (upgrade, packet?.kind) {
        case (.opened(let until), .ping) where packet?.data == Array("probe".utf8):
            state = .polling(poll, .probed(until: until))
            let answer = EngineIOPacket(.pong, data: "probe".utf8).encode(version)
            return [.frame(answer)] + releasePoll(now: now)
        case (.probed, .upgrade):
            let released = releasePoll(now: now)
            let backlog = queue
            // The client switches only after it has received the response to its last poll.
            (queue, lastAnswer) = ([], nil)
            state = .webSocket
            return released + backlog.map { .frame($0) } + perform(namespace.openAutomatically(), now: now)
        default:
            state = .polling(poll, .none)
            return [.closeWebSocket(.malformed)]
        }
    }

    /// Ends the open poll, because a client stops polling before it switches to its WebSocket.
    private mutating func releasePoll(now: Timestamp) -> [SocketIOOutput] {
        guard case .polling(.waiting(let poll, _), _) = state else { return [] }
        let packets = queue
        queue = []
        return answer(poll, packets.isEmpty ? [noop] : packets, now: now)
    }

    private mutating func polled(_ poll: SocketIOPollID, now: Timestamp) -> [SocketIOOutput] {
        switch state {
        case .polling(.none, let upgrade):
            _ = alive(now)
            // A new poll means that the client received the previous response. A failed connection would have been reported
            // earlier.
            lastAnswer = nil
            // A client that switches to its WebSocket waits for the end of this poll. If it ended at once, a client that does not
            // switch yet would poll again and again.
            let isSwitching = if case .probed = upgrade { true } else { false }
            let duration = isSwitching ? Self.pollDurationInUpgrade : settings.times.pollDuration
            state = .polling(.waiting(poll, until: now + duration), upgrade)
            return perform(namespace.openAutomatically(), now: now) + flush(now: now)
        case .leaving:
            let last = queue
            queue = []
            state = .over
            return [.answer(poll, last), .over]
        case .polling(.waiting, _): return [.answer(poll, [noop])] + fail(now: now)
        case .connecting, .webSocket, .suspended, .over: return [.answer(poll, [noop])]
        }
    }

    private mutating func answer(
        _ poll: SocketIOPollID, _ packets: [[UInt8]], now: Timestamp
    ) -> [SocketIOOutput] {
        guard case .polling(_, let upgrade) = state else { return [] }
        state = .polling(.none(until: now + settings.times.closeTimeout), upgrade)
        lastAnswer = (poll, packets)
        return [.answer(poll, packets)]
    }

    private mutating func lost(_ poll: SocketIOPollID, now: Timestamp) -> [SocketIOOutput] {
        if case .polling(.waiting(poll, _), let upgrade) = state {
            // A client that aborted a poll polls again immediately. A closed page does not. So use a shorter timeout than for
            // a slow client that received its response.
            let times = settings.times
            state = .polling(.none(until: now + min(times.lostPollTimeout, times.closeTimeout)), upgrade)
            return []
        }
        guard let answer = lastAnswer, answer.poll == poll else { return [] }
        lastAnswer = nil
        let packets = answer.packets.filter { $0 != noop }
        guard case .polling = state else { return [] }
        queue = packets + queue
        return flush(now: now)
    }

    // MARK: Sending

    private mutating func send(_ packet: [UInt8]) -> [SocketIOOutput] {
        guard namespace.isOpen else { return [] }
        let packet = namespace.stamp(packet)
        if case .suspended = state { return keptBytes > settings.queuedBytes ? finish() : [] }
        return transmit(EngineIOPacket(.message, data: packet))
    }

    private mutating func transmit(_ packet: EngineIOPacket) -> [SocketIOOutput] { enqueue(packet) + endIfFull() }

    private mutating func enqueue(_ packet: EngineIOPacket) -> [SocketIOOutput] {
        switch state {
        case .webSocket: return [.frame(packet.encode(version))]
        case .polling: queue.append(packet.encode(version))
        case .connecting, .suspended, .leaving, .over: break
        }
        return []
    }

    /// Ends the connection if too much waits for the client's next poll.
    private mutating func endIfFull() -> [SocketIOOutput] {
        guard case .polling = state, queue.count > settings.queuedPackets || waitingBytes > settings.queuedBytes else {
            return []
        }
        let end = closeProbe
        guard case .polling(.waiting(let poll, _), _) = state else { return end + finish() }
        return [.answer(poll, [noop])] + end + finish()
    }

    private mutating func flush(now: Timestamp) -> [SocketIOOutput] {
        guard case .polling(.waiting(let poll, _), _) = state, !queue.isEmpty else { return [] }
        let packets = queue
        queue = []
        return answer(poll, packets, now: now)
    }

    // MARK: Receiving

    private mutating func receivedFrame(_ bytes: [UInt8], now: Timestamp) -> [SocketIOOutput] {
        let packet = try? EngineIOPacket(parsing: bytes, version)
        switch state {
        case .polling(let poll, let upgrade) where upgrade != .none: return probe(packet, poll, upgrade, now: now)
        case .webSocket:
            guard let packet else { return fail(now: now) }
            return received([packet], now: now)
        case .connecting, .polling, .suspended, .leaving, .over: return []
        }
    }

    private mutating func receivedBinary(_ bytes: [UInt8], now: Timestamp) -> [SocketIOOutput] {
        switch state {
        case .polling(let poll, let upgrade) where upgrade != .none: return probe(nil, poll, upgrade, now: now)
        case .webSocket:
            guard let packet = try? EngineIOPacket(binary: bytes, version) else { return fail(now: now) }
            return received([packet], now: now)
        case .connecting, .polling, .suspended, .leaving, .over: return []
        }
    }

    /// Handles the packets of a frame or of a request.
    private mutating func received(_ packets: [EngineIOPacket], now: Timestamp) -> [SocketIOOutput] {
        _ = alive(now)
        if case .polling(.none, let upgrade) = state {
            state = .polling(.none(until: now + settings.times.closeTimeout), upgrade)
        }
        let counted: [SocketIOOutput] = packets.count > 1 ? [.counted(packets.count - 1)] : []
        return counted + handle(packets, now: now) + flush(now: now)
    }

    private mutating func handle(_ packets: [EngineIOPacket], now: Timestamp) -> [SocketIOOutput] {
        var outputs: [SocketIOOutput] = []
        for (index, packet) in packets.enumerated() {
            switch state {
            case .polling, .webSocket: outputs += handle(packet, now: now)
            case .connecting, .suspended, .leaving, .over: break
            }
            guard !namespace.isRecovering else {
                unhandled += packets[(index + 1)...]
                break
            }
        }
        return outputs
    }

    private mutating func handle(_ packet: EngineIOPacket, now: Timestamp) -> [SocketIOOutput] {
        guard packets.take(settings.packets, now: now) == nil else {
            if packet.kind == .message { namespace.skip(packet.isBinary ? nil : packet.data) }
            return refuse(now: now)
        }
        let timeout = settings.times.handshakeTimeout
        switch (packet.kind, version) {
        case (.close, _): return leave(.normal, saying: [], now: now)
        case (.ping, .three): return transmit(EngineIOPacket(.pong, data: packet.data))
        case (.ping, .four), (.pong, .three): return fail(now: now)
        case (.message, _) where packet.isBinary:
            return perform(namespace.receiveAttachment(now: now, timeout: timeout), now: now)
        case (.message, _): return perform(namespace.receive(packet.data, now: now, timeout: timeout), now: now)
        case (.pong, .four):
            namespace.ponged()
            return []
        case (.open, _), (.upgrade, _), (.noop, _): return []
        }
    }

    /// Sends an error for a packet that exceeds a budget. Disconnects a client that sends too many such packets.
    private mutating func refuse(now: Timestamp) -> [SocketIOOutput] {
        guard refusals.take(settings.refusals, now: now) == nil else {
            return leave(.tooMany, saying: [SocketIOMessage(.disconnect).encode()], now: now)
        }
        return transmit(EngineIOPacket(.message, data: namespace.error(.rateLimited)))
    }

    private mutating func perform(_ actions: [SocketIONamespace.Action], now: Timestamp) -> [SocketIOOutput] {
        // End a full connection only after the last action, because `gone` must follow `opened`.
        actions.flatMap { action -> [SocketIOOutput] in
            switch action {
            case .send(let packet): enqueue(EngineIOPacket(.message, data: packet))
            case .opened: [.opened]
            case .left: [.gone]
            case .asked(let request): [.asked(request)]
            case .recover(let pid, let offset): [.recover(pid: pid, offset: offset)]
            case .recovered: [.recovered]
            case .fail: fail(now: now)
            }
        } + endIfFull()
    }
}
