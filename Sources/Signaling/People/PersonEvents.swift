import Wire

public enum PersonEvent: Equatable, Sendable {
    // From this person's devices.
    /// A device connected. The record is used if the person is not in memory.
    ///
    /// - `home`: the session in which a legacy client publishes in every match.
    case arrived(
        ConnectionID, address: String, DeviceName, PersonRecord, home: SessionID? = nil, device: IdentityID? = nil)
    case dropped(ConnectionID)
    case returned(ConnectionID)
    case departed(ConnectionID)
    case verb(ConnectionID, re: UInt64, ClientMessage)
    /// A request of a legacy client.
    case asked(ConnectionID, RouletteTokRequest)
    // From the pool. A person is reserved first, then matched or released, so that nobody is in two matches.
    case reserve(MatchID, with: IdentityID)
    case release(MatchID)
    case queueFull
    // From the match.
    case matched(RouletteNotice.Matched, partner: IdentityID)
    case matchEnded(MatchID, EndReason)
    case partnerAway(MatchID, Bool)
    // From the operator.
    case banned(Ban)
    case unbanned
    /// Changes of this person could not be stored. If a request of this person caused them, it is answered.
    case storageFailed(client: ConnectionID?, re: UInt64?)
    /// The result of looking up a public id: the person's identity, or nil if there is none.
    case introduced(Introduction, IdentityID?)
    /// A lookup of this person found its record in storage.
    case lookedUp(PersonRecord)
    case presence(PersonPresenceEvent)
    case call(PersonCallEvent)
    case contact(PersonContactEvent)
}

/// The name a device presents. A name from a user token cannot be overridden.
public enum DeviceName: Equatable, Sendable {
    case vouched(String)
    case chosen(String)
    case none
}

extension DeviceName {
    /// Returns the name to show if the device requests the name `requested`.
    func shown(or requested: String?) -> String {
        switch self {
        case .vouched(let name): name
        case .chosen(let name): requested ?? name
        case .none: requested ?? ""
        }
    }
}

/// What others and storage tell a person about its devices and its place in the directory.
public enum PersonPresenceEvent: Equatable, Sendable {
    /// A device used this person's pairing code and is now linked to it.
    case linked(LinkedDevice, ConnectionID, re: UInt64)
    /// For the device's former person: it is now a device of another person.
    case becameDevice(of: IdentityID)
    /// From the former person of a linked device: the people it blocked, and whether it can receive push notifications.
    case inherited(blocked: [IdentityID], hasPush: Bool)
    /// Whether any device can receive push notifications has changed.
    case pushChanged(isReachable: Bool)
    /// A person with this person's public id requests its name and presence.
    case sought(by: IdentityID, ConnectionID, re: UInt64)
}

/// What other people tell a person about keeping in touch.
public enum PersonContactEvent: Equatable, Sendable {
    /// The other person of this meeting requests to keep in touch.
    case asked(MeetingReference, by: Counterpart)
    /// Both people agreed, and the contact is stored.
    case agreed(MeetingReference, with: Counterpart)
    /// The other person removed the contact.
    case removed(by: IdentityID)
    /// A contact's presence or name changed.
    case presence(of: Counterpart)
    /// A contact connected and requests this person's presence.
    case inquired(by: IdentityID)
}
