import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("VP8 temporal layers")
struct TemporalLayerTests {
    /// Returns the frames per second during the last two seconds.
    private func rate(_ call: SimulatedLayers, _ index: Int = 0) throws -> Double {
        let since = call.room.network.now - .seconds(2)
        return Double(Set(try call.slot(index).arrivals.filter { $0.at > since }.map(\.tag.frame)).count) / 2
    }

    private func begin(_ seed: UInt64, _ weather: NetworkConditions = NetworkConditions(), watchers: Int = 1) throws
        -> SimulatedLayers
    {
        let call = try SimulatedLayers(seed: seed, weather: weather, watchers: watchers, sizes: [(640, 360)])
        call.layers[0].temporalPattern = SimulatedSource.threeLayers
        return call
    }

    @Test("above the preferred frame rate are dropped without gaps in the stream")
    func dropped() throws {
        let call = try begin(1, watchers: 3)
        call.prefer(0, frameRate: 16)
        call.prefer(1, frameRate: 8)
        call.watchers[2].subscribe(to: call.publisher)
        call.room.run(6000)
        let rates = try (0..<3).map { try rate(call, $0) }
        #expect((14...16).contains(rates[0]) && (7...8.5).contains(rates[1]) && rates[2] > 29, "\(rates)")
        for index in 0..<3 {
            let slot = try call.slot(index)
            #expect(slot.faults() == [] && slot.orphans == [] && slot.frames.allSatisfy { $0.isComplete })
        }
    }

    @Test("resume at a frame that depends on no dropped frame", arguments: 1...4 as ClosedRange<UInt64>)
    func upAndDown(seed: UInt64) throws {
        let call = try begin(seed)
        call.watchers[0].subscribe(to: call.publisher)
        call.room.run(2000)
        for frameRate in [8, 16, 8, nil, 16, 30, 8, 20] as [Int?] {
            call.prefer(0, frameRate: frameRate)
            call.room.run(2500)
        }
        let slot = try call.slot()
        #expect(slot.faults() == [] && slot.orphans == [], "seed \(seed)")
        #expect(slot.labels == [10] && call.layers[0].keyframesMade <= 3, "this needs no keyframe")
    }

    @Test(
        "lost packets are retransmitted even if packets between them were dropped",
        arguments: 1...4 as ClosedRange<UInt64>)
    func losses(seed: UInt64) throws {
        let call = try begin(seed, NetworkConditions(losses: 30, delay: 5...20), watchers: 2)
        call.prefer(0, frameRate: 16)
        call.prefer(1, frameRate: 8)
        call.room.run(12_000)
        for layer in call.layers { layer.isOn = false }
        call.room.run(1500)
        for index in 0..<2 {
            let slot = try call.slot(index)
            let inOrder = slot.inOrder
            // What is lost shortly before a keyframe is not requested, because no decoder needs it.
            let keyframes = inOrder.filter(\.tag.isKeyframe).map(\.number)
            func isObsolete(_ number: Int64) -> Bool { keyframes.contains { (0..<10).contains($0 - number) } }
            let gaps = zip(inOrder, inOrder.dropFirst()).filter {
                $1.number != $0.number + 1 && !isObsolete($1.number)
            }
            #expect(gaps.isEmpty, "seed \(seed), \(index): before \(gaps.map(\.1.number))")
            #expect(slot.unreadable == 0)
            // Late packets of dropped layers are still forwarded, because their sequence numbers are already reserved.
            let frames = Dictionary(grouping: inOrder, by: \.tag.frame).values
            let whole = frames.filter { $0.count == Int($0[0].tag.count) }
            let pictures = whole.map { ($0[0].tag.frame, $0[0].picture ?? 0, $0[0].number) }.sorted { $0.0 < $1.0 }
            for (one, next) in zip(pictures, pictures.dropFirst()) where !isObsolete(next.2) {
                #expect((next.1 &- one.1) & 0x7fff == 1, "seed \(seed): picture \(one) before \(next)")
            }
        }
    }

    @Test("dropped packets are counted as in a plain list", arguments: 1...6 as ClosedRange<UInt64>)
    func countsAsAList(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var dropped = DroppedPackets()
        var list: [Int64] = []
        var next: Int64 = Int64.random(in: 0...100_000, using: &random)
        for _ in 0..<3000 {
            next += Int64.random(in: 1...(seed == 6 ? 400 : 4), using: &random)
            if Bool.random(using: &random) {
                dropped.insert(next, startsPicture: next % 3 == 0)
                list.append(next)
            }
            guard let last = list.last else { continue }
            let asked = next - Int64.random(in: 0...600, using: &random)
            guard dropped.remembers(asked) else {
                #expect(asked <= last - DroppedPackets.window)
                continue
            }
            #expect(dropped.contains(asked) == list.suffix(600).contains(asked))
            let after = list.suffix(600).filter { $0 > asked }
            let counts = dropped.counts(after: asked)
            #expect(counts.packets == after.count && counts.pictures == after.count { $0 % 3 == 0 })
            guard asked < last, !dropped.contains(asked) else { continue }
            let between = last - asked - Int64(after.count)
            #expect(dropped.kept(between) == asked, "seed \(seed): \(asked) before \(last)")
        }
        #expect(dropped.kept(1 << 40) == nil)
    }
}
