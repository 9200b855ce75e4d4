import Wire

/// The chats and calls by which people may still agree to keep in touch, and who has said so.
struct Meetings: Equatable, Sendable {
    struct Call: Equatable, Sendable {
        var id: CallID
        var other: IdentityID
        var ended: Timestamp
    }

    struct Wish: Equatable, Sendable {
        var meeting: MeetingReference
        var other: Counterpart?
        var at: Timestamp
        var isMine = false
    }

    /// How long after a call the two may still agree.
    static let period: Duration = .seconds(3600)
    /// Of each kind; nobody talks to more people in an hour, nor answers more wishes.
    private static let most = 30

    private(set) var calls: [Call] = []
    private(set) var wishes: [Wish] = []

    var isEmpty: Bool { calls.isEmpty && wishes.isEmpty }

    mutating func talked(in call: CallID, with other: IdentityID, now: Timestamp) {
        calls.removeAll { now - $0.ended > Self.period }
        calls.append(Call(id: call, other: other, ended: now))
        if calls.count > Self.most { calls.removeFirst() }
    }

    func other(in call: CallID, now: Timestamp) -> IdentityID? {
        calls.first { $0.id == call && now - $0.ended <= Self.period }?.other
    }

    /// Notes that one of the two said it; returns what is known of both by now.
    mutating func wish(_ meeting: MeetingReference, by other: Counterpart?, now: Timestamp) -> Wish {
        wishes.removeAll { now - $0.at > Self.period }
        var wish = Wish(meeting: meeting, at: now)
        if let index = wishes.firstIndex(where: { $0.meeting == meeting }) { wish = wishes.remove(at: index) }
        if let other { wish.other = other } else { wish.isMine = true }
        wishes.append(wish)
        if wishes.count > Self.most { wishes.removeFirst() }
        return wish
    }

    mutating func fulfilled(_ meeting: MeetingReference) { wishes.removeAll { $0.meeting == meeting } }

    mutating func forget(_ other: IdentityID) {
        calls.removeAll { $0.other == other }
        wishes.removeAll { $0.other?.identity == other }
    }
}
