import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOSSL
import Wire

/// An HTTP client for requests to push services, webhooks and buckets.
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
        /// The maximum number of HTTP/1.1 connections to one host. All concurrent requests of the caller may go to one host.
        var connectionsPerHost: Int
        var allowsPrivateAddresses = false
        /// A PEM file of CA certificates to trust in addition to the system's; nil for none.
        var authorities: String?
        /// Maximum number of bytes to read from a response's body.
        var maxBodySize = PushResponse.maxBodySize
        /// Maximum number of host names whose addresses are cached. Each project may have a webhook at another host.
        var maxNames = StoredProject.maxCount
        /// Whether to use HTTP/2 if the service offers it.
        var allowsHTTP2 = true
        /// Sleeps for a duration. Tests replace this closure.
        var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    }

    /// Maximum number of addresses to try per request. Large services have a dozen addresses, but usually all of them
    /// work or none does.
    private static let maxAttempts = 3
    /// After what time addresses are looked up again. They rarely change, and a lookup for every push would be the
    /// slowest part of the push. The old addresses are used until the lookup succeeds.
    private static let addressLifetime: Duration = .seconds(60)
    /// How long addresses are used if the lookups after them fail.
    private static let longestUse: Duration = .seconds(3600)
    /// Maximum number of cached connections. Browsers use only a few services, but the wildcards in the configuration
    /// can match more.
    private static let maxConnections = 64
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

    /// The addresses of a host name.
    private struct Name {
        var addresses: [IPAddress]
        let resolvedAt = ContinuousClock.now
        /// Whether a request failed since the lookup. The next request then waits for a new lookup.
        var hasFailed = false
        /// Whether a new lookup is running because the addresses are old.
        var isRefreshing = false
    }

    private let settings: Settings
    private let lookups: PushLookups
    private var names: [String: Name] = [:]
    private var connections: [Target: Connection] = [:]
    private var isClosed = false

    init(_ settings: Settings, resolver: any PushResolver = SystemResolver()) {
        (self.settings, lookups) = (settings, PushLookups(resolver, pause: settings.pause))
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
            do {
                if let answer = try await group.next() ?? nil { return answer }
            } catch PushFailure.lookupsBusy {
                throw PushFailure.lookupsBusy
            } catch {}
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
                names[request.host]?.hasFailed = true
            }
        }
        throw failure
    }

    /// Returns all addresses of a service, from the cache unless a request to them has failed. Throws if there are
    /// none. Unless the settings allow private addresses, also throws if any of them is private, because the service's
    /// DNS is then not trustworthy.
    private func addresses(of host: String) async throws -> [IPAddress] {
        if let address = IPAddress(host) { return try check([address], of: host) }
        guard let known = names[host], !known.hasFailed else { return try await lookUp(host) }
        let age = ContinuousClock.now - known.resolvedAt
        guard age < Self.longestUse else { return try await lookUp(host) }
        if age >= Self.addressLifetime, !known.isRefreshing {
            names[host]?.isRefreshing = true
            Task {
                _ = try? await self.lookUp(host)
                self.names[host]?.isRefreshing = false
            }
        }
        return known.addresses
    }

    /// Looks up the addresses of a service, checks and caches them. If the lookup fails, returns the cached addresses.
    private func lookUp(_ host: String) async throws -> [IPAddress] {
        let found = try await lookups.addresses(of: host)
        guard !found.isEmpty else {
            guard let known = names[host], ContinuousClock.now - known.resolvedAt < Self.longestUse else {
                throw PushFailure.nameUnknown(host)
            }
            return known.addresses
        }
        names[host] = nil
        let checked = try check(found, of: host)
        if names.count >= settings.maxNames,
            let oldest = names.min(by: { $0.value.resolvedAt < $1.value.resolvedAt })
        {
            names[oldest.key] = nil
        }
        names[host] = Name(addresses: checked)
        return checked
    }

    private func check(_ addresses: [IPAddress], of host: String) throws -> [IPAddress] {
        guard settings.allowsPrivateAddresses || addresses.allSatisfy(PublicAddresses.contain) else {
            throw PushFailure.addressRefused(host)
        }
        return addresses
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
        guard connections.count >= Self.maxConnections else { return }
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
        // The default would let requests that hang hold up others to the same host.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = settings.connectionsPerHost
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
        message.method = HTTPMethod(rawValue: request.method.rawValue)
        for (name, value) in request.headers { message.headers.add(name: name, value: value) }
        if !request.body.isEmpty || request.method == .post { message.body = .bytes(ByteBuffer(bytes: request.body)) }
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
        var answer = PushResponse(
            status: Int(response.status.code), retryAfter: response.headers.first(name: "retry-after"), body: body)
        if request.keepsHeaders {
            for (name, value) in response.headers { answer.headers[name.lowercased()] = value }
        }
        return answer
    }
}
