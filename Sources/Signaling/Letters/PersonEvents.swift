import Cluster
import Wire

/// Events for a person's state machine.
public enum PersonEvent: Equatable, Sendable {
    // From this person's devices.
    /// A device connected. The record contains the person's stored state, and is only used if the person is not in memory.
    ///
    /// - `home`: the session in which a legacy client publishes with every partner; nil for other clients.
    /// - `device`: the identity whose secret the device presented; nil if it is this person's own identity.
    /// - `at`: the name of the node of the cluster that the device asked for; nil if it asked for none.
    /// - `showsWarnings`: whether the device shows warnings to the person.
    indirect case arrived(
        ConnectionID, address: String, DeviceName, PersonRecord, home: SessionID? = nil, device: IdentityID? = nil,
        at: String? = nil, showsWarnings: Bool = false)
    case dropped(ConnectionID)
    case returned(ConnectionID)
    /// A device continues from another address.
    case moved(ConnectionID, address: String)
    case departed(ConnectionID)
    case verb(ConnectionID, re: UInt64, ClientMessage)
    /// A request from a legacy client.
    case asked(ConnectionID, RouletteTokRequest)
    // From the pool. A person is first reserved, and then either matched or released, so that no one can be in two
    // matches.
    /// `at` is the node of the other person; nil without a cluster.
    case reserve(MatchID, with: IdentityID, at: NodeTag? = nil)
    case release(MatchID)
    case queueFull
    /// In a cluster, the stranger should wait on another node, which the error names. If it names none, it is unknown now where
    /// strangers wait.
    indirect case hallIsElsewhere(WireError)
    /// The stranger should wait in the given node's pool, without moving there. It may be their own node.
    case hallIsAt(NodeTag)
    /// The node in whose pool the stranger waits no longer has the hall, or has lost the entry.
    case hallClosed
    // From the match.
    /// `at` is the partner's node; nil without a cluster.
    case matched(RouletteNotice.Matched, partner: IdentityID, address: String, at: NodeTag? = nil)
    case matchEnded(MatchID, EndReason)
    case partnerAway(MatchID, Bool)
    case partnerMoved(MatchID, address: String)
    /// The partner's video must be blurred (true), or may be shown again (false).
    case partnerBlurred(MatchID, Bool)
    // From the check of samples.
    /// A sample of this person's camera arrived.
    case sampled(MatchID)
    indirect case judged(MatchID, SampleJudgment)
    // From the operator.
    case banned(Ban)
    case unbanned
    /// A warning, with the operator's sentence if there is one.
    case warned(String?)
    /// Changes to this person could not be stored.
    case storageFailed
    /// Another node of the cluster has this person's place.
    indirect case placeLost(WireError)
    /// The result of looking up a public id: the person, or nil if there is none.
    case introduced(Introduction, FoundPerson?)
    /// Storage answered a lookup of this person with this record.
    case lookedUp(PersonRecord)
    case presence(PersonPresenceEvent)
    case call(PersonCallEvent)
    case contact(PersonContactEvent)
}

/// The name that a device presented: from its user token (`vouched`), or entered by the user (`chosen`). The user
/// cannot replace a name from a user token.
public enum DeviceName: Equatable, Sendable {
    case vouched(String)
    case chosen(String)
    case none
}

extension DeviceName {
    /// Returns the name to show: a vouched name, else the requested name, else the chosen name, else an empty string.
    func shown(or requested: String?) -> String {
        switch self {
        case .vouched(let name): name
        case .chosen(let name): requested ?? name
        case .none: requested ?? ""
        }
    }
}

/// Events about a person's devices and presence, sent by other state machines and by storage.
public enum PersonPresenceEvent: Equatable, Sendable {
    /// A device used this person's pairing code and is now linked to this person.
    case linked(LinkedDevice, ConnectionID, re: UInt64)
    /// This person's only device was linked to another person. This person passes on the blocks to that person, and
    /// disconnects all clients, which then reconnect as clients of that person.
    case becameDevice(of: IdentityID)
    /// A device was just linked to this person. Contains the blocks of the person to whom the device belonged before,
    /// and whether the device can receive push notifications. Sent by that person's state machine.
    case inherited(blocked: [IdentityID], hasPush: Bool)
    /// Reports whether any device of this person can receive push notifications (`isReachable`), after a lookup or a
    /// change.
    case pushChanged(isReachable: Bool)
    /// Another person, who knows this person's public id, requests this person's name and online status.
    ///
    /// - `name`: the name in this person's stored profile, for the answer if the person is on another node of the cluster.
    case sought(by: IdentityID, ConnectionID, re: UInt64, name: String)
    /// Another node of the cluster has the directory's place, so the person is no longer listed here.
    indirect case directoryLost(WireError)
}

/// Events about contacts, sent by the state machines of other people.
public enum PersonContactEvent: Equatable, Sendable {
    /// The other person in this meeting wants to keep in touch.
    case asked(MeetingReference, by: Counterpart)
    /// Both people agreed, and the contact is stored.
    case agreed(MeetingReference, with: Counterpart)
    /// The other person removed the contact.
    case removed(by: IdentityID)
    /// The online status or name of a contact changed.
    case presence(of: Counterpart)
    /// A contact connected, and requests this person's online status.
    case queried(by: IdentityID)
    /// The online status or name of a contact on another node of the cluster changed.
    case presenceElsewhere(of: Counterpart, at: NodeTag)
    /// Another node of the cluster has the place of this contact, who was on this node.
    case placeLost(of: IdentityID)
    /// This contact, whom this person has asked for the online status, was on no node.
    case absent(IdentityID)
    /// What is known about contacts on that node is void. If `isOver` is false, the node lives, but letters were lost.
    case nodeLost(NodeTag, isOver: Bool)
}

/// A request to find a person, or the answer from storage.
public indirect enum LookupEvent: Equatable, Sendable {
    /// A client's request names this person.
    case asked(Introduction)
    /// The answer from storage.
    case answered(Introduction, Finding)
    /// The person was deleted or became another person's device, so pending lookups must not find them.
    case void
}

/// Requests to create, use and cancel the codes that link devices.
public enum DeviceCodesEvent: Equatable, Sendable {
    /// Creates a code with which another device can be linked to this person.
    case make(IdentityID, ConnectionID, re: UInt64)
    /// A user entered a code on a device.
    case use(PresenceVerb.UseLink, device: IdentityID, ConnectionID, address: String, re: UInt64)
    /// Invalidates this person's code, if any.
    case withdraw(IdentityID)
}
