import Wire

/// The files of a room, and the uploads in progress. The shell stores the bytes.
///
/// Invariant: each file was reserved with its full size before its first byte arrived, and `bytes` is the sum of all
/// reservations. `Context.fileSpace` contains each reservation exactly once.
struct RoomFiles: Equatable, Sendable {
    /// Legal transitions: `promised` → `receiving` → `stored`. A file in any state can be removed, and expires at
    /// `until`.
    enum State: Equatable, Sendable { case promised, receiving, stored }

    /// The unit in bytes to which file sizes are rounded up when space is reserved. Even a small file uses a disk
    /// block and an inode, so this makes the limits on bytes limit the number of files too.
    private static let block = 4096

    /// A file, or the upload of one.
    struct Entry: Equatable, Sendable {
        let id: RoomFileID
        let name: String
        let size: Int
        /// The sender's connection, which is their place in the room.
        let sender: ConnectionID
        /// Whether the sender acts for the room's owners. If so, a stand-in may not remove the file.
        let isOwners: Bool
        /// The reservation for the file. Rounding up the size for it cannot overflow, because a size is at most
        /// `Limits.roomFile`.
        let claim: RoomFileSpace.Claim
        let secret: RoomFileKey
        fileprivate(set) var state = State.promised
        /// When the upload is ended if it is still incomplete, or the file is deleted if it is complete.
        fileprivate(set) var until: Timestamp
        /// When to next check whether `until` has passed: at `until`, or after `Room.longestTimer` if that is earlier.
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
        _ verb: RoomVerb.File, for member: RoomRoster.Member, _ context: inout Context
    ) throws(WireError) -> Entry {
        let rules = context.rules
        guard rules.takesRoomFiles else {
            throw WireError(.notPermitted, "This server does not accept files. Send a link instead.")
        }
        guard verb.size <= rules.roomFileSize else {
            throw WireError(
                .messageTooLarge,
                "A file must not exceed \(rules.roomFileSize.sizeText). Send a smaller one, or a link.")
        }
        guard Self.isAllowed(verb.name) else { throw .invalidFileName }
        if let error = context.permit.refusal(of: .optional) { throw error }
        let claim = RoomFileSpace.Claim(
            space: Self.space(for: verb.size), sender: member.identity, address: member.address)
        try permit(claim, context)
        let until = context.now + rules.roomUploadStart
        let entry = Entry(
            id: .random(using: &context.random), name: verb.name, size: verb.size, sender: member.client,
            isOwners: member.rights.actsForOwners, claim: claim, secret: .random(using: &context.random), until: until,
            checkAt: until)
        entries.append(entry)
        context.fileSpace.reserve(claim)
        context.freeDisk.promise(claim.space)
        return entry
    }

    private func permit(_ claim: RoomFileSpace.Claim, _ context: Context) throws(WireError) {
        let rules = context.rules
        guard entries.count < rules.roomFiles, bytes + claim.space <= rules.roomFileBytes else {
            throw WireError(
                .storageFull, "This room has no space left for this file. Ask a host to remove other files.",
                retryable: true)
        }
        try context.fileSpace.permit(claim, rules)
        guard context.freeDisk.hasRoom(for: claim.space) else { throw .noSpace }
    }

    /// Returns whether the name is safe on every file system: it has no characters that end a path or a header, or that
    /// disguise the type of the file.
    private static func isAllowed(_ name: String) -> Bool {
        guard (1...Limits.fileName).contains(name.utf8.count), !name.hasPrefix("."), !name.hasSuffix(".") else {
            return false
        }
        let scalars = name.unicodeScalars
        guard scalars.contains(where: \.isVisibleInNames), scalars.allSatisfy(\.isAllowedInNames) else { return false }
        return !scalars.contains { "/\\:*?\"<>|".unicodeScalars.contains($0) }
    }

    /// Begins the upload. Throws if it has already begun or has expired, or if the disk has no space left.
    mutating func begin(_ id: RoomFileID, _ secret: RoomFileKey, _ context: inout Context) throws(WireError) -> Entry {
        guard let index = index(id), entries[index].secret == secret, entries[index].state == .promised,
            entries[index].until > context.now
        else { throw .noUpload }
        let space = entries[index].claim.space
        guard context.freeDisk.canBegin(space) else { throw .noSpace }
        context.freeDisk.begin(space)
        entries[index].state = .receiving
        let time = context.rules.uploadTime(of: entries[index].size)
        entries[index].keep(until: context.now + time, now: context.now)
        return entries[index]
    }

    /// Returns the upload with this secret. Throws if there is none, because it has not begun or was removed.
    func check(_ id: RoomFileID, _ secret: RoomFileKey) throws(WireError) -> Entry {
        guard let entry = self[id], entry.secret == secret, entry.state == .receiving else { throw .noUpload }
        return entry
    }

    /// Records that the shell has received all bytes of the file. Throws if the upload has not begun or was removed,
    /// or if the secret is wrong.
    mutating func finish(_ id: RoomFileID, _ secret: RoomFileKey, _ context: inout Context) throws(WireError) -> Entry {
        guard let index = index(id), entries[index].secret == secret, entries[index].state == .receiving else {
            throw .noUpload
        }
        context.freeDisk.finish(entries[index].claim.space)
        entries[index].state = .stored
        context.fileSpace.finish(entries[index].claim)
        entries[index].keep(until: context.now + context.rules.roomFileLifetime, now: context.now)
        return entries[index]
    }

    /// Returns the uploads and files that have expired, and schedules the next check of the others.
    mutating func over(now: Timestamp) -> [Entry] {
        for index in entries.indices where entries[index].checkAt <= now {
            entries[index].keep(until: entries[index].until, now: now)
        }
        return entries.filter { $0.until <= now }
    }

    mutating func remove(_ id: RoomFileID, _ context: inout Context) {
        guard let index = index(id) else { return }
        let entry = entries.remove(at: index)
        context.fileSpace.release(entry.claim, isFinished: entry.state == .stored)
        switch entry.state {
        case .promised: context.freeDisk.withdraw(entry.claim.space)
        // Count the bytes as settled, because the disk may not have freed them yet.
        case .receiving: context.freeDisk.finish(entry.claim.space)
        case .stored: break
        }
        // Delete the file even if its upload has not begun: the upload may be about to create the file.
        context.deleteFile(entry.id)
    }
}

extension RoomFileAction {
    /// The error for an upload or file that does not exist. It is the same if the room does not exist, so it does not
    /// reveal whether there is a room.
    var missing: WireError {
        switch self {
        case .begin, .check, .end: .noUpload
        case .download: .noFile
        }
    }
}

extension Room {
    /// The start of the URL paths of the room's files; each file's ID follows.
    private var filesPath: String { "/v1/rooms/\(name.pathComponent)/files" }

    func fileAccess(of member: RoomRoster.Member, _ rules: Rules) -> RoomFileAccess? {
        guard rules.takesRoomFiles, member.abilities.contains(.files) else { return nil }
        return RoomFileAccess(path: filesPath, key: member.fileKey, maxSize: rules.roomFileSize)
    }

    mutating func promiseFile(
        _ verb: RoomVerb.File, by member: RoomRoster.Member, re: UInt64, _ context: inout Context
    ) throws(WireError) {
        guard options.chat else { throw .chatIsOff }
        if let wait = talk.take(member.identity, context.rules.roomTalk, now: context.now) { throw .tooFast(wait) }
        let entry = try files.reserve(verb, for: member, &context)
        context.send(
            .room(.upload(.init(re: re, id: entry.id, path: "\(filesPath)/\(entry.id)", secret: entry.secret))),
            to: member.client)
    }

    mutating func removeFile(_ id: RoomFileID, by member: RoomRoster.Member, _ context: inout Context) throws(WireError)
    {
        guard let entry = files[id] else { throw .noFile }
        try member.rights.permit(.removeFile(isOwn: entry.sender == member.client, isOwners: entry.isOwners))
        if member.role.moderates { try chargeModeration(context) } else { try charge(context) }
        removeFile(entry, &context)
    }

    private mutating func removeFile(_ entry: RoomFiles.Entry, _ context: inout Context) {
        files.remove(entry.id, &context)
        guard entry.state == .stored else { return }
        chat.remove(entry.id)
        broadcast(.fileRemoved(.init(id: entry.id)), &context)
    }

    /// Ends uploads that take too long, and deletes expired files.
    mutating func expireFiles(_ context: inout Context) {
        for entry in files.over(now: context.now) { removeFile(entry, &context) }
    }

    /// Ends the unfinished uploads of a person who is no longer in the room. Their complete files stay, like their
    /// messages.
    mutating func abandonUploads(of client: ConnectionID, _ context: inout Context) {
        for entry in files.entries where entry.sender == client && entry.state != .stored {
            files.remove(entry.id, &context)
        }
    }

    mutating func deleteFiles(_ context: inout Context) {
        for entry in files.entries { files.remove(entry.id, &context) }
    }

    /// Answers an HTTP request for a file or upload. Without a valid key, the answer does not reveal whether the file
    /// exists.
    mutating func perform(
        _ action: RoomFileAction, _ id: RoomFileID, _ context: inout Context
    ) throws(WireError) -> OperatorReply {
        let entry: RoomFiles.Entry
        switch action {
        case .begin(let secret): entry = try files.begin(id, secret, &context)
        case .check(let secret): entry = try files.check(id, secret)
        case .end(let secret, isComplete: true): entry = try finish(id, secret, &context)
        case .end(let secret, isComplete: false):
            if files[id]?.secret == secret, files[id]?.state == .receiving { files.remove(id, &context) }
            return .closed
        case .download(let key):
            guard roster.members.contains(where: { $0.fileKey == key }), let found = files[id], found.state == .stored
            else { throw .noFile }
            entry = found
        }
        return .file(RoomFileInfo(name: entry.name, size: entry.size))
    }

    private mutating func finish(
        _ id: RoomFileID, _ secret: RoomFileKey, _ context: inout Context
    ) throws(WireError) -> RoomFiles.Entry {
        guard let promised = files[id], promised.secret == secret, let member = roster[promised.sender] else {
            throw .noUpload
        }
        guard options.chat else {
            files.remove(id, &context)
            throw .chatIsOff
        }
        let entry = try files.finish(id, secret, &context)
        let line = RoomLine(
            connection: member.client, displayName: member.person.displayName, text: entry.name, at: context.wallNow,
            file: RoomFile(id: id, size: entry.size))
        // Charge the encoded size, which can be larger than the text: JSON encodes a control character in six bytes.
        do throws(WireError) { try charge(textSize: line.encodedSize, context) } catch {
            files.remove(id, &context)
            throw error
        }
        tell(line, &context)
        return entry
    }

    /// Adds a line to the chat. Deletes the files of lines that no longer fit: people who join later could neither see
    /// nor remove them, and they would use up the room's space.
    mutating func tell(_ line: RoomLine, _ context: inout Context) {
        let dropped = chat.append(line, context.rules)
        broadcast(.said(line), &context)
        for file in dropped.compactMap({ files[$0] }) { removeFile(file, &context) }
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
