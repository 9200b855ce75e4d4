import Signaling
import TestSupport
import Wire

/// Clients of PerchRTC's protocol, and what they must know and may do.
extension RoomWorld {
    /// Such a client, with the room that it wants to be in.
    final class Phone {
        let guest: PerchGuest
        let room: RoomName
        /// Whether it heard who is there.
        var isIn = false
        /// The other users that it knows.
        var users: Set<String> = []

        init(_ guest: PerchGuest, in room: RoomName) { (self.guest, self.room) = (guest, room) }
    }

    func dial() {
        guard phones.count < 6, let name = Self.names.randomElement(using: &random) else { return }
        let user = ["iPhone", "Pad"].randomElement(using: &random) ?? "iPhone"
        let isNew = !stage.hub.hasRoom(name)
        let guest = stage.arrivePerch(
            user, room: "\(name)", chance(50) ? .flat : .layered, address: "\(phones.count % 3)")
        phones.append(Phone(guest, in: name))
        if isNew { (creators[name], known[name]) = (nil, nil) }
    }

    func hangUp() {
        guard let index = phones.indices.randomElement(using: &random) else { return }
        phones.remove(at: index).guest.leave()
        count("hung up")
    }

    /// Phones hear who is in the room. Those that were refused or removed are gone.
    func hearPhones() {
        for phone in phones {
            for heard in phone.guest.take() { hear(phone, heard) }
        }
        phones.removeAll { $0.guest.closeCode != nil }
    }

    private func hear(_ phone: Phone, _ heard: PerchGuest.Heard) {
        switch heard {
        case .refused(let code): count("phone: \(code)")
        case .peers(let users):
            count("phone: joined")
            phone.isIn = true
            phone.users = Set(users)
            judgeArrival(of: phone)
        case .connected(let user): phone.users.insert(user)
        case .removed(let user):
            if phone.users.remove(user) == nil { fail("a phone hears that a user left whom it does not know") }
        case .message: break
        }
    }

    /// The options of a room in which only phones are, and have been.
    private var optionsOfPhones: RoomOptions {
        var options = RoomOptions()
        (options.media, options.capacity) = (.mesh, stage.rules.meshRoomCapacity)
        return options
    }

    private func judgeArrival(of phone: Phone) {
        let options = known[phone.room] ?? optionsOfPhones
        if options.media != .mesh { fail("a phone came into a routed room") }
        if options.locked || options.lobby || options.password { fail("a phone came in past \(options)") }
        let inside = phones.count { $0.room == phone.room && $0.isIn && $0.guest.closeCode == nil }
        if inside > options.capacity { fail("\(inside) phones are in a room for \(options.capacity)") }
    }

    /// Each phone knows every other one by another name. All native people have a name that no phone has.
    func judgePhones(_ name: RoomName) {
        let inside = phones.filter { $0.room == name && $0.isIn }
        for phone in inside {
            let others = phone.users.count { !$0.hasPrefix(Self.displayName) }
            guard others != inside.count - 1 else { continue }
            fail("a phone knows \(others) of \(inside.count - 1) others: \(phone.users)")
        }
    }
}
