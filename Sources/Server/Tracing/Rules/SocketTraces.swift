import Signaling
import Wire

/// Turns what happens on the sockets of recorded traces into spans: requests and their answers, the wait for a match or a call, and
/// what the media plane does with an offer.
///
/// It has no clock and no random source. Invariant: a socket that is not recorded has no state here, and one that is has at most
/// ``maxOpen`` requests, one search, one call, and two connections that are being opened.
struct SocketTraces {
    /// The maximum number of requests of one socket that wait for an answer. More are not recorded.
    static let maxOpen = 64

    /// The requests that have a span. Frequent ones, such as signals, have none.
    static let requests: Set<String> = [
        "session.join", "session.leave", "session.publish", "session.subscribe", "session.negotiate", "room.join",
        "roulette.start", "roulette.next", "call.start", "call.accept", "call.decline", "call.cancel", "call.end",
        "call.rejoin", "media.offer",
    ]

    /// What the media plane does for one offer.
    private struct Offer {
        let client: ConnectionID
        let side: MediaSide
        var span: TraceSpan
    }

    /// A recorded socket, and its spans that have not ended.
    private struct Socket {
        let trace: TraceID
        /// The span of the HTTP request that opened the socket.
        let parent: SpanID
        /// The requests that wait for an answer, keyed by number.
        var requests: [UInt64: TraceSpan] = [:]
        /// The search for a stranger.
        var search: TraceSpan?
        /// The call that rings.
        var call: TraceSpan?
        /// The offers at the media plane, keyed by the number of the request.
        var offers: [UInt64: Offer] = [:]
        /// The peer connections that were negotiated and have no path yet.
        var opening: [MediaSide: TraceSpan] = [:]
        var connected: Set<MediaSide> = []
        /// The client whose offers are or were at the media plane.
        var client: ConnectionID?

        /// The open spans, in the order in which they began.
        var open: [TraceSpan] {
            var spans = [search, call].compactMap(\.self)
            spans += requests.values
            spans += offers.values.map(\.span)
            spans += opening.values
            return spans.sorted { ($0.start, $0.id.rawValue) < ($1.start, $1.id.rawValue) }
        }
    }

    private var sockets: [SocketID: Socket] = [:]
    /// The sockets of the clients that have sent an offer.
    private var clients: [ConnectionID: SocketID] = [:]
    /// The spans that have ended since `takeFinished`.
    private var finished: [TraceSpan] = []

    /// Whether this socket is recorded.
    func records(_ socket: SocketID) -> Bool { sockets[socket] != nil }

    var isEmpty: Bool { sockets.isEmpty }

    /// Returns the spans that have ended since the last call.
    mutating func takeFinished() -> [TraceSpan] {
        defer { finished = [] }
        return finished
    }

    // MARK: Sockets

    /// A socket is open that belongs to a recorded trace.
    ///
    /// - Parameter parent: the span of the HTTP request that opened it.
    mutating func opened(_ socket: SocketID, in trace: TraceID, parent: SpanID) {
        sockets[socket] = Socket(trace: trace, parent: parent)
    }

    /// A socket has closed. Ends its spans as failed.
    mutating func closed(_ id: SocketID, at time: TraceTime) {
        guard let socket = sockets.removeValue(forKey: id) else { return }
        if let client = socket.client, clients[client] == id { clients[client] = nil }
        for var span in socket.open {
            span.fail("connection_closed")
            finished.append(span.ended(at: time))
        }
    }

    /// The server stops, and closes all sockets.
    mutating func closedAll(at time: TraceTime) {
        for id in sockets.keys.sorted(by: { $0.rawValue < $1.rawValue }) { closed(id, at: time) }
    }

    // MARK: Requests

    /// A client has sent a message.
    mutating func received(
        _ message: Envelope<ClientMessage>, on id: SocketID, at time: TraceTime,
        using random: inout some RandomNumberGenerator
    ) {
        if case .roulette(.stop) = message.message { stoppedSearching(on: id, at: time) }
        guard var socket = sockets[id], let number = message.seq, socket.requests.count < Self.maxOpen else { return }
        let type = message.message.type
        guard Self.requests.contains(type), socket.requests[number] == nil else { return }
        let request = TraceSpan(
            type, .server, trace: socket.trace, id: .random(using: &random), parent: socket.parent, start: time,
            [.init("confab.socket", .integer(Int64(clamping: id.rawValue)))])
        socket.requests[number] = request
        switch message.message {
        case .roulette(.start), .roulette(.next):
            if socket.search == nil { socket.search = wait("roulette match", for: request, using: &random) }
        case .call(.start):
            if socket.call == nil { socket.call = wait("call", for: request, using: &random) }
        default: break
        }
        sockets[id] = socket
    }

    private func wait(
        _ name: String, for request: TraceSpan, using random: inout some RandomNumberGenerator
    ) -> TraceSpan {
        TraceSpan(
            name, trace: request.trace, id: .random(using: &random), parent: request.id, start: request.start)
    }

    /// The server has sent a message to a client.
    mutating func sent(_ message: ServerMessage, on id: SocketID, at time: TraceTime) {
        guard var socket = sockets[id] else { return }
        if let number = message.re, var request = socket.requests.removeValue(forKey: number) {
            if case .error(let failure) = message {
                request.fail(failure.error.code.rawValue)
                // A request that was refused begins no search or call.
                if socket.search?.parent == request.id { socket.search = nil }
                if socket.call?.parent == request.id { socket.call = nil }
            }
            finished.append(request.ended(at: time))
        }
        switch message {
        case .roulette(.matched(let matched)):
            end(&socket.search, "matched", at: time, .init("confab.match.id", matched.match.description))
        case .call(.accepted(let accepted)):
            end(&socket.call, "accepted", at: time, .init("confab.call.id", accepted.call.description))
        case .call(.ended(let ended)):
            end(&socket.call, ended.reason.rawValue, at: time, .init("confab.call.id", ended.call.description))
        default: break
        }
        sockets[id] = socket
    }

    /// Ends the wait for a match or for the answer to a call, if there is one.
    private mutating func end(
        _ wait: inout TraceSpan?, _ outcome: String, at time: TraceTime, _ attribute: TraceSpan.Attribute
    ) {
        guard var span = wait else { return }
        wait = nil
        span.attributes += [.init("confab.outcome", outcome), attribute]
        finished.append(span.ended(at: time))
    }

    /// A person has ended the search without a match.
    private mutating func stoppedSearching(on id: SocketID, at time: TraceTime) {
        guard var span = sockets[id]?.search else { return }
        sockets[id]?.search = nil
        span.attributes.append(.init("confab.outcome", "stopped"))
        finished.append(span.ended(at: time))
    }

    // MARK: The media plane

    /// The rules have passed a client's offer to the media plane.
    mutating func offered(
        by client: ConnectionID, re number: UInt64, _ side: MediaSide, on id: SocketID, at time: TraceTime,
        using random: inout some RandomNumberGenerator
    ) {
        guard var socket = sockets[id], socket.offers.count < Self.maxOpen else { return }
        let span = TraceSpan(
            "media negotiate", trace: socket.trace, id: .random(using: &random),
            parent: socket.requests[number]?.id ?? socket.parent, start: time,
            [.init("confab.media.side", side.rawValue), .init("confab.connection.id", client.description)])
        socket.offers[number] = Offer(client: client, side: side, span: span)
        (socket.client, clients[client]) = (client, id)
        sockets[id] = socket
    }

    /// The media plane has reported something.
    mutating func reported(
        _ event: MediaEvent, at time: TraceTime, using random: inout some RandomNumberGenerator
    ) {
        guard let client = event.client, let id = clients[client], var socket = sockets[id] else { return }
        switch event {
        case .answered(_, let number, let side, _):
            guard let offer = socket.offers.removeValue(forKey: number) else { return }
            finished.append(offer.span.ended(at: time))
            guard !socket.connected.contains(side), socket.opening[side] == nil else { break }
            socket.opening[side] = TraceSpan(
                "media connect", trace: socket.trace, id: .random(using: &random), parent: offer.span.id, start: time,
                offer.span.attributes)
        case .refused(_, let number, let error):
            guard var offer = socket.offers.removeValue(forKey: number) else { return }
            offer.span.fail(error.code.rawValue)
            finished.append(offer.span.ended(at: time))
        case .connected(_, let side, true):
            socket.connected.insert(side)
            if let span = socket.opening.removeValue(forKey: side) { finished.append(span.ended(at: time)) }
        case .connected(_, let side, false): socket.connected.remove(side)
        case .closed(_, let side, let error):
            socket.connected.remove(side)
            if var span = socket.opening.removeValue(forKey: side) {
                span.fail(error.code.rawValue)
                finished.append(span.ended(at: time))
            }
        default: return
        }
        sockets[id] = socket
    }
}

extension MediaEvent {
    /// The client whose peer connection the event concerns; nil for events about streams and sessions.
    fileprivate var client: ConnectionID? {
        switch self {
        case .answered(let client, _, _, _), .refused(let client, _, _), .connected(let client, _, _),
            .closed(let client, _, _):
            client
        case .estimated, .subscriptionChanged, .streamQuality, .layersWanted, .full, .speaking: nil
        }
    }
}
