import RTC
import TestSupport
import Testing

@testable import Peers
@testable import Robots

@Suite("The queue of timeouts")
struct DueQueueTests {
    @Test("always returns the earliest time", arguments: [1, 2, 3] as [UInt64])
    func earliest(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = DueQueue()
        var model: [Int: MediaTime] = [:]
        for _ in 0..<5000 {
            let number = Int.random(in: 0..<50, using: &random)
            let at = MediaTime(nanoseconds: .random(in: 0..<1000, using: &random))
            let isSet = Int.random(in: 0..<4, using: &random) > 0
            queue.set(number, isSet ? at : nil)
            model[number] = isSet ? at : nil
            #expect(queue.first?.at == model.values.min(), "seed \(seed)")
            if let first = queue.first { #expect(model[first.number] == first.at, "seed \(seed)") }
        }
    }
}
