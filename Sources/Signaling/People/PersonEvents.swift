import Wire

public enum PersonEvent: Equatable, Sendable {
    // From this person's devices.
    /// With what storage knows, for a person not in memory.
    ///
    /// - `home`: the session that a client of RouletteTok's wire publishes in, with every partner.
    case arrived(
        ConnectionID, address: String, DeviceName, PersonRecord, home: SessionID? = nil, device: IdentityID? = nil)
    case dropped(ConnectionID)
    case returned(ConnectionID)
    case departed(ConnectionID)
    case verb(ConnectionID, re: UInt64, ClientMessage)
    /// The same from a client of RouletteTok's wire.
    case asked(ConnectionID, RouletteTokRequest)
    // From the pool: who must not be in two places is reserved first, then matched or released.
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
    /// To the request that named somebody by a public id: who that is, or that nobody is.
    case introduced(Introduction, IdentityID?)
    /// Somebody asked for this person, and storage knows it.
    case lookedUp(PersonRecord)
    case presence(PersonPresenceEvent)
    case call(PersonCallEvent)
    case contact(PersonContactEvent)
}

/// What somebody goes by. A name that a program's token vouches for cannot be talked away.
public enum DeviceName: Equatable, Sendable {
    case vouched(String)
    case chosen(String)
    case none
}

extension DeviceName {
    /// The name to show when somebody asks to be called `wish` now.
    func spoken(or wish: String?) -> String {
        switch self {
        case .vouched(let name): name
        case .chosen(let name): wish ?? name
        case .none: wish ?? ""
        }
    }
}

/// What reaches a person about being there.
public enum PersonPresenceEvent: Equatable, Sendable {
    /// A device that said a right code is this person's from now on.
    case linked(LinkedDevice, ConnectionID, re: UInt64)
    /// To the device's own person: it is another's now.
    case becameDevice(of: IdentityID)
    /// From a device that was linked: these are not to see its person either, and whether it can be woken.
    case inherited(blocked: [IdentityID], hasPush: Bool)
    /// Whether a device can be woken has changed.
    case pushChanged(isReachable: Bool)
    /// Somebody who has the public id asks who this is.
    case sought(by: IdentityID, ConnectionID, re: UInt64)
}

/// What reaches a person about its contacts.
public enum PersonContactEvent: Equatable, Sendable {
    /// The other of this meeting would like to stay in touch.
    case asked(MeetingReference, by: Counterpart)
    /// Both said so, and it is stored.
    case agreed(MeetingReference, with: Counterpart)
    /// The other does not stay in touch any more.
    case removed(by: IdentityID)
    /// A contact appeared, went, or goes by another name.
    case presence(of: Counterpart)
    /// A contact has come and asks whether this person is here.
    case inquired(by: IdentityID)
}
