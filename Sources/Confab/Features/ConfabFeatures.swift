/// The client's features besides sessions. They are created with the client, so that none misses an event of the
/// connection.
final class ConfabFeatures: Sendable {
    let presence: Presence
    let nearby: Nearby
    let contacts: Contacts
    let push: Push
    let calls: Calls
    let roulette: Roulette
    let rooms: Rooms

    init(_ core: ClientCore) {
        let desk = FeatureDesk(core)
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
    nonisolated public var roulette: Roulette { features.roulette }
    /// This person's name and settings, and whether others can see and call this person.
    nonisolated public var presence: Presence { features.presence }
    /// The people near this person.
    nonisolated public var nearby: Nearby { features.nearby }
    /// Calls between two people.
    nonisolated public var calls: Calls { features.calls }
    /// This person's contacts.
    nonisolated public var contacts: Contacts { features.contacts }
    /// Rooms for several people.
    nonisolated public var rooms: Rooms { features.rooms }
    /// Push notifications of calls.
    nonisolated public var push: Push { features.push }
}
