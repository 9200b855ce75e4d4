import Wire

/// The space that the files of all rooms use, counted separately for each address and for each person. All rooms share
/// one value of this type, because they share a disk.
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
    /// Unfinished files have separate limits, because space is reserved for their entire size, although their senders
    /// have sent little or nothing. Without these limits, a few addresses could reserve all the space without sending
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
    /// Returns an error that asks the client to try again after `roomUploadStart`. By then, every upload permission
    /// that exists now will have been used or will have expired.
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

/// A measurement of the disk on which files in rooms are stored.
public struct DiskMeasurement: Equatable, Sendable {
    /// The free bytes; nil if they could not be measured.
    let free: Int?
    /// The bytes to leave free for everything else.
    let reserve: Int
    /// The bytes of unfinished uploads that had arrived before the measurement. They are added to the free space, because
    /// space is promised for the whole of each upload.
    let arrived: Int

    public init(free: Int?, reserve: Int, arrived: Int) {
        (self.free, self.reserve, self.arrived) = (free, reserve, arrived)
    }
}

/// The disk space available for files in rooms, not including the reserve for everything else.
///
/// The shell measures it periodically and before each upload. Between measurements, promised bytes are subtracted, so
/// that concurrent uploads never take more than is available. Before the first measurement, disk space does not limit
/// uploads.
///
/// Invariant: each file is counted at most once, as promised or as arriving. A file that has arrived, or whose upload
/// has ended, counts as settling until a measurement includes it. Measurements do not overlap: each starts after the
/// previous one was reported, and so includes everything that had settled by then.
struct FreeDiskSpace: Equatable, Sendable {
    /// The bytes available for files in the latest measurement, including the bytes of unfinished uploads that had
    /// already arrived. Nil before the first measurement; negative if less than the reserve is free.
    private var spare: Int?
    private var promised = 0
    private var arriving = 0
    /// The bytes that settled since the latest measurement was reported (`settling`), and those that settled between
    /// the previous report and the latest one (`settledBefore`). The latest measurement may not include the latter
    /// either, because it may have started before they settled.
    private var settling = 0
    private var settledBefore = 0

    mutating func measured(_ disk: DiskMeasurement) {
        // If the space could not be measured, assume that the disk is full.
        spare = (disk.free ?? 0) - disk.reserve + disk.arrived
        (settledBefore, settling) = (settling, 0)
    }

    /// Returns whether another upload of this size can be permitted.
    func hasRoom(for bytes: Int) -> Bool { left - promised >= bytes }

    private var left: Int {
        guard let spare else { return .max / 2 }
        return spare - arriving - settling - settledBefore
    }

    /// Returns whether there is still space for a permitted upload that is about to begin. Other programs may have
    /// used the space since the upload was permitted. The promises to other uploads are not subtracted from it,
    /// because each of those uploads is checked in the same way when it begins.
    func canBegin(_ bytes: Int) -> Bool { left >= bytes }

    mutating func promise(_ bytes: Int) { promised += bytes }

    mutating func begin(_ bytes: Int) {
        promised -= bytes
        arriving += bytes
    }

    mutating func finish(_ bytes: Int) {
        arriving -= bytes
        settling += bytes
    }

    /// Stops counting a promised file that was never sent.
    mutating func withdraw(_ bytes: Int) { promised -= bytes }
}
