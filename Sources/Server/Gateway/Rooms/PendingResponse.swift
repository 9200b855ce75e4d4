import Signaling
import Wire

/// An HTTP request that waits for the hub's answer. The runner treats it as a socket that receives one answer. Used
/// only on the runner's event loop.
private final class PendingResponse: RunnerSocket {
    /// Nil: such a request takes no place of an address, because its connection already has one.
    var slot: AddressBudgets.Slot? { nil }
    var socket: SocketID?
    private weak var runner: HubRunner?
    private var promise: EventLoopPromise<OperatorReply>?

    fileprivate init(_ runner: HubRunner, _ promise: EventLoopPromise<OperatorReply>) {
        (self.runner, self.promise) = (runner, promise)
    }

    // The runner releases all sockets when the server stops. The HTTP request must not keep waiting then.
    deinit { continuation?.resume(returning: .refused(Gateway.AdmissionPoint.operation.draining)) }

    func answer(_ reply: OperatorReply) {
        guard let promise else { return }
        self.promise = nil
        promise.succeed(reply)
        if let socket { runner?.unregister(socket, leaving: true) }
    }

    /// Called if the change could not be stored: the runner then closes the socket.
    func close(_ code: CloseCode, _ reason: String) { answer(.refused(.storageFailed)) }

    func write(_ bytes: [UInt8]) {}
    func flush() {}
}

extension HubRunner {
    /// Submits a request from an operator or application. The answer follows when all changes that it reports are
    /// stored.
    func ask(_ action: OperatorRequest.Action) -> EventLoopFuture<OperatorReply> {
        let promise = eventLoop.makePromise(of: OperatorReply.self)
        let pending = PendingResponse(self, promise)
        let socket = register(pending)
        pending.socket = socket
        submit(.operated(OperatorRequest(socket: socket, action)))
        return promise.futureResult
    }
}

extension NIOLoopBound where Value == Gateway {
    /// Sends a request to the rooms, and returns their answer.
    ///
    /// - Throws: the error with which they refuse.
    func ask(_ action: OperatorRequest.Action) async throws(WireError) -> OperatorReply {
        let gateway = self
        let reply: OperatorReply
        do {
            reply = try await gateway.eventLoop.flatSubmit { gateway.value.runner.ask(action) }.get()
        } catch {
            throw Gateway.AdmissionPoint.operation.draining
        }
        if case .refused(let error) = reply { throw error }
        return reply
    }
}
