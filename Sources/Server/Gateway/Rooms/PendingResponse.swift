import Signaling
import Wire

/// An HTTP request that waits for the hub's answer. The runner treats it as a socket that receives one answer. Used
/// only on the runner's event loop.
private final class PendingResponse: RunnerSocket {
    /// Nil: the request is not counted against its address, because its connection is already counted.
    var slot: AddressBudgets.Slot? { nil }
    var socket: SocketID?
    private weak var runner: HubRunner?
    private var continuation: CheckedContinuation<OperatorReply, Never>?

    init(_ runner: HubRunner, _ continuation: CheckedContinuation<OperatorReply, Never>) {
        (self.runner, self.continuation) = (runner, continuation)
    }

    // The runner releases all sockets when the server stops. Answer the HTTP request then, so that it does not keep
    // waiting.
    deinit { continuation?.resume(returning: .refused(Gateway.AdmissionPoint.operation.draining)) }

    func answer(_ reply: OperatorReply) {
        guard let continuation else { return }
        self.continuation = nil
        continuation.resume(returning: reply)
        if let socket { runner?.unregister(socket, leaving: true) }
    }

    /// Called if the change could not be stored: the runner then closes the socket.
    func close(_ code: CloseCode, _ reason: String) { answer(.refused(.storageFailed)) }

    func write(_ bytes: [UInt8]) {}
    func flush() {}
}

extension HubRunner {
    /// Submits a request that comes from an HTTP endpoint, not from a client of the hub. Returns the answer when all
    /// changes that it reports are stored.
    ///
    /// - Throws: the error with which the hub refuses.
    func ask(_ action: OperatorRequest.Action) async throws(WireError) -> OperatorReply {
        let reply = await withCheckedContinuation { continuation in
            let pending = PendingResponse(self, continuation)
            let socket = register(pending)
            pending.socket = socket
            submit(.operated(OperatorRequest(socket: socket, action)))
        }
        if case .refused(let error) = reply { throw error }
        return reply
    }
}
