import Signaling
import Wire

/// The state machine of a Socket.IO 0.9 connection, from its handshake to its end, over any transport.
///
/// It owns the rules of the transports: when to send, heartbeats, the queue between polls, and timeouts. It does not depend
/// on sockets or HTTP. It parses RouletteTok requests but does not interpret them. Invariant: packets reach the client once
/// and in order, or the connection ends.
struct SocketIOConnection: SocketIOMachine {
    /// The transports, with their names in URLs.
    enum Transport: String, Sendable, CaseIterable {
        case webSocket = "websocket"
        case xhrPolling = "xhr-polling"
        case jsonpPolling = "jsonp-polling"
    }

    typealias PollID = SocketIOPollID
    typealias Input = SocketIOInput
    typealias Output = SocketIOOutput
    typealias End = SocketIOEnd

    /// Legal next states: `handshaken` → `webSocket`, `polling`, `over`; `webSocket` ↔ `polling` (the client switches
    /// transports); `webSocket` → `over`; `polling` → `leaving`, `over`; `leaving` → `over`.
    private enum State: Equatable, Sendable {
        case handshaken(until: Timestamp)
        case webSocket(nextHeartbeat: Timestamp)
        case polling(Poll)
        /// The server ended the connection between two polls. The next poll gets the last packets.
        case leaving(until: Timestamp)
        case over
    }

    /// Whether the client waits for packets.
    private enum Poll: Equatable, Sendable {
        case waiting(PollID, until: Timestamp)
        /// The client has no poll open at the moment.
        case none(until: Timestamp)
    }

    /// The settings in use. The shell sets them before each input, because a reload changes them.
    var settings: Settings
    private var state: State
    private var queue: [[UInt8]] = []
    /// The most recent poll that was answered, and the packets in its response. They are sent again if the response is
    /// lost. Nil once the client has received it.
    private var lastAnswer: (poll: PollID, packets: [[UInt8]])?
    /// All packets sent so far; nil once anything was received from the client. If the client switches transports
    /// before that, it may have received nothing, so all packets are sent again.
    private var unconfirmed: [[UInt8]]? = []
    private var lastLife: Timestamp
    private var packets: Budget
    private var refusals: Budget
    private var malformed: Budget

    init(settings: Settings, now: Timestamp) {
        self.settings = settings
        state = .handshaken(until: now + settings.times.handshakeTimeout)
        lastLife = now
        packets = Budget(settings.packets, now: now)
        refusals = Budget(settings.refusals, now: now)
        malformed = Budget(settings.malformed, now: now)
    }

    var isOver: Bool { state == .over }

    /// The number of bytes waiting for a poll.
    var queuedBytes: Int { queue.reduce(0) { $0 + $1.count } }

    // MARK: Time

    var nextTimeout: Timestamp? {
        switch state {
        case .handshaken(let until), .leaving(let until), .polling(.waiting(_, let until)), .polling(.none(let until)):
            until
        case .webSocket(let nextHeartbeat): min(nextHeartbeat, lastLife + settings.times.heartbeatTimeout)
        case .over: nil
        }
    }

    mutating func handleTimeout(now: Timestamp) -> [Output] {
        guard let due = nextTimeout, due <= now else { return [] }
        switch state {
        case .handshaken, .leaving:
            state = .over
            return [.over]
        case .polling(.waiting(let poll, _)):
            // Respond to the poll before a proxy times out.
            return answer(poll, [SocketIOPacket(.noop).encode()], now: now)
        case .polling(.none): return finish()
        case .webSocket(let nextHeartbeat):
            guard now < lastLife + settings.times.heartbeatTimeout else {
                return [.closeWebSocket(.goingAway)] + finish()
            }
            guard nextHeartbeat <= now else { return [] }
            state = .webSocket(nextHeartbeat: now + settings.times.heartbeatInterval)
            return [.frame(SocketIOPacket(.heartbeat).encode())]
        case .over: return []
        }
    }

    // MARK: Events

    mutating func handle(_ input: Input, now: Timestamp) -> [Output] {
        if state == .over { return [] }
        switch input {
        case .webSocketOpened: return openWebSocket(now: now)
        case .webSocketClosed, .webSocketDropped: if case .webSocket = state { return finish() } else { return [] }
        case .polled(let poll): return polled(poll, now: now)
        case .pollLost(let poll): return lost(poll, now: now)
        case .received(let bytes): return received(bytes, now: now)
        case .refused: return hasOpened ? refuse(now: now) + flush(now: now) : []
        case .receivedFrame:
            alive(now)
            return []
        case .disconnectRequested: return leave(saying: [], now: now)
        case .send(let packet): return send(packet)
        case .flush: return flush(now: now)
        case .end(.booted): return leave(saying: [SocketIOPacket(.disconnect).encode()], now: now)
        case .end(.goingAway): return goAway(now: now)
        // Only later versions have these inputs.
        case .receivedBinary, .packets, .unreadable, .overlapped, .recovery: return []
        }
    }

    private mutating func alive(_ now: Timestamp) {
        lastLife = now
        unconfirmed = nil
    }

    private var hasOpened: Bool {
        switch state {
        case .webSocket, .polling: true
        case .handshaken, .leaving, .over: false
        }
    }

    /// Ends the connection without sending another packet.
    private mutating func finish() -> [Output] {
        let wasOpen = hasOpened
        state = .over
        queue = []
        return wasOpen ? [.gone, .over] : [.over]
    }

    // MARK: Transports

    private mutating func openWebSocket(now: Timestamp) -> [Output] {
        var outputs: [Output] = []
        switch state {
        case .handshaken: outputs.append(.opened)
        case .polling(.waiting(let poll, _)): outputs += answer(poll, [SocketIOPacket(.noop).encode()], now: now)
        case .webSocket, .polling: break
        case .leaving:
            state = .over
            return [.frame(SocketIOPacket(.disconnect).encode()), .closeWebSocket(.normal), .over]
        case .over: return []
        }
        let isNew = outputs.first == .opened
        state = .webSocket(nextHeartbeat: now + settings.times.heartbeatInterval)
        lastLife = now
        let backlog = isNew ? [SocketIOPacket(.connect).encode()] : takeBacklog()
        // Send `1::` before any packets that result from opening.
        return backlog.map { remember($0) } + outputs
    }

    /// Removes and returns the packets that a client may not have received when it switches transports.
    private mutating func takeBacklog() -> [[UInt8]] {
        defer {
            queue = []
            if unconfirmed != nil { (unconfirmed, lastAnswer) = ([], nil) }
        }
        return (unconfirmed ?? []) + queue
    }

    private mutating func remember(_ packet: [UInt8]) -> Output {
        unconfirmed?.append(packet)
        return .frame(packet)
    }

    private mutating func polled(_ poll: PollID, now: Timestamp) -> [Output] {
        var outputs: [Output] = []
        switch state {
        case .handshaken:
            state = .polling(.waiting(poll, until: now + settings.times.pollDuration))
            return answer(poll, [SocketIOPacket(.connect).encode()], now: now) + [.opened]
        case .webSocket:
            // The client switched from its WebSocket to polling.
            outputs.append(.closeWebSocket(.normal))
            queue = takeBacklog()
        case .polling(.waiting(let earlier, _)):
            outputs += answer(earlier, [SocketIOPacket(.noop).encode()], now: now)
            lastAnswer = nil
        case .polling(.none): alive(now)
        case .leaving:
            let last = queue
            queue = []
            state = .over
            return [.answer(poll, last), .over]
        case .over: return []
        }
        // A new poll means that the client received the previous response. A failed connection would have been reported
        // earlier.
        lastAnswer = nil
        state = .polling(.waiting(poll, until: now + settings.times.pollDuration))
        return outputs + flush(now: now)
    }

    private mutating func answer(_ poll: PollID, _ packets: [[UInt8]], now: Timestamp) -> [Output] {
        state = .polling(.none(until: now + settings.times.closeTimeout))
        lastAnswer = (poll, packets)
        unconfirmed?.append(contentsOf: packets)
        return [.answer(poll, packets)]
    }

    private mutating func lost(_ poll: PollID, now: Timestamp) -> [Output] {
        if case .polling(.waiting(poll, _)) = state {
            // A client that aborted a poll polls again immediately. A closed page does not, and not every browser lets it
            // send a disconnect. So use a shorter timeout than for a slow client that received its response.
            state = .polling(.none(until: now + min(settings.times.lostPollTimeout, settings.times.closeTimeout)))
            return []
        }
        guard let answer = lastAnswer, answer.poll == poll else { return [] }
        lastAnswer = nil
        let noop = SocketIOPacket(.noop).encode()
        let packets = answer.packets.filter { $0 != noop }
        if case .webSocket = state { return packets.map { .frame($0) } }
        unconfirmed = unconfirmed?.dropLast(answer.packets.count)
        queue = packets + queue
        return flush(now: now)
    }

    // MARK: Sending

    private mutating func send(_ packet: [UInt8]) -> [Output] {
        switch state {
        case .webSocket: return [remember(packet)]
        case .polling:
            queue.append(packet)
            guard queue.count <= settings.queuedPackets, queuedBytes <= settings.queuedBytes else { return overflow() }
            return []
        case .handshaken, .leaving, .over: return []
        }
    }

    private mutating func overflow() -> [Output] {
        guard case .polling(.waiting(let poll, _)) = state else { return finish() }
        return [.answer(poll, [SocketIOPacket(.noop).encode()])] + finish()
    }

    private mutating func flush(now: Timestamp) -> [Output] {
        guard case .polling(.waiting(let poll, _)) = state, !queue.isEmpty else { return [] }
        let packets = queue
        queue = []
        return answer(poll, packets, now: now)
    }

    /// Ends the connection after sending the packets in `last`. If the client has no poll open at the moment, they
    /// wait for its next poll.
    private mutating func leave(saying last: [[UInt8]], now: Timestamp) -> [Output] {
        switch state {
        case .over: return []
        case .handshaken: return finish()
        case .webSocket: return last.map { .frame($0) } + [.closeWebSocket(.normal)] + finish()
        case .polling(.waiting(let poll, _)):
            let packets = queue + last
            return [.answer(poll, packets.isEmpty ? [SocketIOPacket(.noop).encode()] : packets)] + finish()
        case .polling(.none):
            guard !last.isEmpty else { return finish() }
            queue += last
            state = .leaving(until: now + settings.times.closeTimeout)
            return [.gone]
        case .leaving: return []
        }
    }

    private mutating func goAway(now: Timestamp) -> [Output] {
        switch state {
        case .webSocket: [.closeWebSocket(.goingAway)] + finish()
        case .polling(.waiting): leave(saying: [], now: now)
        case .handshaken, .polling, .leaving, .over: finish()
        }
    }

    // MARK: Receiving

    private mutating func received(_ bytes: [UInt8], now: Timestamp) -> [Output] {
        guard hasOpened else { return [] }
        alive(now)
        if case .polling(.none) = state { state = .polling(.none(until: now + settings.times.closeTimeout)) }
        let packets: [[UInt8]]
        do throws(WireError) {
            packets = try SocketIOPayload.decode(bytes)
        } catch {
            return reject(error, now: now)
        }
        var outputs: [Output] = packets.count > 1 ? [.counted(packets.count - 1)] : []
        for packet in packets {
            guard hasOpened else { break }
            outputs += receivedPacket(packet, now: now)
        }
        return outputs + flush(now: now)
    }

    private mutating func receivedPacket(_ bytes: [UInt8], now: Timestamp) -> [Output] {
        guard packets.take(settings.packets, now: now) == nil else { return refuse(now: now) }
        do throws(WireError) {
            return try perform(SocketIOPacket(parsing: bytes), now: now)
        } catch {
            return reject(error, now: now)
        }
    }

    /// Sends an error for a packet that exceeds a budget. Disconnects a client that sends too many such packets.
    private mutating func refuse(now: Timestamp) -> [Output] {
        guard refusals.take(settings.refusals, now: now) == nil else {
            return leave(saying: [SocketIOPacket(.disconnect).encode()], now: now)
        }
        return send(RouletteTokEvent.failed(.rateLimited).packet(.object))
    }

    /// Sends an error for an invalid packet. Disconnects a client that sends too many such packets.
    private mutating func reject(_ error: WireError, now: Timestamp) -> [Output] {
        let refusal = send(SocketIOPacket.error(error.code).encode()) + flush(now: now)
        guard malformed.take(settings.malformed, now: now) == nil else {
            return refusal + leave(saying: [SocketIOPacket(.disconnect).encode()], now: now)
        }
        return refusal
    }

    private mutating func perform(_ packet: SocketIOPacket, now: Timestamp) throws(WireError) -> [Output] {
        switch packet.kind {
        case .disconnect: return packet.endpoint.isEmpty ? leave(saying: [], now: now) : []
        case .heartbeat:
            if case .webSocket = state { state = .webSocket(nextHeartbeat: now + settings.times.heartbeatInterval) }
            return []
        case .acknowledgement, .error, .noop: return []
        case .connect, .message, .json, .event: break
        }
        guard packet.endpoint.isEmpty else { return send(SocketIOPacket.noSuchNamespace(packet.endpoint).encode()) }
        if packet.kind == .connect { return send(SocketIOPacket(.connect).encode()) }
        var outputs: [Output] = []
        // Acknowledge even packets that fail, because the client waits for the acknowledgment.
        if let id = packet.id {
            outputs += send(SocketIOPacket.acknowledgement(of: id, isBare: !packet.wantsData).encode())
        }
        guard packet.kind == .event else {
            return outputs + send(SocketIOPacket.error(.unknownType).encode())
        }
        do throws(WireError) {
            outputs.append(.asked(try RouletteTokRequest(event: packet.data)))
        } catch {
            outputs += reject(error, now: now)
        }
        return outputs
    }
}
