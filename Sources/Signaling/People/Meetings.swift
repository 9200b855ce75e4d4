import Wire

/// Recent calls after which two people may become contacts, and the contact requests after calls and chats.
/// `RouletteState` keeps the recent chats.
struct Meetings: Equatable, Sendable {
    /// A call that took place recently.
    struct Call: Equatable, Sendable {
        var id: CallID
        var other: IdentityID
        var ended: Timestamp
    }

    /// Which of the two people want to become contacts after a meeting: this person (`isMine`), and the other person
    /// (if `other` is set).
    struct ContactRequest: Equatable, Sendable {
        var meeting: MeetingReference
        var other: Counterpart?
        var at: Timestamp
        var isMine = false
    }

    /// How long after a call the two people may still become contacts.
    static let period: Duration = .seconds(3600)
    /// Maximum number of calls kept, and of requests kept. More than a person needs in an hour.
    private static let maxCount = 30

    private(set) var calls: [Call] = []
    private(set) var requests: [ContactRequest] = []

    var isEmpty: Bool { calls.isEmpty && requests.isEmpty }

    mutating func recordCall(in call: CallID, with other: IdentityID, now: Timestamp) {
        calls.removeAll { now - $0.ended > Self.period }
        calls.append(Call(id: call, other: other, ended: now))
        if calls.count > Self.maxCount { calls.removeFirst() }
    }

    func other(in call: CallID, now: Timestamp) -> IdentityID? {
        calls.first { $0.id == call && now - $0.ended <= Self.period }?.other
    }

    /// Records a contact request by this person (`other` is nil) or by the other person. Returns what both of them have
    /// requested so far.
    mutating func recordRequest(_ meeting: MeetingReference, by other: Counterpart?, now: Timestamp) -> ContactRequest {
        requests.removeAll { now - $0.at > Self.period }
        var request = ContactRequest(meeting: meeting, at: now)
        if let index = requests.firstIndex(where: { $0.meeting == meeting }) { request = requests.remove(at: index) }
        if let other { request.other = other } else { request.isMine = true }
        requests.append(request)
        if requests.count > Self.maxCount { requests.removeFirst() }
        return request
    }

    mutating func fulfilled(_ meeting: MeetingReference) { requests.removeAll { $0.meeting == meeting } }

    mutating func forget(_ other: IdentityID) {
        calls.removeAll { $0.other == other }
        requests.removeAll { $0.other?.identity == other }
    }
}
