import Foundation
import Wire

/// An HTTP request: a GET request for a document or a file, or a PUT request with a file.
struct HTTPTransfer: Sendable {
    /// A file on this device to upload, or to download into.
    struct File: Sendable {
        var handle: FileHandle
        /// The exact number of bytes to send or to receive.
        var size: Int
    }

    var url: URL
    /// The secret or token for the header `Authorization`.
    var bearer: String
    /// The file to send; nil for a GET request.
    var upload: File?
    /// The file that receives the body of a successful response; nil to keep the body in memory.
    var download: File?
    /// Called in order with the number of bytes of the file transferred so far.
    var progress: @Sendable (Int) -> Void = { _ in }

    /// The number of bytes of a file that are read and sent at a time.
    static let partSize = 64 << 10

    /// Whether the request transfers a file. Such a request may take any time, as long as it makes progress.
    var isFile: Bool { upload != nil || download != nil }
}

/// The response to an HTTP request.
struct HTTPResponse: Sendable {
    /// The size in bytes of the largest body that is kept in memory. A person's export has at most a few thousand
    /// short entries.
    static let maxBody = 16 << 20
    /// The maximum time for a request without a file, and the maximum time without progress for a file transfer.
    static let timeout = Duration.seconds(30)

    var status: Int
    var body: [UInt8]

    var isSuccess: Bool { (200..<300).contains(status) }

    /// The body if the request succeeded; otherwise the error that the server sent.
    var document: Result<Data, ConfabError> {
        if isSuccess { return .success(Data(body)) }
        guard case .object(let object)? = try? JSONReader.parse(body), case .string(let code)? = object["code"],
            case .string(let message)? = object["message"]
        else { return .failure(.unexpectedStatus(status)) }
        let wait: Duration? =
            if case .integer(let time)? = object["retryAfterMs"] { .milliseconds(max(0, time)) } else { nil }
        let isRetryable = object["retryable"] == .bool(true)
        return .failure(
            ConfabError(WireError(.init(rawValue: code), message, retryable: isRetryable, retryAfter: wait)))
    }
}

/// Collects the body of a response, and enforces its size limit. All transports use it.
struct HTTPReceiver {
    /// The reason why a response cannot be used.
    struct Failure: Error, CustomStringConvertible {
        let description: String
        static let tooLarge = Failure(description: "the response is too large")
        static let ended = Failure(description: "the connection ended before the response was complete")
        static let otherSize = Failure(description: "the size of the file differs from the announced size")
    }

    private let transfer: HTTPTransfer
    private(set) var answer = HTTPResponse(status: 0, body: [])
    private var written = 0

    init(_ transfer: HTTPTransfer) { self.transfer = transfer }

    mutating func begin(status: Int) { answer.status = status }

    mutating func take(_ part: some Collection<UInt8>) throws {
        guard let file = transfer.download, answer.isSuccess else {
            guard answer.body.count + part.count <= HTTPResponse.maxBody else { throw Failure.tooLarge }
            answer.body += part
            return
        }
        guard written + part.count <= file.size else { throw Failure.tooLarge }
        try file.handle.write(contentsOf: Data(part))
        written += part.count
        transfer.progress(written)
    }

    /// Returns the complete response.
    ///
    /// - Throws: an error if a downloaded file is incomplete.
    func end() throws -> HTTPResponse {
        if answer.isSuccess, let file = transfer.download, written != file.size { throw Failure.otherSize }
        return answer
    }
}

extension ConfabClient.Credential {
    /// Fetches a user token from the application. The thrown error has the code `credential_failed`.
    static func token(
        from ask: @Sendable () async throws -> String
    ) async throws(ConfabError) -> String {
        do {
            return try await ask()
        } catch {
            let message = "The user token could not be fetched. Check the application's server and try again."
            throw ConfabError(.credentialFailed, message, isRetryable: true, cause: error)
        }
    }
}

extension ClientCore {
    /// Downloads a document about this person, with the same credential as the connection.
    ///
    /// - Parameter path: the path below the server's address, such as `/v1/person`.
    /// - Throws: the server's error, or `connect_failed`.
    func download(_ path: String) async throws(ConfabError) -> Data {
        let url = try address(of: path)
        return try await run(HTTPTransfer(url: url, bearer: try await bearer()))
    }

    /// Carries out a request. Canceling the task cancels it. When this method returns, the transport no longer uses
    /// the file.
    ///
    /// - Throws: the server's error, or `connect_failed`.
    @discardableResult
    func run(_ transfer: HTTPTransfer) async throws(ConfabError) -> Data {
        let running = LockedValue<(isCancelled: Bool, end: (@Sendable () -> Void)?)>((false, nil))
        let transport = dependencies.transport
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let end = transport.run(transfer) { continuation.resume(returning: $0) }
                let isCancelled = running.withLock { running in
                    running.end = end
                    return running.isCancelled
                }
                if isCancelled { end() }
            }
        } onCancel: {
            let end = running.withLock { running in
                running.isCancelled = true
                return running.end
            }
            end?()
        }
        if case .failure = answer, running.withLock(\.isCancelled) { throw .cancelled }
        return try answer.mapError { .unreachable($0) }.flatMap(\.document).get()
    }

    /// Returns the URL of a path below the server's address.
    ///
    /// - Parameter path: a percent-encoded path. The server chooses some paths, so any text is possible.
    /// - Throws: `server_url_invalid` if the application's address is unusable, `unexpected_answer` if the server's
    ///   path is.
    func address(of path: String) throws(ConfabError) -> URL {
        guard let url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw .invalidServerURL
        }
        parts.scheme = parts.scheme == "wss" ? "https" : "http"
        parts.path = String(parts.path.dropLast(Self.socketPath.count))
        // Join the URL as text, because the setter of `percentEncodedPath` traps if the path is not valid.
        let isPlain = path.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        guard isPlain, path.hasPrefix("/"), let base = parts.string, let address = URL(string: base + path),
            address.host == parts.host, address.port == parts.port
        else { throw .unusablePath }
        return address
    }

    /// Returns the secret or token for a request.
    private func bearer() async throws(ConfabError) -> String {
        switch credential {
        case .userToken(let ask): return try await ConfabClient.Credential.token(from: ask)
        case .anonymous(let store):
            try load(store)
            guard let identity else {
                throw ConfabError(.notConnected, "This device has no identity on the server yet. Connect first.")
            }
            return identity
        }
    }
}

extension ConfabError {
    fileprivate static let unusablePath = ConfabError(
        .unexpectedAnswer, "The server sent an unusable path. Update the client or the server.")

    fileprivate static func unexpectedStatus(_ status: Int) -> ConfabError {
        ConfabError(
            .unexpectedAnswer, "The server answered with HTTP status \(status). Check the server's address.")
    }

    static func unreachable(_ cause: (any Error)? = nil) -> ConfabError {
        ConfabError(
            .connectFailed, "The server cannot be reached. Check your connection and try again.", isRetryable: true,
            cause: cause)
    }
}
