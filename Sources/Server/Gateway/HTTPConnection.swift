import DequeModule
import NIOCore
import NIOHTTP1
import Signaling

/// The state machine of an HTTP/1.1 connection to the public port.
///
/// It owns the rules of the connection: one request at a time, responses in order, limits on the size and duration of a
/// request, and how the connection closes after the last response. It does not depend on channels: `HTTPGate`, its
/// shell, passes it the inputs and carries out the outputs. Invariants: a request gets at most one response, and
/// nothing is read while a request waits for its turn.
struct HTTPConnection {
    /// Legal next states: `idle` → `routed`, `reading`, `switching`, `closing`, `closed`; `routed` → `idle`, `closing`;
    /// `reading` → `answering`, `closing`; `answering` → `idle`, `upgraded`, `closing`; `switching` → `answering`, `upgraded`,
    /// `closing`. From each state except `upgraded`, a timeout leads to `closed`. So does the end of the client's
    /// input, except in `closing` and where the router's handlers close the connection.
    private enum State {
        case idle
        /// The router handles a request.
        case routed(Routed)
        /// The body of a request for an endpoint is being read.
        case reading(HTTPRequestHead, EndpointRequest)
        case answering(HTTPRequestHead)
        /// The rest of a WebSocket handshake is being read.
        case switching(HTTPRequestHead, bodyBytes: Int)
        case upgraded
        /// The last response was sent. All further input is discarded.
        case closing
        case closed
    }

    /// The state of a request that the router handles.
    private struct Routed {
        let isUpload: Bool
        let maxBodyBytes: Int
        /// The refusal of a larger body.
        let tooLarge: Refusal
        /// Whether the client waits for 100 Continue before sending its file, although it may stop waiting and send it
        /// anyway.
        var expectsContinue: Bool
        var bodyBytes = 0
        /// Whether the response began before the whole file had arrived. If so, the connection closes after the
        /// response, so that the client need not send the rest.
        var isCutShort = false
        var request = Progress.started
        var response = Progress.none
        var isComplete: Bool { request == .ended && response == .ended }
    }

    /// How much of a request or response has passed.
    private enum Progress { case none, started, ended }

    /// Whether more requests can follow the current one.
    private enum Source: Equatable {
        case open
        /// The current request is the last. After a request for an upgrade, the HTTP parser reads nothing that follows.
        case ended
        /// The data after the received requests cannot be parsed. The refusal waits until those requests have their
        /// responses.
        case unparsable(Refusal)
    }

    /// Whether the next request may begin. Only one may begin per turn of the event loop, so that a flood of requests
    /// cannot starve other connections.
    private enum Pace { case ready, waitingForTurn }

    /// Whether a read that the channel requested is held back.
    private enum Reading { case flowing, held }

    /// Whether the server is stopping, so that the connection closes after its current request.
    private enum Lifetime { case serving, quiescing }

    /// Whether the router has handled a request of this connection.
    private enum Router { case unused, used }

    /// Maximum size of the body of a request to the router, in bytes, unless the request is an upload. Endpoints have
    /// their own limits.
    static let maxBodyBytes = 1 << 20

    /// The settings in use. The shell sets them before each request, because a reload changes them.
    var settings: Settings
    private var state = State.idle
    /// Body of the request being read. It is not part of `state`, because changing `state` would copy the body for every part.
    private var body: [UInt8] = []
    /// Parts of pipelined requests that wait for their turn.
    private var waiting: Deque<HTTPServerRequestPart> = []
    private var source = Source.open
    private var pace = Pace.ready
    private var reading = Reading.flowing
    private var lifetime = Lifetime.serving
    private var router = Router.unused
    private var isWritable = true
    private var now: NIODeadline
    private var lastActive: NIODeadline
    private var timeLimit: Duration
    /// The outputs that result from the input that is being handled.
    private var outputs: [Output] = []

    init(settings: Settings, now: NIODeadline) {
        self.settings = settings
        (self.now, lastActive) = (now, now)
        timeLimit = settings.headerTimeout
    }

    /// True after `upgrade`. All data then passes through unchanged.
    var isUpgraded: Bool { if case .upgraded = state { true } else { false } }

    mutating func handle(_ input: Input, now: NIODeadline) -> [Output] {
        self.now = now
        switch (input, state) {
        case (.responded, .closed), (.responded, .upgraded): return [.dropResponse]
        case (_, .closed), (_, .upgraded): return []
        default: handle(input)
        }
        defer { outputs = [] }
        return outputs
    }

    private mutating func handle(_ input: Input) {
        switch input {
        case .received(let part): if !waiting.isEmpty || !take(part) { waiting.append(part) }
        case .unparsable(let refusal):
            if waiting.isEmpty, isBetweenAnswers { refuse(refusal) } else { source = .unparsable(refusal) }
        case .inputClosed: endInput()
        case .read: if mustWait { reading = .held } else { outputs.append(.read) }
        case .responded(let part): respond(part)
        case .answered(let reply): answer(reply)
        case .accepted: if case .answering(let head) = state { upgrade(head) }
        case .bodyWanted: askForBody()
        case .writable(let isWritable):
            self.isWritable = isWritable
            takeWaiting()
        case .turn:
            pace = .ready
            takeWaiting()
        case .quiesce:
            lifetime = .quiescing
            if case .idle = state, waiting.isEmpty { close() }
        }
    }

    // MARK: Time

    /// When to call `handleTimeout`; nil after `close` or `upgrade`. With TLS, the channel can stay open for seconds
    /// after `close`, but no timeout is needed then.
    var nextTimeout: NIODeadline? {
        switch state {
        case .closed, .upgraded: nil
        default: lastActive + .nanoseconds(timeLimit)
        }
    }

    private mutating func limitTime(to limit: Duration) {
        if limit < timeLimit { outputs.append(.earlierTimeout) }
        timeLimit = limit
    }

    /// Closes the connection if the client is too slow to start a request, to complete it, or to read the response.
    /// Time in which the client waits for the server does not count.
    mutating func handleTimeout(now: NIODeadline) -> [Output] {
        if isServerBusy { lastActive = now }
        guard let nextTimeout, now >= nextTimeout else { return [] }
        state = .closed
        return [.close]
    }

    /// True if the client is waiting for the server.
    private var isServerBusy: Bool {
        switch state {
        case .answering: true
        case .routed(let routed): routed.request == .ended && isWritable
        case .idle, .reading, .switching, .upgraded, .closing, .closed: false
        }
    }

    // MARK: Requests

    /// True if an error in the input can be answered now, because no earlier response is outstanding.
    private var isBetweenAnswers: Bool {
        switch state {
        case .routed(let routed): routed.request != .ended
        case .answering: false
        case .idle, .reading, .switching, .upgraded, .closing, .closed: true
        }
    }

    /// True if nothing may be read now. While a client does not read its responses, the server reads no further
    /// requests from it.
    private var mustWait: Bool { !waiting.isEmpty || !isWritable || (source == .ended && !isReadingRequest) }

    /// True if the end of the current request has not arrived yet.
    private var isReadingRequest: Bool {
        switch state {
        case .routed(let routed): routed.request != .ended
        case .reading, .switching: true
        case .idle, .answering, .upgraded, .closing, .closed: false
        }
    }

    /// Handles a part of a request. Returns false if the part must wait for its turn.
    private mutating func take(_ part: HTTPServerRequestPart) -> Bool {
        switch (part, state) {
        case (.head(let head), .idle):
            guard isWritable, pace == .ready else { return false }
            begin(head)
        case (_, .routed(let routed)) where routed.request != .ended: pass(part, routed)
        case (.body(let buffer), .reading(let head, let request)):
            body += buffer.readableBytesView
            if let refusal = tooLarge(head, request, body.count) { refuse(refusal) }
        case (.end, .reading(let head, let request)):
            state = .answering(head)
            outputs.append(.perform(request, head, body))
            body = []
        case (.body(let buffer), .switching(let head, let bodyBytes)):
            // Skip the body of a WebSocket handshake, if it has one: the WebSocket's bytes begin after it.
            let bodyBytes = bodyBytes + buffer.readableBytes
            state = .switching(head, bodyBytes: bodyBytes)
            if bodyBytes > Self.maxBodyBytes { refuse(.bodyTooLarge(limit: Self.maxBodyBytes)) }
        case (.end, .switching(let head, _)):
            guard let request = EndpointRequest(handshake: head) else {
                upgrade(head)
                break
            }
            state = .answering(head)
            outputs.append(.perform(request, head, []))
        case (_, .closing): break
        default: return false
        }
        return true
    }

    private mutating func begin(_ received: HTTPRequestHead) {
        var head = received
        head.uri = settings.basePath.removed(from: head.uri)
        // The whole request must arrive within its time limit: the idle timeout, or longer for an upload. Receiving
        // part of it does not extend the limit.
        lastActive = now
        limitTime(to: settings.timeLimit(head))
        outputs.append(.began(head))
        if let refusal = settings.refusal(of: head) { return refuse(refusal) }
        let request = EndpointRequest(
            head, allowsSocketIO: settings.allowsSocketIO, allowsPerch: settings.allowsPerch)
        if let size = head.headers.first(name: "Content-Length").flatMap({ Int($0) }) {
            if let request, let refusal = tooLarge(head, request, size) { return refuse(refusal) }
            if size > settings.maxRoutedBytes(head) { return refuse(settings.tooLarge(head)) }
        }
        let isLast = head.method == .CONNECT || head.headers.contains(name: "Upgrade") || lifetime == .quiescing
        if isLast, source == .open { source = .ended }
        if WebSocketUpgrade.isOurs(head, settings) {
            state = .switching(head, bodyBytes: 0)
        } else if let request {
            state = .reading(head, request)
            if head.expectsContinue {
                outputs.append(.sendContinue(head.version))
            }
        } else {
            let isUpload = Settings.isUpload(head)
            state = .routed(
                Routed(
                    isUpload: isUpload, maxBodyBytes: settings.maxRoutedBytes(head), tooLarge: settings.tooLarge(head),
                    // HTTP/1.0 does not support `Expect: 100-continue` (RFC 9110 §10.1.1).
                    expectsContinue: isUpload && head.version == .http1_1 && head.expectsContinue))
            router = .used
            outputs.append(.route(.head(head)))
        }
    }

    /// Sends 100 Continue to a client that waits for it before sending its file. After a refusal this is not sent, so
    /// that the client does not send a useless file.
    private mutating func askForBody() {
        guard case .routed(var routed) = state, routed.expectsContinue, routed.response == .none,
            routed.request == .started, routed.bodyBytes == 0
        else { return }
        routed.expectsContinue = false
        state = .routed(routed)
        outputs.append(.sendContinue(.http1_1))
    }

    private mutating func pass(_ part: HTTPServerRequestPart, _ before: Routed) {
        var routed = before
        switch part {
        case .body(let buffer): routed.bodyBytes += buffer.readableBytes
        case .end: routed.request = .ended
        case .head: break
        }
        state = .routed(routed)
        guard routed.bodyBytes <= routed.maxBodyBytes else { return refuse(routed.tooLarge) }
        outputs.append(.route(part))
        if routed.isComplete { finishRouted(routed) }
    }

    private mutating func takeWaiting() {
        if !waiting.isEmpty {
            while let part = waiting.first, take(part) { waiting.removeFirst() }
            if case .upgraded = state { return }
            outputs.append(.routeComplete)
        }
        if waiting.isEmpty, case .idle = state, case .unparsable(let refusal) = source {
            source = .open
            return refuse(refusal)
        }
        guard reading == .held, !mustWait else { return }
        reading = .flowing
        outputs.append(.read)
    }

    /// Handles the end of the client's input. Closes the connection, unless the router's handlers close it after the
    /// current response. Requests to endpoints are abandoned.
    private mutating func endInput() {
        waiting = []
        switch state {
        case .routed(let routed) where routed.request == .ended: break
        case .idle where router == .used: break
        case .closing, .closed, .upgraded: break
        case .idle, .routed, .reading, .answering, .switching: close()
        }
    }

    /// Returns the refusal of a body of `size` bytes if it is too large for this request; otherwise nil.
    private func tooLarge(_ head: HTTPRequestHead, _ request: EndpointRequest, _ size: Int) -> Refusal? {
        let limit = settings.maxBodyBytes(request)
        guard size > limit else { return nil }
        return switch request {
        case .socketIO, .perch: .bodyTooLarge(limit: limit)
        case .whip(let request): .descriptionTooLarge(head, request, limit: limit)
        }
    }

    // MARK: Responses

    private mutating func respond(_ part: HTTPServerResponsePart) {
        guard case .routed(var routed) = state, routed.response != .ended else { return outputs.append(.dropResponse) }
        lastActive = now
        routed.response = .started
        var part = part
        if case .head = part { routed.isCutShort = routed.isUpload && routed.request != .ended }
        if case .head(var head) = part, source == .ended || routed.isCutShort {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            part = .head(head)
        }
        if case .end = part { routed.response = .ended }
        state = .routed(routed)
        outputs.append(.write(part))
        if routed.isComplete || (routed.isCutShort && routed.response == .ended) { finishRouted(routed) }
    }

    private mutating func finishRouted(_ routed: Routed) {
        state = .idle
        limitTime(to: settings.idleTimeout)
        if source == .ended || routed.isCutShort { linger() } else { yieldTurn() }
    }

    private mutating func answer(_ reply: GateResponse) {
        guard case .answering(let head) = state else { return }
        lastActive = now
        let keepsAlive = head.isKeepAlive && lifetime == .serving && source != .ended
        state = keepsAlive ? .idle : .closing
        outputs.append(.answer(reply, to: head, keepsAlive: keepsAlive))
        if keepsAlive { yieldTurn() }
    }

    private mutating func upgrade(_ head: HTTPRequestHead) {
        state = .upgraded
        outputs.append(.upgrade(head))
        if reading == .held { outputs.append(.read) }
    }

    private mutating func refuse(_ refusal: Refusal) {
        switch state {
        case .closing, .closed, .upgraded: return
        // The response to this request has already started, so an error response is no longer possible.
        case .routed(let routed) where routed.response != .none && routed.request != .ended: return linger()
        case .idle, .routed, .reading, .answering, .switching: break
        }
        lastActive = now
        body = []
        outputs.append(.refuse(refusal))
        linger()
    }

    private mutating func linger() {
        state = .closing
        outputs.append(.linger)
        // Continue in the next turn, which discards the pipelined requests, because the state is `closing`.
        yieldTurn()
    }

    private mutating func close() {
        state = .closed
        outputs.append(.close)
    }

    private mutating func yieldTurn() {
        pace = .waitingForTurn
        outputs.append(.nextTurn)
    }
}

extension HTTPRequestHead {
    /// Whether the client sends the body only after 100 Continue (RFC 9110 §10.1.1).
    fileprivate var expectsContinue: Bool {
        headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
    }
}
