import Wire

/// Limits the messages to all members that members can cause.
extension Session {
    /// The approximate size of a message to all members in bytes, without its text.
    private static let messageSize = 256

    /// Charges a message to all members to the session's budget.
    ///
    /// - Throws: `rate_limited` if the budget is exhausted.
    mutating func charge(_ count: Int = 1, textSize: Int = 0, _ turn: Turn) throws(WireError) {
        guard let wait = takeTraffic(count, textSize: textSize, turn) else { return }
        throw WireError(
            .rateLimited, "This session has reached its limit for messages. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }

    /// Charges a join together with the later departure, unless the session grows. Each costs a message to every
    /// member, so members who leave and join repeatedly must wait. The number of members limits the cost of growth, so
    /// all of them may arrive at once.
    ///
    /// The budget has the same rate as that of `charge` but is separate, so that joins and departures do not block
    /// signals.
    ///
    /// - Returns: false if the session grows, so that nothing was charged.
    /// - Throws: `rate_limited` if the budget is exhausted.
    mutating func chargeArrival(_ turn: Turn) throws(WireError) -> Bool {
        recentSize.note(order.count, for: turn.rules.sessionSizeMemory, now: turn.now)
        guard order.count < recentSize.greatest else { return false }
        let cost = Double(2 * Self.messageSize * order.count)
        guard let wait = arrivals.take(turn.rules.sessionTraffic, cost: cost, now: turn.now) else { return true }
        throw WireError(
            .rateLimited, "Connections leave and join this session too often. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }

    /// Charges messages to all members that may be omitted. Returns false if the budget is exhausted.
    mutating func affords(_ count: Int, _ turn: Turn) -> Bool { takeTraffic(count, textSize: 0, turn) == nil }

    private mutating func takeTraffic(_ count: Int, textSize: Int, _ turn: Turn) -> Duration? {
        let cost = count * (Self.messageSize + textSize) * order.count
        return traffic.take(turn.rules.sessionTraffic, cost: Double(cost), now: turn.now)
    }

    /// Announces the changed properties of a stream. If the budget is exhausted, schedules the announcement, which then
    /// contains only the latest properties.
    mutating func announceChange(of stream: StreamInfo, _ turn: inout Turn) {
        guard announceAt == nil, let wait = takeTraffic(1, textSize: 0, turn) else {
            if announceAt == nil { sendChange(of: stream, &turn) } else { delayChange(of: stream.id) }
            return
        }
        announceAt = turn.now + wait
        delayChange(of: stream.id)
    }

    private mutating func delayChange(of stream: StreamID) {
        if !unannounced.contains(stream) { unannounced.append(stream) }
    }

    private func sendChange(of stream: StreamInfo, _ turn: inout Turn) {
        broadcast(
            .session(.streamChanged(.init(session: id, stream: stream))), about: publisherNumber(stream), &turn)
    }

    /// Announces delayed changes as far as the budget allows.
    mutating func announceChanges(_ turn: inout Turn) {
        guard let at = announceAt, at <= turn.now else { return }
        announceAt = nil
        while let next = unannounced.first {
            if let stream = streams[next]?.stream {
                if let wait = takeTraffic(1, textSize: 0, turn) {
                    announceAt = turn.now + wait
                    return
                }
                sendChange(of: stream, &turn)
            }
            unannounced.removeFirst()
        }
    }
}
