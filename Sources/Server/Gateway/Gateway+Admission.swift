import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// The one place that decides whether an address may connect. Every protocol asks here, each at its own moments.
extension Gateway {
    /// A moment at which an address can be refused.
    enum Door: CaseIterable {
        /// A WebSocket of our own protocol opened.
        case upgrade
        /// Its hello arrived.
        case hello
        /// Its welcome is due. The server may have begun to drain, or banned the address, since the upgrade.
        case welcome
        /// A client of Socket.IO asks for a connection.
        case handshake
        /// A client of WHIP or WHEP sends an offer.
        case resource
        /// Somebody asks for what is stored about them.
        case export
        /// A page wants a QR code drawn.
        case drawing
    }

    enum Check: CaseIterable {
        /// The address may hold one more connection.
        case room
        case origin
        case draining
        case ban
        /// The address has not come too often. Uses up one of its visits.
        case rate
    }

    /// Makes the door's checks in order.
    ///
    /// - Parameter origin: the page's origin. HTTP endpoints check it themselves, for every request, because their answers
    ///   to browsers depend on it.
    /// - Throws: the error of the first check that fails.
    func admit(_ address: IPAddress, at door: Door, origin: String? = nil) throws(WireError) {
        for check in door.checks {
            switch check {
            case .room: if !hasRoom(for: address) { throw door.tooManyConnections }
            case .origin: if !configuration.allows(origin: origin) { throw .forbiddenOrigin }
            case .draining: if isDraining { throw door.draining }
            case .ban: if let ban = ban(of: address) { throw .banned(ban, now: runner.now) }
            case .rate: if let wait = isGreetingTooOften(address) { throw door.tooOften(retryAfter: wait) }
            }
        }
    }
}

extension Gateway.Door {
    var checks: [Gateway.Check] {
        switch self {
        case .upgrade: [.room, .origin, .draining, .ban]
        case .hello, .export, .drawing: [.rate]
        case .welcome: [.draining, .ban]
        case .handshake, .resource: [.draining, .ban, .rate, .room]
        }
    }

    // MARK: What clients are told. Programs get other advice than people with tabs.

    var tooManyConnections: WireError {
        let sentence =
            switch self {
            case .handshake: "Too many connections; close some tabs."
            case .resource, .export, .drawing: "Too many connections from your network."
            case .upgrade, .hello, .welcome: "Too many connections from your network; close some tabs."
            }
        return WireError(
            .tooManyConnections, sentence, retryable: true, retryAfter: self == .handshake ? nil : .seconds(10))
    }

    /// A WebSocket of our own protocol hears it as the reason of close code 1001.
    var draining: WireError {
        switch self {
        case .upgrade, .hello, .welcome: WireError(.draining, "The server is restarting.", retryable: true)
        case .handshake: WireError(.draining, "The server is restarting; try again.", retryable: true)
        case .resource, .export, .drawing:
            WireError(.draining, "The server is restarting; try again.", retryable: true, retryAfter: .seconds(5))
        }
    }

    func tooOften(retryAfter wait: Duration) -> WireError {
        let what =
            switch self {
            case .upgrade, .hello, .welcome, .handshake: "visits"
            case .resource, .export, .drawing: "requests"
            }
        return WireError(
            .rateLimited, "Too many \(what) from your network; wait a little.", retryable: true, retryAfter: wait)
    }
}

// MARK: Addresses

extension ConfabConfiguration {
    /// The address that a request counts for: its client's, not a proxy's.
    ///
    /// - Parameter peer: the other end of the connection. One without an IP address (a UNIX socket) counts as 0.0.0.0.
    func clientAddress(_ headers: HTTPHeaders, from peer: SocketAddress?) -> IPAddress {
        let peer = peer?.ipAddress.flatMap { IPAddress($0) } ?? IPAddress(bytes: [0, 0, 0, 0])!
        return ForwardedAddress.client(peer: peer, headers: headers, trusted: trustedProxies).address
    }
}

// MARK: Origins

extension ConfabConfiguration {
    /// - Parameter origin: nil if the request names no origin, or several.
    func allows(origin: String?) -> Bool {
        guard !allowedOrigins.isEmpty else { return true }
        guard let origin else { return false }
        return allowedOrigins.contains(origin.lowercased())
    }

    /// The rule for plain HTTP: a request without an origin is allowed. Programs send none, and browsers send none for a GET by
    /// a page of this server.
    func allows(_ headers: HTTPHeaders) -> Bool {
        !headers.contains(name: "Origin") || allows(origin: headers.onlyOrigin)
    }
}

extension WireError {
    static let forbiddenOrigin = WireError(.forbiddenOrigin, "This page may not use this server.")
}

extension WireError.Code {
    static let draining: WireError.Code = "draining"
    static let forbiddenOrigin: WireError.Code = "forbidden_origin"
}
