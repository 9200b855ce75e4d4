import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOSSL
import Wire

/// Carries requests to push services.
protocol PushTransport: Sendable {
    /// - Throws: `PushFailure`, or `CancellationError`.
    func exchange(_ request: PushRequest) async throws -> PushAnswer
    /// Closes all connections; nothing is sent from then on.
    func close() async
}

/// HTTP/2 and HTTP/1.1 over TLS, by connections that lead where they were checked to lead.
///
/// Invariant: no connection is opened to an address that was not checked. A name is looked up here, all its addresses
/// are judged, and the HTTP client is given one of them in place of the name, so that a name server that answers
/// differently the next moment (DNS rebinding) has nothing to answer. The certificate is checked against the name.
/// Redirects are not followed.
actor PushConnections: PushTransport {
    struct Settings: Sendable {
        /// For everything: the look-up, the connection, the answer.
        var timeout: Duration
        var allowsPrivateAddresses = false
        /// A PEM file of authorities to trust beside the system's.
        var authorities: String?
        /// Returns when that time is over.
        var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    }

    /// Addresses tried one after the other for one request; large services have a dozen and are all there or not at
    /// all.
    private static let tries = 3
    /// How long addresses are believed. Services move slowly; a look-up for each push would be the slowest part of it.
    private static let memory: Duration = .seconds(60)
    /// Names and addresses kept. Browsers' services are a handful of names; wildcards admit more.
    private static let kept = 64
    /// Apple asks to keep connections open.
    private static let idleTimeout: TimeAmount = .minutes(5)

    private struct Place: Hashable {
        var host: String
        var address: IPAddress
    }

    private struct Line {
        let client: HTTPClient
        var uses = 0
        var lastUse = ContinuousClock.now
    }

    private let settings: Settings
    private let resolver: any PushResolver
    private var names: [String: (addresses: [IPAddress], asked: ContinuousClock.Instant)] = [:]
    private var lines: [Place: Line] = [:]
    private var isClosed = false

    init(_ settings: Settings, resolver: any PushResolver = SystemResolver()) {
        (self.settings, self.resolver) = (settings, resolver)
    }

    nonisolated func exchange(_ request: PushRequest) async throws -> PushAnswer {
        let settings = settings
        return try await withThrowingTaskGroup(of: PushAnswer?.self) { group in
            group.addTask { try await self.tryAddresses(request) }
            group.addTask {
                try await settings.pause(settings.timeout)
                return nil
            }
            let first = try await group.next()
            group.cancelAll()
            if let answer = first ?? nil { return answer }
            // The time is over. What was answered until then still counts, were it only the status.
            if let answer = try? await group.next() ?? nil { return answer }
            throw PushFailure.timedOut
        }
    }

    func close() async {
        isClosed = true
        let clients = lines.values.map(\.client)
        lines.removeAll()
        for client in clients { try? await client.shutdown() }
    }

    // MARK: Addresses

    private func tryAddresses(_ request: PushRequest) async throws -> PushAnswer {
        let addresses = try await addresses(of: request.host)
        var failure = PushFailure.nameUnknown(request.host)
        for address in addresses.prefix(Self.tries) {
            do {
                return try await exchange(request, at: Place(host: request.host, address: address))
            } catch let error as PushFailure {
                failure = error
                names[request.host] = nil
            }
        }
        throw failure
    }

    /// All addresses of a service; none when one of them leads inside, for then its names are not to be trusted.
    private func addresses(of host: String) async throws -> [IPAddress] {
        if let known = names[host], ContinuousClock.now - known.asked < Self.memory { return known.addresses }
        let found = try await resolver.addresses(of: host)
        guard !found.isEmpty else { throw PushFailure.nameUnknown(host) }
        guard settings.allowsPrivateAddresses || found.allSatisfy(PublicAddresses.contain) else {
            throw PushFailure.addressRefused(host)
        }
        if names.count >= Self.kept { names.removeAll() }
        names[host] = (found, .now)
        return found
    }

    // MARK: Connections

    private func exchange(_ request: PushRequest, at place: Place) async throws -> PushAnswer {
        let client = try occupy(place)
        defer { release(place) }
        return try await Self.exchange(request, by: client, timeout: settings.timeout)
    }

    private func occupy(_ place: Place) throws -> HTTPClient {
        guard !isClosed else { throw CancellationError() }
        if lines[place] == nil {
            makeRoom()
            lines[place] = Line(client: makeClient(place))
        }
        lines[place]?.uses += 1
        guard let client = lines[place]?.client else { throw CancellationError() }
        return client
    }

    private func release(_ place: Place) {
        lines[place]?.uses -= 1
        lines[place]?.lastUse = .now
    }

    /// Closes the one that was longest idle; those in use are as many as there are requests, which is a bound too.
    private func makeRoom() {
        guard lines.count >= Self.kept else { return }
        let idle = lines.filter { $0.value.uses == 0 }.min { $0.value.lastUse < $1.value.lastUse }
        guard let idle else { return }
        lines[idle.key] = nil
        Task { try? await idle.value.client.shutdown() }
    }

    private func makeClient(_ place: Place) -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let path = settings.authorities { tls.additionalTrustRoots = [.file(path)] }
        configuration.tlsConfiguration = tls
        configuration.dnsOverride = [place.host: place.address.description]
        configuration.redirectConfiguration = .disallow
        configuration.connectionPool.idleTimeout = Self.idleTimeout
        // The next address is tried instead, and then the whole push again.
        configuration.connectionPool.retryConnectionEstablishment = false
        // So that a second address has its turn within the time for all.
        configuration.timeout.connect = .milliseconds(max(settings.timeout.wholeMilliseconds / 2, 1))
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    private static func exchange(
        _ request: PushRequest, by client: HTTPClient, timeout: Duration
    ) async throws -> PushAnswer {
        let port = request.port == WebPushURL.defaultPort ? "" : ":\(request.port)"
        var message = HTTPClientRequest(url: "https://\(request.host)\(port)\(request.path)")
        message.method = .POST
        for (name, value) in request.headers { message.headers.add(name: name, value: value) }
        message.body = .bytes(ByteBuffer(bytes: request.body))
        let response: HTTPClientResponse
        do {
            // Longer than ours, which says what it was.
            response = try await client.execute(message, timeout: .milliseconds(2 * timeout.wholeMilliseconds))
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            if Task.isCancelled { throw CancellationError() }
            throw PushFailure.unreachable("\(error)")
        }
        var body: [UInt8] = []
        do {
            for try await piece in response.body {
                body += piece.readableBytesView.prefix(PushAnswer.largestBody - body.count)
                // Leaving the loop closes the stream.
                if body.count >= PushAnswer.largestBody { break }
            }
        } catch {
            // The status says enough.
        }
        return PushAnswer(
            status: Int(response.status.code), retryAfter: response.headers.first(name: "retry-after"), body: body)
    }
}
