import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOSSL
import Wire

/// An HTTP client for requests to push services and webhooks.
protocol PushTransport: Sendable {
    /// Sends a request and returns the response.
    ///
    /// - Throws: `PushFailure` if there is no response, or `CancellationError` if the task is canceled or the client
    ///   is closed.
    func exchange(_ request: PushRequest) async throws -> PushResponse
    /// Closes all connections. Later requests fail.
    func close() async
}

/// An HTTP client (HTTP/2 and HTTP/1.1, over TLS except for some webhooks) that connects only to checked addresses.
///
/// Invariant: no connection is opened to an unchecked address. The host name is resolved here and all of its addresses are
/// checked. The HTTP client then gets one of these addresses and does not resolve the name again, which prevents DNS
/// rebinding. The certificate is verified against the name. Redirects are not followed.
actor PushConnections: PushTransport {
    /// How to connect: the limits, what is allowed, and which certificate authorities to trust.
    struct Settings: Sendable {
        /// Time limit for the whole exchange: DNS lookup, connection and response.
        var timeout: Duration
        var allowsPrivateAddresses = false
        /// A PEM file of CA certificates to trust in addition to the system's; nil for none.
        var authorities: String?
        /// Maximum number of bytes to read from a response's body.
        var maxBodySize = PushResponse.maxBodySize
        /// Whether to use HTTP/2 if the service offers it.
        var allowsHTTP2 = true
        /// Sleeps for a duration. Tests replace this closure.
        var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    }

    /// Maximum number of addresses to try per request. Large services have a dozen addresses, but usually all of them
    /// work or none does.
    private static let maxAttempts = 3
    /// How long to cache addresses. They rarely change, and a lookup for every push would be the slowest part of the
    /// push.
    private static let addressLifetime: Duration = .seconds(60)
    /// Maximum number of cached names, and of cached connections. Browsers use only a few services, but the wildcards
    /// in the configuration can match more.
    private static let maxCached = 64
    /// How long to keep idle connections. Apple asks providers to keep connections open.
    private static let idleTimeout: TimeAmount = .minutes(5)

    /// The peer of a connection: the host name, and the checked address to which the connection is opened.
    private struct Target: Hashable {
        var host: String
        var address: IPAddress
    }

    /// A connection that is kept for later requests.
    private struct Connection {
        let client: HTTPClient
        var uses = 0
        var lastUse = ContinuousClock.now
    }

    private let settings: Settings
    private let resolver: any PushResolver
    private var names: [String: (addresses: [IPAddress], resolvedAt: ContinuousClock.Instant)] = [:]
    private var connections: [Target: Connection] = [:]
    private var isClosed = false

    init(_ settings: Settings, resolver: any PushResolver = SystemResolver()) {
        (self.settings, self.resolver) = (settings, resolver)
    }

    nonisolated func exchange(_ request: PushRequest) async throws -> PushResponse {
        let settings = settings
        return try await withThrowingTaskGroup(of: PushResponse?.self) { group in
            group.addTask { try await self.tryAddresses(request) }
            group.addTask {
                try await settings.pause(settings.timeout)
                return nil
            }
            let first = try await group.next()
            group.cancelAll()
            if let answer = first ?? nil { return answer }
            // The request timed out. If a response arrived in the meantime, use it, even if its body is incomplete.
            if let answer = try? await group.next() ?? nil { return answer }
            throw PushFailure.timedOut
        }
    }

    func close() async {
        isClosed = true
        let clients = connections.values.map(\.client)
        connections.removeAll()
        for client in clients { try? await client.shutdown() }
    }

    // MARK: Addresses

    private func tryAddresses(_ request: PushRequest) async throws -> PushResponse {
        let addresses = try await addresses(of: request.host)
        var failure = PushFailure.nameUnknown(request.host)
        for address in addresses.prefix(Self.maxAttempts) {
            do {
                return try await exchange(request, at: Target(host: request.host, address: address))
            } catch let error as PushFailure {
                failure = error
                names[request.host] = nil
            }
        }
        throw failure
    }

    /// Returns all addresses of a service, from the cache if they are recent. Throws if there are none. Unless the
    /// settings allow private addresses, also throws if any of them is private, because the service's DNS is then not
    /// trustworthy.
    private func addresses(of host: String) async throws -> [IPAddress] {
        if let known = names[host], ContinuousClock.now - known.resolvedAt < Self.addressLifetime {
            return known.addresses
        }
        let found = if let address = IPAddress(host) { [address] } else { try await resolver.addresses(of: host) }
        guard !found.isEmpty else { throw PushFailure.nameUnknown(host) }
        guard settings.allowsPrivateAddresses || found.allSatisfy(PublicAddresses.contain) else {
            throw PushFailure.addressRefused(host)
        }
        if names.count >= Self.maxCached { names.removeAll() }
        names[host] = (found, .now)
        return found
    }

    // MARK: Connections

    private func exchange(_ request: PushRequest, at target: Target) async throws -> PushResponse {
        let client = try acquire(target)
        defer { release(target) }
        return try await Self.exchange(request, by: client, settings)
    }

    private func acquire(_ target: Target) throws -> HTTPClient {
        guard !isClosed else { throw CancellationError() }
        if connections[target] == nil {
            evictIdleConnection()
            connections[target] = Connection(client: makeClient(target))
        }
        connections[target]?.uses += 1
        guard let client = connections[target]?.client else { throw CancellationError() }
        return client
    }

    private func release(_ target: Target) {
        connections[target]?.uses -= 1
        connections[target]?.lastUse = .now
    }

    /// Closes the least recently used idle connection if the cache is full. Concurrent requests are limited elsewhere,
    /// so the connections in use are limited too.
    private func evictIdleConnection() {
        guard connections.count >= Self.maxCached else { return }
        let idle = connections.filter { $0.value.uses == 0 }.min { $0.value.lastUse < $1.value.lastUse }
        guard let idle else { return }
        connections[idle.key] = nil
        Task { try? await idle.value.client.shutdown() }
    }

    private func makeClient(_ target: Target) -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let path = settings.authorities { tls.additionalTrustRoots = [.file(path)] }
        configuration.tlsConfiguration = tls
        configuration.dnsOverride = [target.host: target.address.description]
        configuration.redirectConfiguration = .disallow
        if !settings.allowsHTTP2 { configuration.httpVersion = .http1Only }
        configuration.connectionPool.idleTimeout = Self.idleTimeout
        // Do not retry here: the caller tries the next address, and then repeats the whole push.
        configuration.connectionPool.retryConnectionEstablishment = false
        // Leave time for a second address within the overall timeout.
        configuration.timeout.connect = .milliseconds(max(settings.timeout.wholeMilliseconds / 2, 1))
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    private static func exchange(
        _ request: PushRequest, by client: HTTPClient, _ settings: Settings
    ) async throws -> PushResponse {
        let isDefault = request.isSecure && request.port == WebPushURL.defaultPort
        let authority = URLAuthority(host: request.host, port: isDefault ? nil : request.port)
        var message = HTTPClientRequest(url: "\(request.isSecure ? "https" : "http")://\(authority)\(request.path)")
        message.method = .POST
        for (name, value) in request.headers { message.headers.add(name: name, value: value) }
        message.body = .bytes(ByteBuffer(bytes: request.body))
        let response: HTTPClientResponse
        do {
            // Use a longer timeout here than for the whole exchange. The exchange then times out first, with a
            // clearer error.
            response = try await client.execute(message, timeout: .milliseconds(2 * settings.timeout.wholeMilliseconds))
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            if Task.isCancelled { throw CancellationError() }
            throw PushFailure.unreachable("\(error)")
        }
        var body: [UInt8] = []
        do {
            for try await piece in response.body {
                body += piece.readableBytesView.prefix(settings.maxBodySize - body.count)
                // Read no further: leaving the loop cancels the rest of the body.
                if body.count >= settings.maxBodySize { break }
            }
        } catch {
            // Ignore that the body could not be read completely: the status is sufficient.
        }
        return PushResponse(
            status: Int(response.status.code), retryAfter: response.headers.first(name: "retry-after"), body: body)
    }
}
