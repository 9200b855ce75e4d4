import Testing

@testable import Server

@Suite("The space that recordings leave on a disk") struct RecordingSpaceTests {
    @Test("nothing starts with less than the minimum, and everything ends with less than half of it")
    func judgment() {
        let space = RecordingSpace(minimum: 1_000)
        let cases: [(free: Int64?, admits: Bool, isUsedUp: Bool)] = [
            (.max, true, false), (1_000, true, false), (999, false, false), (500, false, false), (499, false, true),
            (0, false, true), (nil, false, false),
        ]
        for (free, admits, isUsedUp) in cases {
            #expect(space.admits(free: free) == admits && space.isUsedUp(free: free) == isUsedUp, "\(free ?? -1)")
        }
        let off = RecordingSpace(minimum: 0)
        #expect(off.admits(free: 0) && off.admits(free: nil) && !off.isUsedUp(free: 0))
    }
}
