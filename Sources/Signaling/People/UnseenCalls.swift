import Wire

/// Calls whose end no device has shown to the person. They are sent to each device that goes online until they are
/// marked as seen.
struct UnseenCalls: Equatable, Sendable {
    /// Maximum number of calls kept. Older calls are only in the call log.
    private static let maxCalls = 100

    private var oldestFirst: [CallRecord]

    init(_ records: [CallRecord]) { oldestFirst = records }

    /// The names of the other people in these calls, as this person knows them.
    var names: [IdentityID: String] {
        var names: [IdentityID: String] = [:]
        for record in oldestFirst { names[record.other] = record.otherName }
        return names
    }

    func contains(_ call: CallID) -> Bool { oldestFirst.contains { $0.call == call } }

    mutating func append(_ record: CallRecord) {
        oldestFirst.append(record)
        if oldestFirst.count > Self.maxCalls { oldestFirst.removeFirst() }
    }

    /// Removes a call, for example because a device has shown its end.
    ///
    /// - Returns: false if the call is not in the list.
    mutating func remove(_ call: CallID) -> Bool {
        guard let index = oldestFirst.firstIndex(where: { $0.call == call }) else { return false }
        oldestFirst.remove(at: index)
        return true
    }

    /// Removes this call, or all calls if nil.
    mutating func forget(_ call: CallID?) { oldestFirst.removeAll { call == nil || $0.call == call } }

    /// Sends the ended calls to a device that just went online.
    func tell(_ client: ConnectionID, _ context: inout Context) {
        for record in oldestFirst {
            let ended = CallNotice.Ended(record, context.project.personID(of: record.other))
            context.send(.call(.ended(ended)), to: client)
        }
    }
}
