import Logging
import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// The one place that decides whether an address may connect. Every protocol calls it, each at its own admission points.
extension Gateway {
    /// A point at which an address can be refused.
    enum AdmissionPoint: CaseIterable {
        /// A WebSocket of the native protocol opened.
        case upgrade
        /// A native client sent `hello`.
        case hello
        /// `welcome` is about to be sent. The server may have started to drain, or banned the address, since the upgrade.
        case welcome
        /// A Socket.IO client requested a handshake.
        case handshake
        /// A Socket.IO client uses its connection: an upgrade, a poll or a post. It may come from another address than the
        /// handshake.
        case transport
        /// A WHIP or WHEP client sent an offer.
        case resource
        /// A client requested an export of its stored data.
        case export
        /// A page requested a QR code.
        case drawing
        /// An operator or application sent a request with the API secret.
        case operation
        /// A person in a room uploads or downloads a file.
        case file
        /// A viewer of a broadcast requests a playlist or media.
        case viewing
    }

    /// A condition for admission.
    enum Check: CaseIterable {
        /// The address must be below its limit of open connections.
        case room
        case origin
        case draining
        case ban
        /// The address must be within its rate limit. This check counts against the limit.
        case rate
    }

    /// Runs the checks of `point` in order.
    ///
    /// - Parameter origin: The page's origin, which is checked only at `upgrade`. HTTP endpoints check it themselves
    ///   for every request, because their CORS headers depend on it.
    /// - Throws: The error of the first check that fails.
    func admit(_ address: IPAddress, at point: AdmissionPoint, origin: String? = nil) throws(WireError) {
        for check in point.checks {
            switch check {
            case .room: if !hasRoom(for: address) { throw point.tooManyConnections }
            case .origin: if !configuration.allows(origin: origin) { throw .forbiddenOrigin }
            case .draining: if isDraining { throw point.draining }
            case .ban: if let error = banError(of: address) { throw error }
            case .rate: if let wait = delay(of: address, at: point) { throw point.tooOften(retryAfter: wait) }
            }
        }
    }

    /// Charges one hello to the address's budget (`limits.handshakesPerSecond`). If the budget is used up, charges
    /// nothing and returns how long to wait.
    func helloDelay(_ address: IPAddress) -> Duration? { budgets.takeHello(of: address, now: runner.now) }

    /// Charges the address's budget for files at the admission point `file`, its budget for views at `viewing`, and its budget for
    /// hellos at any other. If the budget is used up, charges nothing and returns how long to wait.
    func delay(of address: IPAddress, at point: AdmissionPoint) -> Duration? {
        switch point {
        case .file: budgets.takeFile(of: address, now: runner.now)
        case .viewing: budgets.takeView(of: address, now: runner.now)
        default: helloDelay(address)
        }
    }
}

extension Gateway.AdmissionPoint {
    var checks: [Gateway.Check] {
        switch self {
        case .upgrade: [.room, .origin, .draining, .ban]
        case .hello, .export, .drawing: [.rate]
        case .welcome, .transport, .operation: [.draining, .ban]
        case .file: [.draining, .ban, .rate]
        // While the server drains, broadcasts continue.
        case .viewing: [.ban, .rate]
        case .handshake, .resource: [.draining, .ban, .rate, .room]
        }
    }

    // MARK: Errors. Browsers and programs get different advice.

    /// Whether the client sent an HTTP request, instead of taking a step of a WebSocket or of Socket.IO.
    private var isRequest: Bool {
        switch self {
        case .resource, .export, .drawing, .operation, .file, .viewing: true
        case .upgrade, .hello, .welcome, .handshake, .transport: false
        }
    }

    /// The code with which a WebSocket of the native protocol is closed if it is refused.
    static func closeCode(for error: WireError) -> CloseCode {
        switch error.code {
        case .draining: .goingAway
        case .rateLimited, .tooManyConnections: .tooMany
        default: .forbidden
        }
    }

    var tooManyConnections: WireError {
        let source = self == .handshake ? "" : " from your network"
        let advice = isRequest || self == .transport ? "Try again later." : "Close some tabs or apps and try again."
        return WireError(
            .tooManyConnections, "Too many connections\(source). \(advice)", retryable: true,
            retryAfter: self == .handshake ? nil : .seconds(10))
    }

    /// The error while the server drains. Native sockets send it as the reason of close code 1001.
    var draining: WireError {
        WireError(
            .draining, "The server is restarting. Try again in a moment.", retryable: true,
            retryAfter: isRequest ? .seconds(5) : nil)
    }

    func tooOften(retryAfter wait: Duration) -> WireError {
        let what = isRequest || self == .transport ? "requests" : "connection attempts"
        return WireError(
            .rateLimited, "Too many \(what) from your network. Try again in a moment.", retryable: true,
            retryAfter: wait)
    }
}

// MARK: Addresses

extension ConfabConfiguration {
    /// Returns the address of the client behind a request, looking through trusted proxies.
    ///
    /// `HTTPConnection` has already refused requests whose headers contradict each other. For those, returns the peer's
    /// address.
    ///
    /// - Parameter peer: The remote address of the connection. A UNIX socket has no IP address and counts as 0.0.0.0.
    func clientAddress(_ headers: HTTPHeaders, from peer: SocketAddress?) -> IPAddress {
        let peer = IPAddress(peer: peer)
        return ForwardedAddress.client(peer: peer, headers: headers, trusted: trustedProxies)?.address ?? peer
    }
}

extension IPAddress {
    /// - Parameter peer: The remote address of a connection. A UNIX socket has no IP address and counts as 0.0.0.0.
    init(peer: SocketAddress?) {
        self = peer?.ipAddress.flatMap { IPAddress($0) } ?? IPAddress(bytes: [0, 0, 0, 0])!
    }
}

extension Gateway {
    /// The minimum time between two log lines about contradictory headers. Without a minimum, clients could flood the
    /// log.
    private static let contradictionLogInterval = Duration.seconds(60)

    /// Logs that a proxy passes on a header that it should remove, unless this was logged recently.
    func logContradiction() {
        let now = runner.now
        if let last = contradictionLoggedAt, now - last < Self.contradictionLogInterval { return }
        contradictionLoggedAt = now
        logger.warning(
            """
            Requests are refused because their headers Forwarded and X-Forwarded-For name different clients. Let the proxy \
            remove the one that it does not set (docs/operations.md, "Behind a proxy").
            """)
    }
}

// MARK: Origins

extension ConfabConfiguration {
    /// Returns whether the configuration allows an origin. A missing origin is allowed only if all origins are.
    ///
    /// - Parameter origin: Nil if the request has no `Origin` header, or several.
    func allows(origin: String?) -> Bool {
        guard !allowedOrigins.isEmpty else { return true }
        guard let origin else { return false }
        return allowedOrigins.contains(origin.lowercased())
    }

    /// Returns whether the origin of a plain HTTP request is allowed. A request without an `Origin` header is
    /// allowed: programs send none, and browsers send none for same-origin GET requests.
    func allows(_ headers: HTTPHeaders) -> Bool {
        !headers.contains(name: "Origin") || allows(origin: headers.onlyOrigin)
    }

    /// Returns whether a JSONP request comes from an allowed origin. Any page can load a script, and browsers send no
    /// `Origin` for it. They do send `Sec-Fetch-Site`, or at least `Referer`, which a page can suppress but not
    /// forge.
    func allowsScript(_ headers: HTTPHeaders) -> Bool {
        if allowedOrigins.isEmpty || headers.contains(name: "Origin") { return allows(headers) }
        if let site = headers.only("Sec-Fetch-Site"), site == "same-origin" || site == "none" { return true }
        guard let referer = headers.only("Referer") else { return false }
        // Use only scheme://host:port, without the path.
        return allows(
            origin: referer.split(separator: "/", omittingEmptySubsequences: false).prefix(3).joined(separator: "/"))
    }
}

extension HTTPHeaders {
    /// Returns the value of a header. Nil if there is none, or more than one.
    func only(_ name: String) -> String? {
        let values = self[name]
        return values.count == 1 ? values[0] : nil
    }

    /// The value of the `Origin` header. Nil if there is none, or more than one.
    var onlyOrigin: String? { only("Origin") }
}

extension WireError {
    static let forbiddenOrigin = WireError(
        .forbiddenOrigin,
        "This origin is not allowed to use this server. Ask the operator to add it to the allowed origins.")
}

extension WireError.Code {
    static let draining: WireError.Code = "draining"
    static let forbiddenOrigin: WireError.Code = "forbidden_origin"
}
