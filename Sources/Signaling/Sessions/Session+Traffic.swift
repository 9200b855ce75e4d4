import Wire

/// Limits how often members can cause messages to all members.
extension Session {
    /// The approximate size in bytes, for each recipient, of a message to all members, without its text.
    private static let messageSize = 256

    /// Charges messages to all members to the session's budget. `textSize` is the size of the text in each message, in
    /// bytes.
    ///
    /// - Throws: `rate_limited` if the budget is exhausted.
    mutating func charge(_ count: Int = 1, textSize: Int = 0, _ context: Context) throws(WireError) {
        guard let wait = takeTraffic(count, textSize: textSize, context) else { return }
        throw WireError(
            .rateLimited, "This session has reached its limit for messages. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }

    /// Charges a join together with the later departure, unless the session grows. A join and a departure each cost a
    /// message to every member, so members who leave and join repeatedly must wait. Growth is free, because the
    /// number of members limits its cost: all of them may arrive at once.
    ///
    /// The budget has the same rate as that of `charge` but is separate, so that joins and departures do not block
    /// signals.
    ///
    /// - Returns: false if the session grows, so that nothing was charged.
    /// - Throws: `rate_limited` if the budget is exhausted.
    mutating func chargeArrival(_ context: Context) throws(WireError) -> Bool {
        recentSize.note(order.count, for: context.rules.sessionSizeMemory, now: context.now)
        guard order.count < recentSize.greatest else { return false }
        let cost = Double(2 * Self.messageSize * order.count)
        guard let wait = arrivals.take(context.rules.sessionTraffic, cost: cost, now: context.now) else { return true }
        throw WireError(
            .rateLimited, "Connections leave and join this session too often. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }

    /// Charges `count` messages to all members, and returns true. If the budget is exhausted, charges nothing and
    /// returns false: the caller must then omit these messages.
    mutating func affords(_ count: Int, _ context: Context) -> Bool { takeTraffic(count, textSize: 0, context) == nil }

    private mutating func takeTraffic(_ count: Int, textSize: Int, _ context: Context) -> Duration? {
        let cost = count * (Self.messageSize + textSize) * order.count
        return traffic.take(context.rules.sessionTraffic, cost: Double(cost), now: context.now)
    }

    /// Announces the changed properties of a stream. If the budget is exhausted or other announcements are already
    /// delayed, delays this one too. A delayed announcement contains only the latest properties.
    mutating func announceChange(of stream: StreamInfo, _ context: inout Context) {
        guard announceAt == nil, let wait = takeTraffic(1, textSize: 0, context) else {
            if announceAt == nil { sendChange(of: stream, &context) } else { delayChange(of: stream.id) }
            return
        }
        announceAt = context.now + wait
        delayChange(of: stream.id)
    }

    private mutating func delayChange(of stream: StreamID) {
        if !unannounced.contains(stream) { unannounced.append(stream) }
    }

    private func sendChange(of stream: StreamInfo, _ context: inout Context) {
        broadcast(
            .session(.streamChanged(.init(session: id, stream: stream))), about: publisherNumber(stream), &context)
    }

    /// Announces delayed changes as far as the budget allows, and delays the rest again.
    mutating func announceChanges(_ context: inout Context) {
        guard let at = announceAt, at <= context.now else { return }
        announceAt = nil
        while let next = unannounced.first {
            if let stream = streams[next]?.stream {
                if let wait = takeTraffic(1, textSize: 0, context) {
                    announceAt = context.now + wait
                    return
                }
                sendChange(of: stream, &context)
            }
            unannounced.removeFirst()
        }
    }
}
