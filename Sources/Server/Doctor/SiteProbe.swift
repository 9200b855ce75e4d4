import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Wire

/// Everything that can be seen of a server at a URL.
struct SiteObservation: Sendable {
    var site: SiteAddress
    var name: NameObservation
    var connections: [ConnectObservation] = []
    /// Nil if no connection works, or the URL begins with `http://`.
    var tls: TLSObservation?
    var health: HTTPObservation?
    var ready: HTTPObservation?
    /// The answers to requests with headers about their client; nil if they were not sent.
    var forwarded: ForwardingObservation?
    var socket: SocketObservation?
    /// The STUN and TURN servers that clients get.
    var relays: [(url: String, seen: RelayObservation)] = []

    /// Whether a client can connect.
    var isGreeted: Bool { socket?.greeting == .welcome }
}

/// Looks at a server at a URL, as a browser sees it.
struct SiteProbe: Sendable {
    private static let lookupLimit = Duration.seconds(6)
    private static let requestLimit = Duration.seconds(6)
    /// The maximum number of addresses of a host, and of STUN and TURN URLs, that are tried.
    private static let maxAddresses = 4
    private static let maxRelays = 8
    /// The maximum number of bytes of a body that are read. Metrics have some tens of KiB.
    private static let maxBody = 1 << 20

    let site: SiteAddress
    /// Sends requests without verifying certificates: those are looked at separately.
    let client: HTTPClient
    /// Addresses at which media may work, besides those of the URL's host.
    var others: [IPAddress] = []
    /// The origin of the pages; nil for that of the site.
    var origin: String?
    /// Whether to find out what the proxy does with headers of clients.
    var triesForwarded = true

    /// A client for ``client``. Shut it down at the end.
    static func makeClient() -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        configuration.tlsConfiguration = tls
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .seconds(5)
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    func observe() async -> SiteObservation {
        var seen = SiteObservation(site: site, name: await Self.lookUp(site.host))
        let addresses = Array((seen.name.addresses ?? []).prefix(Self.maxAddresses))
        seen.connections = await connect(to: addresses)
        guard let address = seen.connections.first(where: { $0.outcome == .connected })?.address else { return seen }
        async let tls = site.isSecure ? observeTLS(address) : nil
        async let health = get("/health")
        async let ready = get("/ready")
        async let forwarded = triesForwarded ? observeForwarding() : nil
        async let socket = SocketProbe(
            site: site, address: address, origin: origin ?? site.origin, others: addresses + others
        ).observe()
        seen.tls = await tls
        seen.health = await health
        seen.ready = await ready
        seen.forwarded = await forwarded
        seen.socket = await socket
        seen.relays = await askRelays(seen.socket?.iceServers ?? [])
        return seen
    }

    /// Asks the name servers of this machine.
    static func lookUp(_ host: String) async -> NameObservation {
        if let address = IPAddress(host) { return NameObservation(host: host, addresses: [address]) }
        let found = await ProbeLimit.within(lookupLimit) { try? await SystemResolver().addresses(of: host) }
        return NameObservation(host: host, addresses: found ?? nil)
    }

    private func connect(to addresses: [IPAddress]) async -> [ConnectObservation] {
        let port = site.port
        return await withTaskGroup(of: (Int, ConnectObservation).self) { group in
            for (index, address) in addresses.enumerated() {
                group.addTask { (index, await StreamProbe.connect(address, port: port)) }
            }
            var found: [(Int, ConnectObservation)] = []
            for await one in group { found.append(one) }
            return found.sorted { $0.0 < $1.0 }.map { $0.1 }
        }
    }

    // MARK: TLS

    private func observeTLS(_ address: IPAddress) async -> TLSObservation? {
        let notes = ProbeNotes(TLSObservation())
        // Without verification, to get the certificates.
        let error = await handshake(
            address,
            StreamProbe.TLS(host: site.host, verifies: false) { chain in
                notes.note { $0.chain = chain.compactMap { CertificateFacts($0) } }
            })
        let isTrusted = await handshake(address, StreamProbe.TLS(host: site.host, verifies: true)) == nil
        notes.note { ($0.error, $0.isTrusted) = (error, isTrusted) }
        return notes.current
    }

    /// Connects and sends a request, because the handshake has succeeded only when something arrives. Returns why it failed; nil
    /// if it succeeded.
    private func handshake(_ address: IPAddress, _ tls: StreamProbe.TLS) async -> String? {
        let request = ByteBuffer(
            string: "GET \(site.path)/live HTTP/1.1\r\nHost: \(site.authority)\r\nConnection: close\r\n\r\n")
        let result = await ProbeLimit.within(Self.requestLimit) { () -> String? in
            do {
                return try await StreamProbe.open(address, port: site.port, tls: tls) { reader, outbound in
                    try await outbound.write(request)
                    return try await reader.more() ? nil : "the connection was closed"
                }
            } catch {
                return DoctorVerdicts.printable("\(error)")
            }
        }
        return result ?? "no answer in time"
    }

    // MARK: HTTP

    /// Claims addresses for documentation (RFC 5737), which no client has.
    private func observeForwarding() async -> ForwardingObservation {
        let (list, standard) = (["X-Forwarded-For": "192.0.2.1"], ["Forwarded": "for=192.0.2.2"])
        async let forwarded = get("/health", headers: standard)
        async let xForwardedFor = get("/health", headers: list)
        async let both = get("/health", headers: list.merging(standard) { $1 })
        return await ForwardingObservation(forwarded: forwarded, xForwardedFor: xForwardedFor, both: both)
    }

    /// - Parameter path: appended to the site's path.
    private func get(_ path: String, headers: [String: String] = [:]) async -> HTTPObservation {
        await Self.get(site.url + path, headers: headers, client)
    }

    static func get(_ url: String, headers: [String: String] = [:], _ client: HTTPClient) async -> HTTPObservation {
        let (start, wall) = (ContinuousClock.now, Date())
        let result = await ProbeLimit.within(requestLimit) { () -> HTTPObservation in
            var seen = HTTPObservation()
            var request = HTTPClientRequest(url: url)
            request.headers.add(name: "User-Agent", value: "confab-doctor/\(ConfabServer.version)")
            for (name, value) in headers { request.headers.add(name: name, value: value) }
            do {
                let response = try await client.execute(request, timeout: .seconds(5))
                seen.status = Int(response.status.code)
                if let body = try? await response.body.collect(upTo: maxBody) { seen.body = String(buffer: body) }
            } catch {
                seen.error = "\(error)"
            }
            return seen
        }
        var seen = result ?? HTTPObservation(error: "no answer in time")
        seen.took = ContinuousClock.now - start
        let middle = Timestamp(milliseconds: Int64(wall.timeIntervalSince1970 * 1000)) + seen.took / 2
        seen.at = middle
        return seen
    }

    // MARK: STUN and TURN

    private func askRelays(_ servers: [ICEServer]) async -> [(url: String, seen: RelayObservation)] {
        let urls = servers.flatMap { server in
            (server.urls ?? []).map { ($0, server.username ?? "", server.credential ?? "") }
        }.prefix(Self.maxRelays)
        return await withTaskGroup(of: (Int, String, RelayObservation).self) { group in
            for (index, (url, username, password)) in urls.enumerated() {
                group.addTask { (index, url, await RelayProbe.ask(url, username: username, password: password)) }
            }
            var found: [(Int, String, RelayObservation)] = []
            for await one in group { found.append(one) }
            return found.sorted { $0.0 < $1.0 }.map { (url: $0.1, seen: $0.2) }
        }
    }
}
