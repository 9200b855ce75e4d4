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

    mutating func measured(spare: Int) {
        self.spare = spare
        (settledBefore, settling) = (settling, 0)
    }

    /// Returns whether another upload of this size can be permitted.
    func hasRoom(for bytes: Int) -> Bool { left - promised >= bytes }

    private var left: Int {
        guard let spare else { return .max / 2 }
        return spare - arriving - settling - settledBefore
    }

    /// Returns whether there is still space for a permitted upload that is about to begin. Other programs may have
    /// used the space since the upload was permitted. The promises to other uploads are not subtracted here, because
    /// each of those uploads is checked in the same way when it begins.
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
