import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOSSL

/// The requests to an authority.
struct ACMEConnection: Sendable {
    private static let timeLimit: Duration = .seconds(30)

    private let client: HTTPClient

    /// - Parameter authorities: a PEM file of CA certificates to trust in addition to the system's; nil for none.
    init(authorities: String?) {
        var configuration = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let authorities { tls.additionalTrustRoots = [.file(authorities)] }
        configuration.tlsConfiguration = tls
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .seconds(10)
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Closes the connections. Requests that are running fail.
    func close() async { try? await client.shutdown() }

    /// Sends a request. Ends at once if the task is canceled, so that an authority cannot delay the stop of the server. Reads
    /// at most one byte more than ``ACMEResponse/maxBodySize``.
    func send(_ request: ACMERequest) async -> ACMEOrder.Input {
        let client = client
        return await withTaskGroup(of: ACMEOrder.Input.self) { group in
            group.addTask {
                do { return .received(try await Self.exchange(request, client)) } catch { return .lost("\(error)") }
            }
            group.addTask {
                try? await Task.sleep(for: Self.timeLimit)
                return .lost("no response within \(Self.timeLimit)")
            }
            defer { group.cancelAll() }
            return await group.next() ?? .lost("no response")
        }
    }

    private static func exchange(_ request: ACMERequest, _ client: HTTPClient) async throws -> ACMEResponse {
        var message = HTTPClientRequest(url: request.url)
        message.method = HTTPMethod(rawValue: request.method.rawValue)
        message.headers.add(name: "User-Agent", value: "Confab/\(ConfabServer.version)")
        if let accept = request.accept { message.headers.add(name: "Accept", value: accept) }
        if request.method == .post {
            message.headers.add(name: "Content-Type", value: "application/jose+json")
            message.body = .bytes(ByteBuffer(bytes: request.body))
        }
        let response = try await client.execute(message, timeout: .seconds(60))
        var body: [UInt8] = []
        for try await piece in response.body {
            body += piece.readableBytesView.prefix(ACMEResponse.maxBodySize + 1 - body.count)
            // Leaving the loop cancels the rest of the body.
            if body.count > ACMEResponse.maxBodySize { break }
        }
        var headers: [String: String] = [:]
        for (name, value) in response.headers { headers[name.lowercased()] = value }
        return ACMEResponse(status: Int(response.status.code), headers: headers, body: body)
    }
}
