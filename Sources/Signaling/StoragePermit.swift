import Wire

/// What an input may store. The shell decides this based on the free disk space and on how much data the clients of an
/// address have stored.
public enum StoragePermit: Equatable, Sendable {
    case all
    /// Only essential data. Requests that store optional data are refused with this error.
    case essential(WireError)
    /// Nothing. Requests that store data are refused with this error.
    case none(WireError)

    /// Returns the error with which to refuse a request that stores this kind of data, or nil if the request may be
    /// handled.
    func refusal(of use: StorageUse) -> WireError? {
        switch (self, use) {
        case (.all, _), (_, .none), (.essential, .essential): nil
        case (.essential(let error), .optional), (.none(let error), _): error
        }
    }
}

/// The kind of data that a request adds to storage.
enum StorageUse: Equatable, Sendable {
    /// Nothing, or only data for which an earlier request already reserved space, such as the end of a call.
    case none
    /// Data that a person can do without for some time. Refused when the disk is nearly full.
    case optional
    /// Data that protects people, such as blocks, or that the server exists for, such as calls. Refused only when
    /// nothing can be stored.
    case essential
}

extension ClientMessage {
    /// The kind of data that this request adds to storage.
    var storageUse: StorageUse {
        switch self {
        case .hello, .ack, .ping, .bye, .iceServers, .media, .nearby, .room: .none
        case .session(.forceDisconnect), .session(.forceMute): .essential
        case .session(.startArchive): .optional
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
        // `Person` checks the permit for these requests, because they store nothing if the profile stays the same.
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
        // The room and the room registry check the permit for these requests. What is stored: the data of persistent
        // rooms, and the files shared in any room.
        case .room(.join(let join)): join.options?.persistent == true
        case .room(.set), .room(.remove), .room(.file): true
        default: storageUse != .none
        }
    }
}
