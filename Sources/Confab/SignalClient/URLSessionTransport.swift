#if canImport(Darwin)
import Foundation
import Wire

func systemTransport() -> any Transport { URLSessionTransport() }

/// A transport that uses `URLSession`, which respects the device's proxy and VPN settings.
struct URLSessionTransport: Transport {
    /// The maximum size of a message in bytes. It exceeds the longest message from the server, an answer with 256 KiB
    /// of SDP.
    static let maxFrame = 1 << 20

    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket {
        URLSessionSocket(url, report)
    }

    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void {
        URLSessionTransfer.run(transfer, done)
    }
}

/// A WebSocket of URLSession.
private final class URLSessionSocket: TransportSocket {
    private let session: URLSession
    private let task: URLSessionWebSocketTask

    init(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) {
        let delegate = URLSessionSocketDelegate(report)
        // The delegate's queue is serial, so the events keep their order.
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: queue)
        task = session.webSocketTask(with: url, protocols: ["confab.v1"])
        task.maximumMessageSize = URLSessionTransport.maxFrame
        delegate.receive(from: task)
        queue.addOperation { [task] in task.resume() }
    }

    deinit { session.invalidateAndCancel() }

    func send(_ text: [UInt8]) {
        // Ignore the result: a failed send ends the task, which the delegate reports.
        task.send(.string(String(decoding: text, as: UTF8.self))) { _ in }
    }

    func close(_ code: CloseCode) {
        task.cancel(
            with: URLSessionWebSocketTask.CloseCode(rawValue: Int(code.rawValue)) ?? .normalClosure, reason: nil)
        session.finishTasksAndInvalidate()
    }
}

/// Reports the events of a URLSession WebSocket.
private final class URLSessionSocketDelegate: NSObject, URLSessionWebSocketDelegate {
    private let report: @Sendable (SocketEvent) -> Void
    private let isEnded = LockedValue(false)

    init(_ report: @escaping @Sendable (SocketEvent) -> Void) { self.report = report }

    func receive(from task: URLSessionWebSocketTask) {
        task.receive { [weak self, weak task] result in
            guard let self, let task, case .success(let message) = result else { return }
            switch message {
            case .string(let text): report(.received(Array(text.utf8)))
            default: report(.heard)
            }
            receive(from: task)
        }
    }

    private func end(_ code: CloseCode) {
        let isFirst = isEnded.withLock { isEnded in
            defer { isEnded = true }
            return !isEnded
        }
        if isFirst { report(.closed(code)) }
    }
}

extension URLSessionSocketDelegate {
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        report(.opened)
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        end(CloseCode(rawValue: UInt16(exactly: closeCode.rawValue) ?? CloseCode.noStatus.rawValue))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let code = (task as? URLSessionWebSocketTask)?.closeCode ?? .invalid
        end(code == .invalid ? .abnormal : CloseCode(rawValue: UInt16(exactly: code.rawValue) ?? 1006))
    }
}
#endif
