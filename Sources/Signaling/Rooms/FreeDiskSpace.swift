/// The space of the disk that files in rooms may take, beyond what is kept free for everything else.
///
/// The shell measures it from time to time, and before each upload. Between two measurements, this subtracts what was promised, so
/// that uploads together never take more than there is. Without a measurement there is no such limit.
///
/// Invariant: each file is counted once, as promised, as arriving, or not at all. A file that has arrived, or whose upload has
/// ended, counts as settling until a measurement includes it. Measurements do not overlap: each began after the one before was
/// reported. So it includes what had settled by then.
struct FreeDiskSpace: Equatable, Sendable {
    /// Bytes, by the last measurement, with what has arrived of the uploads under way. Negative if less is free than should be.
    private var spare: Int?
    private var promised = 0
    private var arriving = 0
    /// Since the last measurement was reported, and between that one and the one before.
    private var settling = 0
    private var settledBefore = 0

    mutating func measured(spare: Int) {
        self.spare = spare
        (settledBefore, settling) = (settling, 0)
    }

    /// Whether a further file of this size can be promised.
    func hasRoom(for bytes: Int) -> Bool { left - promised >= bytes }

    private var left: Int {
        guard let spare else { return .max / 2 }
        return spare - arriving - settling - settledBefore
    }

    /// Whether an upload that was promised can begin. Other programs may have taken the space, so what is promised to others does
    /// not count: each of them is asked again.
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

    /// Forgets a file that was deleted in this state.
    mutating func remove(_ bytes: Int, _ state: RoomFiles.State) {
        switch state {
        case .promised: promised -= bytes
        // The disk may not have deleted it yet.
        case .receiving: finish(bytes)
        case .stored: break
        }
    }
}
