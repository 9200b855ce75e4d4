/// The parts of a client beyond sessions. The client makes them once, so that none misses what happens on the connection.
final class ConfabWays: Sendable {
    let presence: Presence
    let nearby: Nearby
    let contacts: Contacts
    let push: Push
    let calls: Calls
    let roulette: Roulette
    let rooms: Rooms

    init(_ core: ClientCore) {
        let desk = WayDesk(core)
        nearby = Nearby(desk)
        presence = Presence(desk, nearby)
        contacts = Contacts(desk)
        push = Push(desk)
        calls = Calls(desk)
        roulette = Roulette(desk, contacts)
        rooms = Rooms(desk)
    }
}

extension ConfabClient {
    /// Chats with strangers.
    nonisolated public var roulette: Roulette { ways.roulette }
    /// This person, as others see them.
    nonisolated public var presence: Presence { ways.presence }
    /// People who are near.
    nonisolated public var nearby: Nearby { ways.nearby }
    /// Calls from person to person.
    nonisolated public var calls: Calls { ways.calls }
    /// People who want to keep in touch.
    nonisolated public var contacts: Contacts { ways.contacts }
    /// Rooms for several people.
    nonisolated public var rooms: Rooms { ways.rooms }
    /// Push notifications of calls.
    nonisolated public var push: Push { ways.push }
}
