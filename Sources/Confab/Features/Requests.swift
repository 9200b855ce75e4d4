import Wire

/// The pending requests of one feature, with the purpose of each.
///
/// Requests are held while the server does not know this client. A request that may be repeated is held again if the
/// connection was replaced before the server answered. Invariant: `answered` or `endHeld` returns the purpose of each
/// request once.
struct Requests<Purpose: Equatable & Sendable>: Equatable, Sendable {
    /// A request to send, with the id under which its answer is reported.
    struct Outgoing: Equatable, Sendable {
        var id: UInt64
        var message: ClientMessage
    }

    /// A request that is held or waits for its answer.
    private struct Entry: Equatable, Sendable {
        var message: ClientMessage
        var purpose: Purpose
        var repeats: Bool
    }

    /// The maximum number of held requests, the same as the signal client's limit for unanswered requests.
    private static var maxHeld: Int { SignalClient.Options().maxRequests }

    private var lastID: UInt64 = 0
    private var open: [UInt64: Entry] = [:]
    private var held: [UInt64] = []
    private(set) var isHolding = false

    /// Adds a request.
    ///
    /// - Parameter repeats: whether to send the request again if its answer was lost. False for actions that must not
    ///   happen twice.
    /// - Returns: the request to send; nil if it is held.
    /// - Throws: an error if too many requests are held.
    mutating func send(
        _ message: ClientMessage, for purpose: Purpose, repeats: Bool = true
    ) throws(ConfabError) -> Outgoing? {
        if isHolding, held.count >= Self.maxHeld { throw .tooManyHeld }
        let outgoing = add(message, purpose, repeats)
        guard isHolding else { return outgoing }
        held.append(outgoing.id)
        return nil
    }

    /// Adds a request that is sent at once, before all held ones. It is not sent again if its answer was lost.
    mutating func sendFirst(_ message: ClientMessage, for purpose: Purpose) -> Outgoing {
        add(message, purpose, false)
    }

    private mutating func add(_ message: ClientMessage, _ purpose: Purpose, _ repeats: Bool) -> Outgoing {
        lastID += 1
        open[lastID] = Entry(message: message, purpose: purpose, repeats: repeats)
        return Outgoing(id: lastID, message: message)
    }

    /// Whether there is an unanswered or held request with such a purpose.
    func contains(where matches: (Purpose) -> Bool) -> Bool { open.values.contains { matches($0.purpose) } }

    /// Holds new requests until `release` or `endHeld`.
    mutating func hold() { isHolding = true }

    /// Stops holding requests, and returns the held ones in order.
    mutating func release() -> [Outgoing] {
        isHolding = false
        defer { held = [] }
        return held.compactMap { id in open[id].map { Outgoing(id: id, message: $0.message) } }
    }

    /// Returns the purpose of an answered request; nil if there is no such request, or if it is held to be sent again.
    mutating func answered(_ id: UInt64, _ result: Result<ServerMessage, ConfabError>) -> Purpose? {
        guard let entry = open[id] else { return nil }
        if result.failureCode == .connectionRestarted, entry.repeats, held.count < Self.maxHeld {
            hold()
            held.append(id)
            return nil
        }
        open[id] = nil
        return entry.purpose
    }

    /// Stops holding requests, and drops the held ones.
    ///
    /// - Returns: their purposes.
    mutating func endHeld() -> [Purpose] {
        isHolding = false
        defer { held = [] }
        return held.compactMap { open.removeValue(forKey: $0)?.purpose }
    }
}

extension Requests {
    /// Adds a caller's request. Returns the effect that sends it, no effect if it is held, or the effect that fails
    /// the caller's method if too many are held.
    mutating func effects<Event, Action>(
        of message: ClientMessage, for purpose: Purpose, _ caller: FeatureCaller, repeats: Bool = true
    ) -> [FeatureEffect<Event, Action>] {
        do throws(ConfabError) {
            guard let request = try send(message, for: purpose, repeats: repeats) else { return [] }
            return [.send(request.id, request.message)]
        } catch {
            return [.finish(caller, .failure(error))]
        }
    }

    /// Stops holding requests, and returns the effects that send the held ones.
    mutating func released<Event, Action>() -> [FeatureEffect<Event, Action>] {
        release().map { .send($0.id, $0.message) }
    }
}

extension ConfabError {
    fileprivate static let tooManyHeld = ConfabError(
        .offlineQueueFull, "Too many requests are waiting for the connection. Try again when it is restored.",
        isRetryable: true)
}
