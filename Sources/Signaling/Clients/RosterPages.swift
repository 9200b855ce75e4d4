import Wire

/// The roster pages that a client has not acknowledged, at most one per session.
struct RosterPages: Equatable, Sendable {
    /// A session whose next page waits for an acknowledgment.
    private struct Awaited: Equatable, Sendable {
        var session: SessionID
        /// The number of the message that must be acknowledged before the next page is sent.
        var seq: UInt64
    }

    private var awaited: [Awaited] = []

    /// Records that a message was sent with the number `seq`, if another page follows it.
    mutating func sent(_ notice: SessionNotice, as seq: UInt64) {
        switch notice {
        case .joined(let joined) where notice.awaitsAcknowledgement: expect(seq, in: joined.session)
        case .roster(let roster) where notice.awaitsAcknowledgement: expect(seq, in: roster.session)
        default: return
        }
    }

    /// Records that the session's next page must wait until the client has acknowledged everything up to `seq`.
    mutating func expect(_ seq: UInt64, in session: SessionID) {
        forget(session)
        awaited.append(Awaited(session: session, seq: seq))
    }

    mutating func forget(_ session: SessionID) { awaited.removeAll { $0.session == session } }

    /// Removes and returns the sessions whose next page may be sent after the client acknowledged all messages up to
    /// `ack`.
    mutating func take(upTo ack: UInt64) -> [SessionID] {
        guard awaited.contains(where: { $0.seq <= ack }) else { return [] }
        let ready = awaited.filter { $0.seq <= ack }.map(\.session)
        awaited.removeAll { $0.seq <= ack }
        return ready
    }
}

extension Client {
    mutating func forget(_ session: SessionID) {
        sessions.removeAll { $0 == session }
        pages.forget(session)
    }

    /// Returns true if the message is a roster page of a session that the client left while the page was on its way.
    func isStale(_ message: ServerMessage) -> Bool {
        if case .session(.roster(let page)) = message { !sessions.contains(page.session) } else { false }
    }

    /// Returns whether to withhold a message: if it announces that another client joined a session, and too many sent
    /// bytes are unacknowledged. If so, notifies the session, which announces the join in a page after the
    /// acknowledgment.
    mutating func withhold(_ message: ServerMessage, _ context: inout Context) -> Bool {
        guard case .session(.connectionCreated(let created)) = message, link.keptBytes > context.rules.rosterPage else {
            return false
        }
        pages.expect(link.sent, in: created.session)
        context.tell(.session(created.session, .lagging(id, behind: created.connection.id)))
        return true
    }

    /// Handles an acknowledgment of all messages up to number `ack`. Requests the roster pages that may now be sent.
    mutating func acknowledged(upTo ack: UInt64, _ context: inout Context) {
        link.acknowledged(upTo: ack)
        guard ack <= link.sent else { return }
        for session in pages.take(upTo: ack) { context.tell(.session(session, .rosterAcknowledged(id))) }
    }
}
