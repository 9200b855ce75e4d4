// Leaving, even while the connection is down.
extension SignalClient {
    /// The time until which the signaling client may still have to notify the server that it has left; nil if the
    /// server was notified or keeps no connection. Until that time, carry out effects and report events as before.
    public var leaveDeadline: Timestamp? { pendingLeave?.deadline }

    mutating func leave(_ effects: inout [Effect]) {
        guard ending == nil else { return }
        if case .connected(let socket, _) = state { send(.bye, on: socket, &effects) }
        let pendingLeave = makePendingLeave()
        if pendingLeave == nil, let socket { effects.append(.close(socket, .normal)) }
        end(.normal, nil, &effects)
        self.pendingLeave = pendingLeave
    }

    /// Returns the object that will notify the server that the client has left; nil if the current socket can carry
    /// the `bye`, if the server keeps no connection, or if this client does not reconnect.
    private func makePendingLeave() -> PendingLeave? {
        guard options.reconnects, let place, let placeDeadline else { return nil }
        var hello = hello
        hello.resume = Hello.Resume(secret: place.secret, received: exchange.received)
        let next: PendingLeave.State
        switch state {
        case .opening(let socket, let until): next = .opening(socket, until: until)
        case .greeting(let socket, let until): next = .greeting(socket, until: until)
        case .waiting(let until, _): next = .waiting(until: until)
        case .idle, .connected, .ended: return nil
        }
        return PendingLeave(
            next, hello: hello, deadline: placeDeadline, welcomeTimeout: options.welcomeTimeout,
            node: nodes.home, socketCount: socketCount)
    }

    /// Handles an event, or a timeout if `event` is nil, after the client has left.
    mutating func depart(_ event: Event?, _ now: Timestamp) -> [Effect] {
        guard var pendingLeave else { return [] }
        if case .request(let id, _) = event { return [.failed(id, .left)] }
        let effects =
            event.map { pendingLeave.handle($0, now: now, using: &random) }
            ?? pendingLeave.handleTimeout(now: now, using: &random)
        self.pendingLeave = pendingLeave.state == .over ? nil : pendingLeave
        return effects
    }
}
