import Wire

/// What an input may cause to be stored. The shell decides it, from the free disk space and from how much the clients of an
/// address have stored.
public enum StoragePermit: Equatable, Sendable {
    case all
    /// Only what cannot wait. Requests that store something optional get this error.
    case essential(WireError)
    /// Nothing. Requests that store something get this error.
    case none(WireError)

    /// Returns the error with which to refuse a request, or nil to handle the request.
    func refusal(of use: StorageUse) -> WireError? {
        switch (self, use) {
        case (.all, _), (_, .none), (.essential, .essential): nil
        case (.essential(let error), .optional), (.none(let error), _): error
        }
    }
}

/// What a request adds to the storage.
enum StorageUse: Equatable, Sendable {
    /// Nothing, or only what other requests have already reserved, such as the end of a call.
    case none
    /// Something that a person can do without for some time. It is refused when the disk is nearly full.
    case optional
    /// Something that protects people, or that the server exists for. It is stored until nothing can be stored.
    case essential
}

extension ClientMessage {
    /// What this request adds to the storage.
    var storageUse: StorageUse {
        switch self {
        case .hello, .ack, .ping, .bye, .iceServers, .media, .nearby, .room: .none
        case .session(.forceDisconnect), .session(.forceMute): .essential
        case .session: .none
        case .roulette(.report), .roulette(.block): .essential
        case .roulette: .none
        case .presence(let verb): verb.storageUse
        case .call(.start): .essential
        case .call: .none
        case .contact(.keep): .optional
        case .contact: .none
        case .push(.register): .optional
        case .push(.unregister): .none
        }
    }
}

extension PresenceVerb {
    fileprivate var storageUse: StorageUse {
        switch self {
        case .block, .unlink, .delete: .essential
        case .useLink: .optional
        // `Person` checks these: they store nothing if the profile stays the same.
        case .appear, .set: .none
        case .leave, .find, .unblock, .blocked, .link, .devices: .none
        }
    }
}

extension ClientMessage {
    /// Whether handling this request can depend on the storage permit.
    public var mayStore: Bool {
        switch self {
        case .presence(.appear), .presence(.set): true
        // The room and the register of rooms check these: only files, and what concerns persistent rooms, are stored.
        case .room(.join(let join)): join.options?.persistent == true
        case .room(.set), .room(.remove), .room(.file): true
        default: storageUse != .none
        }
    }
}
