import Testing
import Wire

@testable import Signaling

@Suite("The greatest recent size of a session") struct RecentSizeTests {
    private static let period: Duration = .seconds(100)

    private func at(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_790_000_000_000) + .seconds(seconds) }

    private func greatest(_ notes: [(Int64, Int)]) -> Int {
        var size = RecentSize()
        for (second, count) in notes { size.note(count, for: Self.period, now: at(second)) }
        return size.greatest
    }

    @Test("is zero at first, and then the greatest number noted")
    func growing() {
        #expect(greatest([]) == 0)
        #expect(greatest([(0, 0), (1, 1), (2, 7), (3, 5)]) == 7)
    }

    @Test("is remembered for a whole period, also across the end of the current one")
    func remembered() {
        #expect(greatest([(0, 3), (99, 7), (101, 2), (190, 2)]) == 7)
        #expect(greatest([(0, 3), (99, 7), (101, 2), (202, 2), (203, 2)]) == 2)
    }

    @Test("is the number of members if nothing changed for long")
    func quiet() {
        // Seven members until one leaves after an hour.
        #expect(greatest([(0, 6), (3600, 7), (3601, 6)]) == 7)
        #expect(greatest([(0, 7), (1, 2), (3600, 2)]) == 2)
    }
}
