import Wire

extension ConfabError.Code {
    /// The match or call that the token belongs to is over.
    public static let tokenMatchEnded = Self(.tokenMatchEnded)
    /// The person is searching, chatting or in a call on another device or in another tab.
    public static let elsewhere = Self(.elsewhere)
    /// The call's state does not allow the request.
    public static let callState = Self(.callState)
    /// The person is not online: call ``Presence/appear(_:)`` first.
    public static let notPresent = Self(.notPresent)
    /// The client is not matched with a partner.
    public static let notMatched = Self(.notMatched)
    /// The name is too long, or contains characters that cannot be shown.
    public static let invalidName = Self(.invalidName)
    /// The room has reached its capacity.
    public static let roomFull = Self(.roomFull)
    /// A host locked the room.
    public static let roomLocked = Self(.roomLocked)
    /// The room does not exist, and only operators create rooms.
    public static let roomNotFound = Self(.roomNotFound)
    /// The room has a password, and the request had none or a wrong one.
    public static let roomPassword = Self(.roomPassword)
    /// A password was given, and no room of this name has one. Ask the person, then join without a password.
    public static let roomNoPassword = Self(.roomNoPassword)
    /// The room has ended, and another room has its name now. Ask the person before you join the other room.
    public static let roomOther = Self(.roomOther)
    /// A host refused to admit this person.
    public static let roomRefused = Self(.roomRefused)
    /// A host banned this person from the room.
    public static let roomBanned = Self(.roomBanned)
    /// Members of the room see each other's IP addresses. Ask the person first, then join with `routedOnly: false`.
    public static let roomMesh = Self(.roomMesh)
}
