import Wire

extension FuzzTarget {
    /// Fuzzes a `SignalClient`. The input controls its server, its network, its clock and its owner. `Owner` checks the
    /// invariants after each event.
    static let signalClient = FuzzTarget("client-line", dictionary: "messages") { input throws(BrokenProperty) in
        var input = InputReader(input)
        var owner = Owner(options: input.byte())
        while !input.isEmpty { try owner.event(from: &input) }
        try owner.handle(.leave)
        try require(owner.unsettled.isEmpty, "at the end, \(owner.unsettled) have no outcome")
    }

    /// The owner of a client line. It receives the line's effects and checks that they are allowed.
    private struct Owner {
        private static let maxRequests = 4

        private var line: SignalClient
        private var now = Timestamp(milliseconds: 0)
        /// The most recent sockets that the line requested, and the current socket.
        private var sockets: [SignalClient.Socket] = []
        private var current: SignalClient.Socket?
        private(set) var unsettled: Set<SignalClient.RequestID> = []
        private var requestCount: UInt64 = 0
        /// The number of numbered messages delivered on this connection.
        private var delivered: UInt64 = 0
        private var isConnected = false
        private var hasEnded = false
        /// Whether the client has left, and still tells the server so over a new socket.
        private var isLeaving = false

        init(options byte: UInt8) {
            var options = SignalClient.Options()
            options.reconnects = byte & 1 == 0
            options.connectTimeout = byte & 2 == 0 ? nil : .seconds(20)
            options.replay = Link.Bounds(messages: 3, bytes: 400)
            options.maxRequests = Self.maxRequests
            var hello = Hello()
            hello.token = byte & 4 == 0 ? nil : "a.b.c"
            line = SignalClient(hello: hello, options: options, random: CountingGenerator())
        }

        // MARK: Events

        mutating func event(from input: inout InputReader) throws(BrokenProperty) {
            switch input.byte() % 12 {
            case 0: try handle(.connect)
            case 1, 2: if let current { try handle(.opened(current)) }
            case 3: try hear(.welcome(welcome(from: &input)), seq: nil, ack: nil)
            case 4: try hear(message(from: &input), seq: delivered + 1, ack: UInt64(input.byte()))
            case 5:
                let (seq, ack) = (UInt64(input.byte()), input.number() >> (input.byte() % 64))
                try hear(message(from: &input), seq: seq, ack: ack)
            case 6: try hear(.error(error(from: &input)), seq: nil, ack: nil)
            case 7: try close(input.pick(sockets), closeCode(from: &input))
            case 8: try request(from: &input)
            case 9: try wait(.milliseconds(Int64(input.byte()) << (input.byte() % 12)))
            case 10: try handle(input.byte() & 1 == 0 ? .networkChanged : .leave)
            default:
                let count = input.index(below: 64)
                let bytes = input.bytes(count)
                if let socket = input.pick(sockets) { try handle(.received(bytes, on: socket)) }
            }
        }

        private mutating func hear(_ message: ServerMessage, seq: UInt64?, ack: UInt64?) throws(BrokenProperty) {
            guard let current else { return }
            let isNext = isConnected && seq == delivered + 1
            try handle(.received(Envelope(seq: seq, ack: ack, message: message).encode(), on: current))
            if isNext, isConnected { delivered += 1 }
        }

        private mutating func close(_ socket: SignalClient.Socket?, _ code: CloseCode) throws(BrokenProperty) {
            guard let socket else { return }
            if socket == current { current = nil }
            try handle(.closed(socket, code))
        }

        private mutating func request(from input: inout InputReader) throws(BrokenProperty) {
            requestCount += 1
            let id = SignalClient.RequestID(rawValue: requestCount)
            unsettled.insert(id)
            let name = String(repeating: "x", count: Int(input.byte()))
            let messages: [ClientMessage] = [.presence(.appear(Appearance(name: name))), .presence(.leave), .ping]
            try handle(.request(id, input.pick(messages) ?? .ack))
        }

        private mutating func wait(_ duration: Duration) throws(BrokenProperty) {
            now = now + duration
            isLeaving = line.leaveDeadline != nil
            try carryOut(line.handleTimeout(now: now))
            if let next = line.nextTimeout { try require(next > now, "the timeout at \(now) is not cleared") }
        }

        mutating func handle(_ event: SignalClient.Event) throws(BrokenProperty) {
            isLeaving = line.leaveDeadline != nil
            try carryOut(line.handle(event, now: now))
        }

        // MARK: Server messages

        private func message(from input: inout InputReader) -> ServerMessage {
            let re = UInt64(input.byte() % 8)
            return switch input.byte() % 3 {
            case 0: .presence(.unlinked)
            case 1: .ok(.init(re: re))
            default: .error(ServerMessage.Failure(WireError(.notFound, ""), re: re))
            }
        }

        private func error(from input: inout InputReader) -> ServerMessage.Failure {
            let codes: [WireError.Code] = [.resumeFailed, .outOfOrder, .rateLimited, .tokenExpired]
            let pause = Duration.milliseconds(Int64(input.byte()) * 100)
            let error = WireError(input.pick(codes) ?? .internalError, "", retryAfter: pause)
            let re = input.byte() % 8
            return ServerMessage.Failure(error, re: re == 0 ? nil : UInt64(re))
        }

        private func welcome(from input: inout InputReader) -> Welcome {
            var welcome = Welcome()
            welcome.connection = ConnectionID(high: 0, low: UInt64(input.byte() % 3))
            welcome.resumed = input.byte() & 1 == 1
            welcome.received = UInt64(input.byte() % 8)
            welcome.ping = .milliseconds(Int64(input.byte()) * 100)
            welcome.resume = .init(secret: "s", grace: .milliseconds(Int64(input.byte()) * 1000))
            welcome.limits.message = 4 * Int(input.byte())
            return welcome
        }

        private func closeCode(from input: inout InputReader) -> CloseCode {
            input.pick([.abnormal, .normal, .malformed, .token, .timeout, .replaced, .tooMany]) ?? .abnormal
        }

        // MARK: Invariants

        private mutating func carryOut(_ effects: [SignalClient.Effect]) throws(BrokenProperty) {
            for effect in effects { try carryOut(effect) }
            try require(
                line.unansweredCount == unsettled.count,
                "\(unsettled) are unanswered, but the line counts \(line.unansweredCount)")
            try require(
                unsettled.count <= Self.maxRequests, "the line keeps \(unsettled.count) requests, more than allowed")
            try require(line.isConnected == isConnected, "isConnected does not match the effects")
            try require((line.ending != nil) == hasEnded, "ending does not match the effects")
            try require(hasEnded || line.leaveDeadline == nil, "the client leaves before its end")
            let isOver = hasEnded && line.leaveDeadline == nil
            try require(!isOver || line.nextTimeout == nil, "the client has a timeout after its end")
        }

        private mutating func carryOut(_ effect: SignalClient.Effect) throws(BrokenProperty) {
            switch effect {
            case .failed(let id, _):
                return try require(unsettled.remove(id) != nil, "\(id) fails after its outcome")
            case .open, .send, .close:
                try require(!hasEnded || isLeaving, "the client has the effect \(effect) after its end")
            default: try require(!hasEnded, "the client has the effect \(effect) after its end")
            }
            switch effect {
            case .open(let socket):
                try require(!isConnected, "the line opens a second socket while connected")
                sockets = sockets.suffix(3) + [socket]
                current = socket
            case .send(_, let socket): try require(socket == current, "the line sends on an old socket")
            case .close(let socket, _):
                try require(socket == current, "the line closes an old socket")
                (current, isConnected) = (nil, false)
            case .connected(_, let start):
                if start != .resumed { delivered = 0 }
                isConnected = true
            case .answered(let id, let message):
                try require(unsettled.remove(id) != nil, "\(id) is answered after its outcome")
                try require(message.re != nil, "\(message) is delivered as a response but is not one")
            case .event: try require(isConnected, "an event arrives without a connection")
            case .reconnecting, .ended: isConnected = false
            case .expired, .unreadable, .failed: break
            }
            if case .ended = effect { hasEnded = true }
        }
    }
}
