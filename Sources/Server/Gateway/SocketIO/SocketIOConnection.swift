import Signaling
import Wire

/// One connection of Socket.IO 0.9, from its handshake to its end, whatever transport carries it.
///
/// It owns the transport's rules: what is sent when, heartbeats, what waits between two polls, when silence is the end. It
/// knows nothing of sockets or HTTP and, but for the names of RouletteTok's requests, nothing of what is said. Invariant:
/// what is sent reaches the client once and in order, or the connection is over.
struct SocketIOConnection: Sendable {
    enum Transport: String, Sendable, CaseIterable {
        case webSocket = "websocket"
        case xhrPolling = "xhr-polling"
        case jsonpPolling = "jsonp-polling"
    }

    /// A request that waits for packets.
    struct PollID: Hashable, Sendable { var rawValue: UInt64 }

    enum Input: Equatable, Sendable {
        case webSocketOpened
        case webSocketClosed
        case polled(PollID)
        /// The request's connection broke; an answer given to it was not received.
        case pollLost(PollID)
        /// A WebSocket's message, or what was posted.
        case received([UInt8])
        /// A frame that says nothing, but shows life.
        case showedLife
        /// `GET …?disconnect`.
        case disconnectRequested
        case send([UInt8])
        /// What was sent goes out now.
        case flush
        /// The server wants it gone.
        case end(End)
    }

    enum End: Equatable, Sendable {
        /// For good: `0::`.
        case booted
        /// The server restarts: clients reconnect when they hear nothing but the end of the line.
        case goingAway
    }

    enum Output: Equatable, Sendable {
        /// The client is here; now the rules may hear of it.
        case opened
        case asked(RouletteTokRequest)
        case frame([UInt8])
        case answer(PollID, [[UInt8]])
        case closeWebSocket(CloseCode)
        /// For the rules the client is gone. Once.
        case gone
        /// Nothing will come of this connection any more: it can be forgotten. Once, last.
        case over
    }

    struct Settings: Equatable, Sendable {
        var times: ConfabConfiguration.SocketIO
        /// Packets of any kind.
        var packets: Budget.Rate
        /// Packets refused for want of budget; a client that has used this up too is disconnected.
        var refusals: Budget.Rate
        var malformed: Budget.Rate
        /// Waiting for the next poll.
        var queuedPackets: Int
        var queuedBytes: Int

        init(_ configuration: ConfabConfiguration) {
            let rules = configuration.rules
            (times, packets, refusals) = (configuration.socketIO, rules.verbs, rules.refusals)
            malformed = Budget.Rate(perMinute: rules.malformedPerMinute)
            queuedPackets = max(1, rules.replay.messages)
            queuedBytes = max(4096, rules.replay.bytes)
        }
    }

    /// Legal next states: `handshaken` → `webSocket`, `polling`, `over`; `webSocket` ↔ `polling` (a client that tries
    /// another transport); both → `leaving`, `over`; `leaving` → `over`.
    private enum State: Equatable, Sendable {
        case handshaken(until: Timestamp)
        case webSocket(nextHeartbeat: Timestamp)
        case polling(Poll)
        /// Ended by the server between two polls: the next one is told.
        case leaving(until: Timestamp)
        case over
    }

    private enum Poll: Equatable, Sendable {
        case waiting(PollID, until: Timestamp)
        /// Between polls.
        case none(until: Timestamp)
    }

    private let settings: Settings
    private var state: State
    private var queue: [[UInt8]] = []
    /// What the last poll was answered with: goes back into the queue if that answer was lost.
    private var lastAnswer: (poll: PollID, packets: [[UInt8]])?
    /// All that was sent to a client that never showed life: it may be trying another transport because it got nothing.
    private var unheard: [[UInt8]]? = []
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
            // Something has to be said, or proxies would lose patience.
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
        case .webSocketClosed: if case .webSocket = state { return finish() } else { return [] }
        case .polled(let poll): return polled(poll, now: now)
        case .pollLost(let poll): return lost(poll, now: now)
        case .received(let bytes): return received(bytes, now: now)
        case .showedLife:
            alive(now)
            return []
        case .disconnectRequested: return leave(saying: [], now: now)
        case .send(let packet): return send(packet)
        case .flush: return flush(now: now)
        case .end(.booted): return leave(saying: [SocketIOPacket(.disconnect).encode()], now: now)
        case .end(.goingAway): return goAway(now: now)
        }
    }

    private mutating func alive(_ now: Timestamp) {
        lastLife = now
        unheard = nil
    }

    private var hasOpened: Bool {
        switch state {
        case .webSocket, .polling: true
        case .handshaken, .leaving, .over: false
        }
    }

    /// Forgotten by both sides.
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
        // First of all `1::`, then whatever opening brings.
        return backlog.map { remember($0) } + outputs
    }

    /// What a client that changes its transport has not got.
    private mutating func takeBacklog() -> [[UInt8]] {
        defer {
            queue = []
            if unheard != nil { (unheard, lastAnswer) = ([], nil) }
        }
        return (unheard ?? []) + queue
    }

    private mutating func remember(_ packet: [UInt8]) -> Output {
        unheard?.append(packet)
        return .frame(packet)
    }

    private mutating func polled(_ poll: PollID, now: Timestamp) -> [Output] {
        var outputs: [Output] = []
        switch state {
        case .handshaken:
            state = .polling(.waiting(poll, until: now + settings.times.pollDuration))
            return answer(poll, [SocketIOPacket(.connect).encode()], now: now) + [.opened]
        case .webSocket:
            // It has given up its WebSocket for polling.
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
        // Whoever asks again has read the answer before: a broken line would have been seen first.
        lastAnswer = nil
        state = .polling(.waiting(poll, until: now + settings.times.pollDuration))
        return outputs + flush(now: now)
    }

    private mutating func answer(_ poll: PollID, _ packets: [[UInt8]], now: Timestamp) -> [Output] {
        state = .polling(.none(until: now + settings.times.closeTimeout))
        lastAnswer = (poll, packets)
        unheard?.append(contentsOf: packets)
        return [.answer(poll, packets)]
    }

    private mutating func lost(_ poll: PollID, now: Timestamp) -> [Output] {
        if case .polling(.waiting(poll, _)) = state {
            // Clients that gave up on a poll ask again at once; a page that closed does not, and not every browser lets
            // it say goodbye. So it need not be waited for as long as one that has its answer and is only slow.
            state = .polling(.none(until: now + min(settings.times.lostPollTimeout, settings.times.closeTimeout)))
            return []
        }
        guard let answer = lastAnswer, answer.poll == poll else { return [] }
        lastAnswer = nil
        let noop = SocketIOPacket(.noop).encode()
        let packets = answer.packets.filter { $0 != noop }
        if case .webSocket = state { return packets.map { .frame($0) } }
        unheard = unheard?.dropLast(answer.packets.count)
        queue = packets + queue
        return flush(now: now)
    }

    // MARK: Sending

    private mutating func send(_ packet: [UInt8]) -> [Output] {
        switch state {
        case .webSocket: return [remember(packet)]
        case .polling:
            queue.append(packet)
            let bytes = queue.reduce(0) { $0 + $1.count }
            guard queue.count <= settings.queuedPackets, bytes <= settings.queuedBytes else { return overflow() }
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

    /// The end, with a last word if there is one to say.
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
        var outputs: [Output] = []
        for packet in packets {
            guard hasOpened else { break }
            outputs += receivedPacket(packet, now: now)
        }
        return outputs + flush(now: now)
    }

    private mutating func receivedPacket(_ bytes: [UInt8], now: Timestamp) -> [Output] {
        guard packets.take(settings.packets, now: now) == nil else {
            guard refusals.take(settings.refusals, now: now) == nil else {
                return leave(saying: [SocketIOPacket(.disconnect).encode()], now: now)
            }
            return send(SocketIOPacket.error(.rateLimited).encode())
        }
        do throws(WireError) {
            return try perform(SocketIOPacket(parsing: bytes), now: now)
        } catch {
            return reject(error, now: now)
        }
    }

    /// Said once for each; whoever goes on is cut off.
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
        // Clients that ask for an acknowledgement wait for it, whatever becomes of the packet.
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
