// Moving to another node of a cluster (`protocol/README.md` §3.1).
extension SignalClient {
    /// A request that another node must answer. It is sent there as a new message.
    struct Moving: Equatable, Sendable {
        var request: Exchange.Request
        /// When to send it; nil before the welcome. It is sent as a timeout, after the effects of the welcome: it may need what
        /// the owner's requests restore, such as the person's presence.
        var due: Timestamp?
    }

    /// Moves to the node that an error names.
    ///
    /// - Returns: false if the client does not move, so that the error must be reported.
    mutating func move(
        because failure: ServerMessage.Failure, from socket: Socket, _ now: Timestamp, _ effects: inout [Effect]
    ) -> Bool {
        guard options.reconnects, failure.error.code == .elsewhere, let node = failure.error.at else { return false }
        if let re = failure.re, !isConnected || !exchange.canRepeat(re) { return false }
        guard nodes.redirect(to: node, isConnected: isConnected, now: now) else { return false }
        let request: Exchange.Request?
        if let re = failure.re {
            // If an earlier request is still to be sent, it fails with the others.
            request = exchange.takeRepeatable(re)
        } else {
            (request, moving) = (moving?.request, nil)
        }
        if isConnected { send(.bye, on: socket, &effects) }
        effects.append(.close(socket, .normal))
        if isConnected { effects.append(.reconnecting) }
        // A node that does not have the connection named the one that has it: resume there.
        if isConnected || node != nodes.home { expire(&effects) }
        moving = request.map { Moving(request: $0) }
        open(now, &effects)
        return true
    }

    /// Sends the request for which the client moved, if it is due.
    mutating func sendMoved(_ now: Timestamp, _ effects: inout [Effect]) {
        guard let moving, let due = moving.due, due <= now else { return }
        self.moving = nil
        guard let message = moving.request.message else { return }
        request(message, as: moving.request.id, &effects)
    }
}
