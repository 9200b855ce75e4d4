import Wire

/// The files of a room, and the uploads that are under way. The shell stores the bytes.
///
/// Invariant: each file was reserved with its full size before its first byte, and `bytes` is the sum of all reservations.
/// `Turn.fileSpace` has each reservation exactly once.
struct RoomFiles: Equatable, Sendable {
    /// Legal transitions: `promised` → `receiving` → `stored`. Each can be removed, and ends at `until`.
    enum State: Equatable, Sendable { case promised, receiving, stored }

    /// A small file takes a block of the disk, and an inode. Without such a unit, the limits of bytes would not limit their number.
    private static let block = 4096

    struct Entry: Equatable, Sendable {
        let id: RoomFileID
        let name: String
        let size: Int
        /// The person who sends it, and their place in the room.
        let sender: ConnectionID
        /// Whether the sender acts for the room's owners. Then a stand-in may not remove the file.
        let isOwners: Bool
        /// What is reserved for the file. No overflow: a size is at most `Limits.roomFile`.
        let claim: RoomFileSpace.Claim
        let secret: RoomFileKey
        fileprivate(set) var state = State.promised
        /// When the upload is given up, or the file deleted.
        fileprivate(set) var until: Timestamp
        /// When to look at the time again, in steps (`Room.longestTimer`).
        fileprivate(set) var checkAt: Timestamp

        fileprivate mutating func keep(until: Timestamp, now: Timestamp) {
            (self.until, checkAt) = (until, min(until, now + Room.longestTimer))
        }
    }

    private(set) var entries: [Entry] = []

    var bytes: Int { entries.reduce(0) { $0 + $1.claim.space } }
    var nextTimeout: Timestamp? { entries.lazy.map(\.checkAt).min() }
    subscript(id: RoomFileID) -> Entry? { entries.first { $0.id == id } }

    private static func space(for size: Int) -> Int { (size + block - 1) / block * block }

    private func index(_ id: RoomFileID) -> Int? { entries.firstIndex { $0.id == id } }

    mutating func reserve(
        _ verb: RoomVerb.File, for member: RoomRoster.Member, _ turn: inout Turn
    ) throws(WireError) -> Entry {
        let rules = turn.rules
        guard rules.takesRoomFiles else {
            throw WireError(.notPermitted, "This server does not accept files. Send a link instead.")
        }
        guard verb.size <= rules.roomFileSize else {
            throw WireError(
                .messageTooLarge, "A file must not exceed \(rules.roomFileSize) bytes. Send a smaller one, or a link.")
        }
        guard Self.isAllowed(verb.name) else { throw .invalidFileName }
        if let error = turn.permit.refusal(of: .optional) { throw error }
        let claim = RoomFileSpace.Claim(
            space: Self.space(for: verb.size), sender: member.identity, address: member.address)
        try permit(claim, turn)
        let until = turn.now + rules.roomUploadStart
        let entry = Entry(
            id: .random(using: &turn.random), name: verb.name, size: verb.size, sender: member.client,
            isOwners: member.rights.actsForOwners, claim: claim, secret: .random(using: &turn.random), until: until,
            checkAt: until)
        entries.append(entry)
        turn.fileSpace.reserve(claim)
        turn.freeDisk.promise(claim.space)
        return entry
    }

    private func permit(_ claim: RoomFileSpace.Claim, _ turn: Turn) throws(WireError) {
        let rules = turn.rules
        guard entries.count < rules.roomFiles, bytes + claim.space <= rules.roomFileBytes else {
            throw WireError(
                .storageFull, "This room has no space left for this file. Ask a host to remove other files.",
                retryable: true)
        }
        try turn.fileSpace.permit(claim, rules)
        guard turn.freeDisk.hasRoom(for: claim.space) else { throw .noSpace }
    }

    /// A name for any file system: without characters that end a path or a header, or that hide what kind of file it is.
    private static func isAllowed(_ name: String) -> Bool {
        guard (1...Limits.fileName).contains(name.utf8.count), !name.hasPrefix("."), !name.hasSuffix(".") else {
            return false
        }
        let scalars = name.unicodeScalars
        guard scalars.contains(where: \.isVisibleInNames), scalars.allSatisfy(\.isAllowedInNames) else { return false }
        return !scalars.contains { "/\\:*?\"<>|".unicodeScalars.contains($0) }
    }

    /// The upload begins. It can begin only once.
    mutating func begin(_ id: RoomFileID, _ secret: RoomFileKey, _ turn: inout Turn) throws(WireError) -> Entry {
        guard let index = index(id), entries[index].secret == secret, entries[index].state == .promised,
            entries[index].until > turn.now
        else { throw .noUpload }
        let space = entries[index].claim.space
        guard turn.freeDisk.canBegin(space) else { throw .noSpace }
        turn.freeDisk.begin(space)
        entries[index].state = .receiving
        let time = turn.rules.uploadTime(of: entries[index].size)
        entries[index].keep(until: turn.now + time, now: turn.now)
        return entries[index]
    }

    /// Returns the upload if it has begun and is still wanted.
    func check(_ id: RoomFileID, _ secret: RoomFileKey) throws(WireError) -> Entry {
        guard let entry = self[id], entry.secret == secret, entry.state == .receiving else { throw .noUpload }
        return entry
    }

    /// The shell has all bytes of the file.
    mutating func finish(_ id: RoomFileID, _ secret: RoomFileKey, _ turn: inout Turn) throws(WireError) -> Entry {
        guard let index = index(id), entries[index].secret == secret, entries[index].state == .receiving else {
            throw .noUpload
        }
        turn.freeDisk.finish(entries[index].claim.space)
        entries[index].state = .stored
        turn.fileSpace.finish(entries[index].claim)
        entries[index].keep(until: turn.now + turn.rules.roomFileLifetime, now: turn.now)
        return entries[index]
    }

    /// Returns the uploads and files whose time is over, and lets the others wait on.
    mutating func over(now: Timestamp) -> [Entry] {
        for index in entries.indices where entries[index].checkAt <= now {
            entries[index].keep(until: entries[index].until, now: now)
        }
        return entries.filter { $0.until <= now }
    }

    mutating func remove(_ id: RoomFileID, _ turn: inout Turn) {
        guard let index = index(id) else { return }
        let entry = entries.remove(at: index)
        turn.fileSpace.release(entry.claim, isFinished: entry.state == .stored)
        turn.freeDisk.remove(entry.claim.space, entry.state)
        // Also while it is promised: the upload may be on its way.
        turn.deleteFile(entry.id)
    }
}

/// What a request over HTTP wants with a file.
public enum RoomFileAction: Equatable, Sendable {
    /// Begins the upload with this secret.
    case begin(RoomFileKey)
    /// Asks whether the upload is still wanted. A deletion before the shell had created the file had no effect.
    case check(RoomFileKey)
    /// Ends the upload: all bytes are stored, or the upload failed.
    case end(RoomFileKey, isComplete: Bool)
    /// A member with this key downloads the file.
    case download(RoomFileKey)

    /// The error if there is no such upload or file. It does not tell whether there is such a room.
    var missing: WireError {
        switch self {
        case .begin, .check, .end: .noUpload
        case .download: .noFile
        }
    }
}

/// A file, as the shell needs it.
public struct RoomFileFacts: Equatable, Sendable {
    public var name: String
    public var size: Int

    public init(name: String, size: Int) { (self.name, self.size) = (name, size) }
}

extension Room {
    /// The path of the room's files.
    private var filesPath: String { "/v1/rooms/\(name.pathComponent)/files" }

    func fileAccess(of member: RoomRoster.Member, _ rules: Rules) -> RoomFileAccess? {
        guard rules.takesRoomFiles, !member.isPerch else { return nil }
        return RoomFileAccess(path: filesPath, key: member.fileKey, maxSize: rules.roomFileSize)
    }

    mutating func promiseFile(
        _ verb: RoomVerb.File, by member: RoomRoster.Member, re: UInt64, _ turn: inout Turn
    ) throws(WireError) {
        guard options.chat else { throw .chatIsOff }
        if let wait = talk.take(member.identity, turn.rules.roomTalk, now: turn.now) { throw .tooFast(wait) }
        let entry = try files.reserve(verb, for: member, &turn)
        turn.send(
            .room(.upload(.init(re: re, id: entry.id, path: "\(filesPath)/\(entry.id)", secret: entry.secret))),
            to: member.client)
    }

    mutating func removeFile(_ id: RoomFileID, by member: RoomRoster.Member, _ turn: inout Turn) throws(WireError) {
        guard let entry = files[id] else { throw .noFile }
        try member.rights.permit(.removeFile(isOwn: entry.sender == member.client, isOwners: entry.isOwners))
        if member.role.moderates { try chargeModeration(turn) } else { try charge(turn) }
        removeFile(entry, &turn)
    }

    private mutating func removeFile(_ entry: RoomFiles.Entry, _ turn: inout Turn) {
        files.remove(entry.id, &turn)
        guard entry.state == .stored else { return }
        chat.remove(entry.id)
        broadcast(.fileRemoved(.init(id: entry.id)), &turn)
    }

    /// Ends uploads that take too long, and deletes old files.
    mutating func expireFiles(_ turn: inout Turn) {
        for entry in files.over(now: turn.now) { removeFile(entry, &turn) }
    }

    /// Gives up what someone who is no longer in the room was sending. What they sent stays, as their messages do.
    mutating func abandonUploads(of client: ConnectionID, _ turn: inout Turn) {
        for entry in files.entries where entry.sender == client && entry.state != .stored {
            files.remove(entry.id, &turn)
        }
    }

    mutating func deleteFiles(_ turn: inout Turn) {
        for entry in files.entries { files.remove(entry.id, &turn) }
    }

    /// Answers a request over HTTP. Without a valid key, the answer does not tell whether the file exists.
    mutating func perform(
        _ action: RoomFileAction, _ id: RoomFileID, _ turn: inout Turn
    ) throws(WireError) -> RoomReply {
        let entry: RoomFiles.Entry
        switch action {
        case .begin(let secret): entry = try files.begin(id, secret, &turn)
        case .check(let secret): entry = try files.check(id, secret)
        case .end(let secret, isComplete: true): entry = try finish(id, secret, &turn)
        case .end(let secret, isComplete: false):
            if files[id]?.secret == secret, files[id]?.state == .receiving { files.remove(id, &turn) }
            return .closed
        case .download(let key):
            guard roster.members.contains(where: { $0.fileKey == key && !$0.isPerch }), let found = files[id],
                found.state == .stored
            else { throw .noFile }
            entry = found
        }
        return .file(RoomFileFacts(name: entry.name, size: entry.size))
    }

    private mutating func finish(
        _ id: RoomFileID, _ secret: RoomFileKey, _ turn: inout Turn
    ) throws(WireError) -> RoomFiles.Entry {
        guard let promised = files[id], promised.secret == secret, let member = roster[promised.sender] else {
            throw .noUpload
        }
        guard options.chat else {
            files.remove(id, &turn)
            throw .chatIsOff
        }
        let entry = try files.finish(id, secret, &turn)
        let line = RoomLine(
            connection: member.client, displayName: member.person.displayName, text: entry.name, at: turn.wallNow,
            file: RoomFile(id: id, size: entry.size))
        // What is sent counts, in which JSON writes a control character in six bytes.
        do throws(WireError) { try charge(textSize: line.encodedSize, turn) } catch {
            files.remove(id, &turn)
            throw error
        }
        tell(line, &turn)
        return entry
    }

    /// Adds a line to the chat. Deletes the files of the lines that leave it: who comes in later could neither see nor remove
    /// them, and the room would have no space for others.
    mutating func tell(_ line: RoomLine, _ turn: inout Turn) {
        let dropped = chat.append(line, turn.rules)
        broadcast(.said(line), &turn)
        for file in dropped.compactMap({ files[$0] }) { removeFile(file, &turn) }
    }
}

extension WireError {
    static let chatIsOff = WireError(.notPermitted, "A host turned off chat in this room. Ask a host to turn it on.")
    fileprivate static let invalidFileName = WireError(
        .invalidName,
        "A file name must have 1 to \(Limits.fileName) bytes, without control characters, / \\ : * ? \" < > | "
            + "and without a dot at the start or end. Rename the file.")
    package static let noUpload = WireError(
        .notFound, "This upload has ended or expired. Send the file again from the room.")
    package static let noFile = WireError(
        .notFound, "The file does not exist, or you have left its room. Join the room again.")

    fileprivate static let noSpace = WireError(
        .storageFull, "The server has no space left for this file. Try again later, or send a link.", retryable: true)
}
