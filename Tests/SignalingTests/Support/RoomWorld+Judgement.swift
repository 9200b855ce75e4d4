import Signaling
import Wire

/// The invariants, checked after every event.
extension RoomWorld {
    func judge() {
        noteChanges()
        judgeRights()
        forgetEndedRooms()
        for visitor in clients where visitor.isLive { judge(visitor) }
        for name in Self.names {
            judge(name)
            judgePhones(name)
        }
        let occupied = Set(clients.filter(\.isLive).compactMap { $0.view?.name })
        let (rooms, sessions) = (stage.hub.roomCount, stage.hub.sessionCount)
        if occupied.count > rooms { fail("\(occupied.count) rooms have people, and \(rooms) exist") }
        let remembered = mutedSessions.union(revokingSessions.keys).count
        if sessions > rooms + remembered {
            fail("\(sessions) sessions of \(rooms) rooms are left, and \(remembered) are remembered")
        }
        let space = stage.hub.roomFileSpace
        let (bytes, shares) = (space.all.bytes, space.addresses.values.map(\.bytes))
        if shares.contains(where: { $0 <= 0 }) || shares.reduce(0, +) != bytes {
            fail("the shares \(shares) of addresses are not the \(bytes) bytes of files")
        }
        let unfinished = space.addresses.values.map(\.unfinished)
        if unfinished.contains(where: { $0 < 0 }) || unfinished.reduce(0, +) != space.all.unfinished {
            fail("the unfinished shares \(unfinished) of addresses are not the \(space.all.unfinished) bytes of all")
        }
        if bytes < 0 || (rooms == 0 && bytes > 0) { fail("\(rooms) rooms have \(bytes) bytes of files") }
    }

    private func judge(_ visitor: Visitor) {
        if visitor.guest.openRequests > 0 { fail("a request has no answer") }
        let own = [visitor.view?.admission.session].compactMap { $0 }
        if !visitor.guest.places.isSubset(of: own) { fail("a person is in the session of a room that they are not in") }
    }

    private func judge(_ name: RoomName) {
        let inside = clients.filter { $0.isLive && $0.view?.name == name }
        guard let first = inside.first?.view else { return }
        let hosts = first.people.values.filter { $0.role == .host && !$0.connection.isPhone }
        if hosts.isEmpty { fail("\(name) has no host who can moderate") }
        for visitor in inside {
            guard let view = visitor.view else { continue }
            if view.people != first.people { fail("two see different people in \(name): \(difference(view, first))") }
            if view.options != first.options { fail("two people of \(name) see different options") }
            if view.people[visitor.connection] == nil { fail("a person of \(name) does not see themselves") }
        }
        let inRoom = phones.count { $0.room == name && $0.isIn }
        let seen = first.people.keys.count(where: \.isPhone)
        if seen != inRoom { fail("people of \(name) see \(seen) of \(inRoom) phones") }
        if known[name] != first.options { fail("people of \(name) see other options than an application") }
        judgeSession(first, inside)
    }

    private func difference(_ one: View, _ other: View) -> [RoomPerson?] {
        Set(one.people.keys).union(other.people.keys).sorted().flatMap { connection in
            let seen = [one.people[connection], other.people[connection]]
            return seen[0] == seen[1] ? [] : seen
        }
    }

    func judge(_ verb: RoomVerb, by role: RoomRole) {
        switch verb {
        case .admit, .deny, .set, .mute, .stopShare, .remove: if role == .guest { fail("a guest moderated: \(verb)") }
        case .role: if role != .host { fail("a \(role) changed roles") }
        case .join, .leave, .say, .hand, .react, .file, .removeFile: break
        }
    }

    /// A room that ends is forgotten.
    private func forgetEndedRooms() {
        for name in Self.names where !stage.hub.hasRoom(name) {
            (creators[name], known[name]) = (nil, nil)
        }
    }
}
