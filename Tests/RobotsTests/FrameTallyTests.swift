import Testing

@testable import Robots

@Suite("A tally of frames") struct FrameTallyTests {
    /// Returns a tally of these packets, in frames of three: the numbers 2, 5, 8 and so on end a frame.
    private func tally(_ numbers: some Sequence<Int64>) -> FrameTally {
        var tally = FrameTally()
        for number in numbers { tally.add(number, endsFrame: number % 3 == 2) }
        return tally
    }

    private func expect(_ tally: FrameTally, complete: Int, incomplete: Int = 0, missing: Int = 0) {
        #expect(tally.complete == complete && tally.incomplete == incomplete && tally.missing == missing)
    }

    @Test("counts complete frames after the one in which it begins") func order() {
        expect(tally(0..<12), complete: 3)
        expect(tally(1..<12), complete: 3)
    }

    @Test("counts a packet that arrives late or twice once") func late() {
        expect(tally([0, 1, 2, 4, 5, 3, 3, 5]), complete: 1)
        expect(tally([0, 1, 2, 3, 4, 6, 7, 8, 5]), complete: 2)
        #expect(tally([0, 1, 2, 4, 5, 3, 3, 5]).late == 1)
        #expect(tally([0, 1, 2, 3, 4, 7, 8, 6, 5, 9]).late == 2)
        #expect(tally(0..<12).late == 0)
    }

    @Test("waits for a missing packet until many later ones have arrived") func missing() {
        let last = 3 + Int64(FrameTally.maxWaiting)
        expect(tally([0, 1, 2] + Array(4...last)), complete: 0)
        let late = tally([0, 1, 2] + Array(4...last + 1))
        expect(late, complete: Int(last + 1 - 5) / 3, incomplete: 1, missing: 1)
        expect(tally([0, 1, 2] + Array(4...last + 1) + [3]), complete: late.complete, incomplete: 1, missing: 1)
    }

    @Test("counts a frame without its last packet, and the next frame, as one incomplete frame") func end() {
        let later = Array(6...(6 + 3 * Int64(FrameTally.maxWaiting)))
        let tally = tally([0, 1, 2, 3, 4] + later)
        #expect(tally.incomplete == 1 && tally.missing == 1)
    }

    @Test("begins again when the numbers do") func restart() {
        let next = FrameTally.maxAhead + 9000
        expect(tally(Array(0..<6) + Array(next..<next + 6)), complete: 1 + 1)
    }

    @Test("continues with the frame in which its counts begin again") func counts() {
        var tally = tally(0..<7)
        tally.beginCounting()
        expect(tally, complete: 0)
        for number in Int64(7)..<9 { tally.add(number, endsFrame: number == 8) }
        expect(tally, complete: 1)
    }
}
