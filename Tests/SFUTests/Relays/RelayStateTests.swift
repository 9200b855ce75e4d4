import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("The states of a relay")
struct RelayStateTests {
    private static func at(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    @Test("a state is sent at once, and again until it is acknowledged")
    func repetition() {
        var state = NumberedState(["a"])
        #expect(state.number == 1 && state.takeDue(now: Self.at(0)))
        #expect(!state.takeDue(now: Self.at(99)) && state.takeDue(now: Self.at(100)))
        state.set(["a"])
        #expect(state.number == 1 && !state.takeDue(now: Self.at(150)))
        state.set(["b"])
        #expect(state.number == 2 && state.takeDue(now: Self.at(150)))
        state.acknowledge(1)
        #expect(!state.isAcknowledged && state.takeDue(now: Self.at(250)))
        state.acknowledge(2)
        // A later acknowledgement of the former state, or of one that was never sent, changes nothing.
        state.acknowledge(1)
        #expect(state.isAcknowledged && !state.takeDue(now: Self.at(9000)))
        state.acknowledge(7)
        state.set(["c"])
        #expect(!state.isAcknowledged && state.takeDue(now: Self.at(9000)))
    }

    @Test("the numbers of states of the same client continue")
    func continuation() {
        var state = NumberedState("a", after: 7)
        #expect(state.number == 8 && !state.isAcknowledged)
        state.acknowledge(7)
        #expect(state.takeDue(now: Self.at(0)) == true)
        state.acknowledge(8)
        #expect(state.isAcknowledged)
    }

    @Test("new demand takes effect at once, and its end after half a second")
    func heldDemand() {
        var demand = HeldDemand()
        #expect(demand.update(0, now: Self.at(0)) == 0)
        #expect(demand.update(0b101, now: Self.at(10)) == 0b101)
        #expect(demand.update(0b100, now: Self.at(20)) == 0b101)
        #expect(demand.update(0b110, now: Self.at(509)) == 0b111)
        #expect(demand.update(0b110, now: Self.at(510)) == 0b110)
        #expect(demand.update(0, now: Self.at(600)) == 0b110)
        // A subscriber that returns in time keeps the encoding.
        #expect(demand.update(0b010, now: Self.at(1000)) == 0b110)
        #expect(demand.update(0b010, now: Self.at(1010)) == 0b010)
    }

    @Test("a released channel rests for a second, and 256 channels are never exceeded")
    func channels() throws {
        var channels = RelayChannels()
        let all = (0..<300).compactMap { _ in channels.take(now: Self.at(0)) }
        #expect(all == Array(0...255))
        channels.release(7, now: Self.at(100))
        channels.release(9, now: Self.at(200))
        #expect(channels.take(now: Self.at(1099)) == nil)
        #expect(channels.take(now: Self.at(1100)) == 7)
        #expect(channels.take(now: Self.at(1199)) == nil && channels.take(now: Self.at(1200)) == 9)
    }

    @Test("each channel has two SSRCs of its own")
    func sources() {
        let all = (0..<UInt16(RelayChannels.count)).flatMap {
            [RelayChannels.ssrc(of: $0), RelayChannels.ssrc(of: $0) + 1]
        }
        #expect(all == Array(2...513))
        #expect(all.compactMap { RelayChannels.channel(of: $0) } == (0..<256 as Range<UInt16>).flatMap { [$0, $0] })
        #expect(([0, 1, 514, .max] as [UInt32]).allSatisfy { RelayChannels.channel(of: $0) == nil })
    }

    @Test("numbers keep the gaps of a feed, and continue without one when it is sent again")
    func numbers() {
        var numbers = RelayNumbers()
        #expect(numbers.sequence(of: 1) == nil && numbers.known(70_000) == nil)
        var used: [UInt16?] = []
        for sequence in [70_000, 70_001, 70_004, 70_002] as [Int64] { used.append(numbers.number(sequence)) }
        #expect(used == [1, 2, 5, 3])
        // Older than the first.
        #expect(numbers.number(69_999) == nil)
        #expect(numbers.sequence(of: 4) == 70_003 && numbers.sequence(of: 5) == 70_004)
        #expect(numbers.sequence(of: 6) == nil && numbers.sequence(of: 0) == nil)
        #expect(numbers.known(70_003) == 4 && numbers.known(70_005) == nil)
        numbers.begin()
        #expect(numbers.sequence(of: 5) == nil)
        #expect(numbers.number(3_000_000) == 6)
        #expect(numbers.number(3_000_002) == 8)
        #expect(numbers.sequence(of: 5) == nil && numbers.sequence(of: 7) == 3_000_001)
    }

    @Test("no step between two numbers is larger than SRTP allows", arguments: 1...20 as ClosedRange<UInt64>)
    func steps(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var numbers = RelayNumbers()
        var (sequence, last): (Int64, UInt16?) = (1_000_000, nil)
        for _ in 0..<10_000 {
            switch Int.random(in: 0..<100, using: &random) {
            case 0: numbers.begin()
            case 1: sequence += Int64.random(in: 0..<100_000, using: &random)
            case 2:
                sequence = Int64.random(in: 0..<10_000_000, using: &random)
                numbers.begin()
            default: break
            }
            sequence += 1
            guard let number = numbers.number(sequence) else {
                Issue.record("seed \(seed): \(sequence) has no number")
                return
            }
            if let last { #expect((1...UInt16(RelayNumbers.maxStep)).contains(number &- last), "seed \(seed)") }
            #expect(numbers.sequence(of: number) == sequence, "seed \(seed)")
            last = number
        }
    }
}
