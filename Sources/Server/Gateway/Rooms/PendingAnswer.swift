import NIOCore
import Signaling
import Wire

/// A request over HTTP that waits for the hub's answer. To the runner it is a socket that gets one answer.
/// Used only on the runner's event loop.
final class PendingAnswer: RunnerSocket {
    /// Such requests do not take a place of an address: their connections do.
    var slot: AddressBudgets.Slot? { nil }
    fileprivate var socket: SocketID?
    private weak var runner: HubRunner?
    private var promise: EventLoopPromise<RoomReply>?

    fileprivate init(_ runner: HubRunner, _ promise: EventLoopPromise<RoomReply>) {
        (self.runner, self.promise) = (runner, promise)
    }

    // The runner drops all sockets when the server stops. The HTTP request must not wait any longer then.
    deinit { promise?.succeed(.refused(Gateway.AdmissionPoint.operation.draining)) }

    func answer(_ reply: RoomReply) {
        guard let promise else { return }
        self.promise = nil
        promise.succeed(reply)
        if let socket { runner?.unregister(socket, leaving: true) }
    }

    /// The runner closes a socket whose change could not be stored.
    func close(_ code: CloseCode, _ reason: String) { answer(.refused(.storageFailed)) }

    func write(_ bytes: [UInt8]) {}
    func flush() {}
}

extension HubRunner {
    /// Submits a request of an operator or application. The answer follows when everything that it says is stored.
    func ask(_ action: RoomRequest.Action) -> EventLoopFuture<RoomReply> {
        let promise = eventLoop.makePromise(of: RoomReply.self)
        let pending = PendingAnswer(self, promise)
        let socket = register(pending)
        pending.socket = socket
        submit(.operated(RoomRequest(socket: socket, action)))
        return promise.futureResult
    }
}

extension NIOLoopBound where Value == Gateway {
    /// Asks the rooms, and returns what they answer.
    ///
    /// - Throws: the error with which they refuse.
    func ask(_ action: RoomRequest.Action) async throws(WireError) -> RoomReply {
        let gateway = self
        let reply: RoomReply
        do {
            reply = try await gateway.eventLoop.flatSubmit { gateway.value.runner.ask(action) }.get()
        } catch {
            throw Gateway.AdmissionPoint.operation.draining
        }
        if case .refused(let error) = reply { throw error }
        return reply
    }
}
