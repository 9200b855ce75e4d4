import Foundation
import Wire

@testable import Confab

/// Files of a server in memory, by the paths of their addresses. An upload waits between its parts until it is let on.
final class FakeFiles: Sendable {
    private struct State: Sendable {
        var stored: [String: [UInt8]] = [:]
        var bearers: [String] = []
        var cancelled = 0
        var wasClosedEarly = false
        var isStalled = false
        var refusal: HTTPResponse?
    }
    private let state = LockedValue(State())

    var stored: [String: [UInt8]] { state.withLock { $0.stored } }
    /// The secrets of all requests.
    var bearers: [String] { state.withLock { $0.bearers } }
    /// How many requests were ended by the client.
    var cancelled: Int { state.withLock { $0.cancelled } }
    /// Whether a file was closed while its request had not ended.
    var wasClosedEarly: Bool { state.withLock { $0.wasClosedEarly } }
    func store(_ bytes: [UInt8], at path: String) { state.withLock { $0.stored[path] = bytes } }
    /// Answers no further request.
    func stall() { state.withLock { $0.isStalled = true } }
    func refuse(_ answer: HTTPResponse?) { state.withLock { $0.refusal = answer } }

    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void {
        let (isStalled, refusal) = state.withLock { state in
            state.bearers.append(transfer.bearer)
            return (state.isStalled, state.refusal)
        }
        if !isStalled { done(Result { try refusal ?? answer(transfer) }) }
        return { [state] in
            state.withLock { $0.cancelled += 1 }
            guard isStalled else { return }
            // A transport on another thread may still read the file.
            Task {
                for _ in 0..<10 { await Task.yield() }
                let isOpen = (try? transfer.upload?.handle.offset()) != nil
                state.withLock { $0.wasClosedEarly = $0.wasClosedEarly || !isOpen }
                done(.failure(CancellationError()))
            }
        }
    }

    private func answer(_ transfer: HTTPTransfer) throws -> HTTPResponse {
        let path = transfer.url.path(percentEncoded: true)
        if let file = transfer.upload {
            var bytes: [UInt8] = []
            while let part = try file.handle.read(upToCount: 1000), !part.isEmpty {
                bytes += part
                transfer.progress(bytes.count)
            }
            state.withLock { $0.stored[path] = bytes }
            return HTTPResponse(status: 204, body: [])
        }
        var receiver = HTTPReceiver(transfer)
        guard let bytes = state.withLock({ $0.stored[path] }) else {
            receiver.begin(status: 404)
            try receiver.take(#"{"code":"not_found","message":"There is no such file."}"#.utf8)
            return try receiver.end()
        }
        receiver.begin(status: 200)
        for start in stride(from: 0, to: bytes.count, by: 1000) {
            try receiver.take(bytes[start..<min(start + 1000, bytes.count)])
        }
        return try receiver.end()
    }
}
