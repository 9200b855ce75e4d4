import Wire

extension ConfabError.Code {
    /// The match or call that the token belongs to is over.
    public static let tokenMatchEnded = Self(.tokenMatchEnded)
    /// The person is searching, chatting or in a call on another device or in another tab.
    public static let elsewhere = Self(.elsewhere)
    /// The servers of the cluster cannot serve the request now, but probably soon.
    public static let clusterUnavailable = Self(.clusterUnavailable)
    /// The call's state does not allow the request.
    public static let callState = Self(.callState)
    /// This person is not online on this device. Call ``Presence/appear(_:)`` first.
    public static let notPresent = Self(.notPresent)
    /// There is no roulette search or chat to which the request could apply, or the partner has not joined the chat
    /// yet.
    public static let notMatched = Self(.notMatched)
    /// The name is too long, or contains characters that cannot be shown.
    public static let invalidName = Self(.invalidName)
    /// The room has reached its capacity, or too many people from this address are in it.
    public static let roomFull = Self(.roomFull)
    /// A host locked the room.
    public static let roomLocked = Self(.roomLocked)
    /// The room does not exist, and this request cannot create it, for example because only the server's operators may.
    public static let roomNotFound = Self(.roomNotFound)
    /// The room has a password, and the request had none or a wrong one.
    public static let roomPassword = Self(.roomPassword)
    /// A password was given, but the room has none or does not exist. Ask the person before you join without a
    /// password.
    public static let roomNoPassword = Self(.roomNoPassword)
    /// The room has ended, and another room has its name now. Ask the person before you join the other room.
    public static let roomOther = Self(.roomOther)
    /// A host did not admit this person, or recently turned them away.
    public static let roomRefused = Self(.roomRefused)
    /// A host banned this person from the room.
    public static let roomBanned = Self(.roomBanned)
    /// Members of the room see each other's IP addresses. Ask the person first, then join with `routedOnly: false`.
    public static let roomMesh = Self(.roomMesh)
}
