import Wire

/// The space that the files of all rooms use, counted per address and person. All rooms share one value of this type,
/// because they share a disk.
///
/// Invariant: each file counts exactly once, from its promise until it is removed. It is unfinished until all its bytes
/// are stored.
public struct RoomFileSpace: Equatable, Sendable {
    /// The space that a group of files uses: the files from one address, or all files.
    public struct Share: Equatable, Sendable {
        /// Total size of files, including unfinished ones, in bytes.
        public fileprivate(set) var bytes = 0
        /// Total size of uploads that are permitted or in progress, in bytes.
        public fileprivate(set) var unfinished = 0

        fileprivate mutating func add(_ space: Int, unfinished: Int) {
            bytes += space
            self.unfinished += unfinished
        }
    }

    /// The space reserved for one file.
    struct Claim: Equatable, Sendable {
        let space: Int
        let sender: IdentityID
        /// The address from which the sender joined the room.
        let address: String
    }

    public private(set) var all = Share()
    /// The share of each address that has files.
    public private(set) var addresses: [String: Share] = [:]
    /// The number of unfinished files of each person across all devices and rooms. Only people who have some are
    /// listed.
    private var uploads: [IdentityID: Int] = [:]

    public init() {}

    /// Throws if there is no space for this file, or if the sender has too many unfinished uploads.
    ///
    /// Unfinished files have separate limits, because space is reserved for them in full, although their senders have
    /// sent little or nothing. Without these limits, a few addresses could reserve all the space without sending
    /// anything.
    func permit(_ claim: Claim, _ rules: Rules) throws(WireError) {
        guard uploads[claim.sender] ?? 0 < rules.roomUploads else { throw .uploadsBusy(rules) }
        let share = addresses[claim.address] ?? Share()
        // Check the limits per address before the overall limits, so that people who have used up their own share get
        // the error that helps them.
        guard share.bytes + claim.space <= rules.fileBytesPerAddress else {
            throw WireError(
                .storageQuota,
                "Too many files from your network are stored. Remove some of yours, or send a link.",
                retryable: true)
        }
        guard all.bytes + claim.space <= rules.fileBytes else {
            throw WireError(
                .storageFull, "The server has no space left for this file. Try again later, or send a link.",
                retryable: true)
        }
        guard Self.fits(claim, share, rules.unfinishedFileBytesPerAddress) else { throw .networkBusy(rules) }
        guard Self.fits(claim, all, rules.unfinishedFileBytes) else { throw .serverBusy(rules) }
    }

    /// Returns whether the file fits into a limit on unfinished files. It always fits if no other file is unfinished,
    /// because an operator may allow files that are larger than this limit.
    private static func fits(_ claim: Claim, _ share: Share, _ limit: Int) -> Bool {
        share.unfinished == 0 || share.unfinished + claim.space <= limit
    }

    /// Counts a file whose upload was permitted. The claim must be released exactly once.
    mutating func reserve(_ claim: Claim) {
        change(claim, claim.space, unfinished: claim.space)
        uploads[claim.sender, default: 0] += 1
    }

    /// Records that all bytes of the file are stored.
    mutating func finish(_ claim: Claim) {
        change(claim, 0, unfinished: -claim.space)
        endUpload(of: claim.sender)
    }

    mutating func release(_ claim: Claim, isFinished: Bool) {
        change(claim, -claim.space, unfinished: isFinished ? 0 : -claim.space)
        if !isFinished { endUpload(of: claim.sender) }
    }

    private mutating func change(_ claim: Claim, _ space: Int, unfinished: Int) {
        all.add(space, unfinished: unfinished)
        addresses[claim.address, default: Share()].add(space, unfinished: unfinished)
        if addresses[claim.address]?.bytes == 0 { addresses[claim.address] = nil }
    }

    private mutating func endUpload(of sender: IdentityID) {
        let left = (uploads[sender] ?? 1) - 1
        uploads[sender] = left > 0 ? left : nil
    }
}

extension WireError {
    /// Returns an error that asks the client to try again after `roomUploadStart`. By then, uploads that are permitted
    /// now but do not start have expired.
    private static func busy(_ message: String, _ rules: Rules) -> WireError {
        WireError(.rateLimited, message, retryable: true, retryAfter: rules.roomUploadStart)
    }

    fileprivate static func networkBusy(_ rules: Rules) -> WireError {
        busy("Too many uploads from your network. Try again when some are complete.", rules)
    }

    fileprivate static func serverBusy(_ rules: Rules) -> WireError {
        busy("Too many uploads to this server. Try again when some are complete.", rules)
    }

    fileprivate static func uploadsBusy(_ rules: Rules) -> WireError {
        WireError(
            .rateLimited, "You are already sending \(rules.roomUploads) files. Wait until one is complete.",
            retryable: true, retryAfter: .seconds(1))
    }
}
