import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
public import Signaling
public import Wire

/// A client for the server's HTTP API for operators. Used by commands such as `confab room`.
public struct OperatorClient: Sendable {
    /// Maximum size of a response in bytes. This is ample: a page of 100 rooms has at most 100 KiB.
    private static let maxAnswerSize = 1 << 20

    private let url: String
    /// True if the URL comes from the data directory. The server is then on this machine.
    private let isLocal: Bool
    private let project: Project

    /// Creates a client of a running server.
    ///
    /// - Parameters:
    ///   - server: the server's URL; nil for the server that uses this data directory.
    ///   - dataDirectory: the directory where a running server stores its address.
    /// - Throws: `OperatorClientError` if `server` is nil and no server is using the data directory, or if the stored
    ///   address cannot be read.
    public init(server: String?, dataDirectory: String, project: Project) throws(OperatorClientError) {
        let own: String?
        do throws(DataDirectoryError) { own = try ServerAddressFile.read(in: dataDirectory) } catch {
            throw OperatorClientError("\(error)")
        }
        guard let url = server ?? own else {
            throw OperatorClientError(
                "No server is using the data directory \(dataDirectory). Start it (confab serve), or specify another "
                    + "directory with --data-dir or a server with --server.")
        }
        (self.url, self.project, isLocal) = (url.hasSuffix("/") ? String(url.dropLast()) : url, project, server == nil)
    }

    /// Sends a request and returns the JSON object in the response; an empty object if there is none.
    ///
    /// - Throws: `OperatorClientError` if the server does not respond or refuses the request.
    public func send(_ method: String, _ path: String, _ body: [UInt8]? = nil) async throws -> JSONObject {
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let answer: (status: Int, body: [UInt8])
        do {
            answer = try await exchange(client, method, path, body)
            try await client.shutdown()
        } catch {
            try? await client.shutdown()
            throw OperatorClientError(
                "The server at \(url) does not respond. Check that it is running, and its log. (\(error))")
        }
        var object = JSONObject()
        if case .object(let parsed)? = try? JSONReader.parse(answer.body) { object = parsed }
        guard (200..<300).contains(answer.status) else {
            if case .string(let message)? = object["message"] { throw OperatorClientError(message) }
            throw OperatorClientError(
                "The server at \(url) responded with status \(answer.status). Check that this is the URL of Confab, and the "
                    + "server's log.")
        }
        return object
    }

    private var configuration: HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        // Do not verify the certificate of a local server: it is for the server's public name, and the connection does
        // not leave this machine.
        if isLocal { tls.certificateVerification = .none }
        configuration.tlsConfiguration = tls
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .seconds(5)
        configuration.connectionPool.retryConnectionEstablishment = false
        return configuration
    }

    private func exchange(
        _ client: HTTPClient, _ method: String, _ path: String, _ body: [UInt8]?
    ) async throws -> (status: Int, body: [UInt8]) {
        let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        var request = HTTPClientRequest(url: url + path)
        request.method = HTTPMethod(rawValue: method)
        request.headers.add(name: "X-OPENTOK-AUTH", value: project.makeRequestToken(now: now))
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(bytes: body))
        }
        let response = try await client.execute(request, timeout: .seconds(30))
        let content = try await response.body.collect(upTo: Self.maxAnswerSize)
        return (Int(response.status.code), Array(content.readableBytesView))
    }
}

/// The reason why a request to the server failed, as a sentence for the operator.
public struct OperatorClientError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
