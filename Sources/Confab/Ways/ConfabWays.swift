/// The client's features besides sessions. They are created with the client, so that none misses an event of the
/// connection.
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
    /// People nearby.
    nonisolated public var nearby: Nearby { ways.nearby }
    /// Calls between two people.
    nonisolated public var calls: Calls { ways.calls }
    /// This person's contacts.
    nonisolated public var contacts: Contacts { ways.contacts }
    /// Rooms for several people.
    nonisolated public var rooms: Rooms { ways.rooms }
    /// Push notifications of calls.
    nonisolated public var push: Push { ways.push }
}
