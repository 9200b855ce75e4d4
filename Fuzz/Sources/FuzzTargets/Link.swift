import Wire

extension FuzzTarget {
    /// Fuzzes two ends of a link with a lossy transport between them. The input controls all three. A plain list of all sent
    /// messages gives the expected results.
    static let link = FuzzTarget("link", longestInput: 512) { input throws(BrokenProperty) in
        var line = Line()
        var input = InputReader(input)
        while !input.isEmpty {
            switch input.byte() % 8 {
            case 0, 1: line.send(Int(input.byte()))
            case 2, 3: try line.deliver()
            case 4: line.acknowledge()
            case 5: try line.breakAndResume()
            case 6: line.claim(input.number() >> (input.byte() % 64))
            default: try line.mislead(input.number() >> (input.byte() % 64))
            }
        }
        try line.breakAndResume()
    }

    private struct Line {
        private static let bounds = Link.Bounds(messages: 4, bytes: 600)
        private var sender = Link(bounds: bounds)
        private var receiver = Link(bounds: bounds)
        /// All messages sent since the beginning.
        private var sent: [[UInt8]] = []
        private var underWay: [UInt64] = []
        /// The number of messages that arrived, and the number that the sender may drop.
        private var arrived = 0
        private var acknowledged = 0
        /// The numbers of the messages that the sender still stores.
        private var kept: [Int] = []

        private func keptBytes() -> Int { kept.reduce(0) { $0 + sent[$1 - 1].count } }

        mutating func send(_ length: Int) {
            var number: UInt64 = 0
            let bytes = sender.send { seq, _ in
                number = seq
                return [UInt8](repeating: UInt8(truncatingIfNeeded: seq), count: length)
            }
            sent.append(bytes)
            underWay.append(number)
            kept.append(sent.count)
            while kept.count > 1, kept.count > Self.bounds.messages || keptBytes() > Self.bounds.bytes {
                kept.removeFirst()
            }
        }

        mutating func deliver() throws(BrokenProperty) {
            guard !underWay.isEmpty else { return }
            let number = underWay.removeFirst()
            let expected: Link.Receipt = number == arrived + 1 ? .deliver : number <= arrived ? .duplicate : .gap
            try require(receiver.receive(seq: number) == expected, "\(number) after \(arrived) should be \(expected)")
            if expected == .deliver { arrived += 1 }
            try require(receiver.received == arrived, "\(receiver.received) were received, not \(arrived)")
        }

        mutating func acknowledge() { claim(receiver.acknowledge()) }

        /// Makes the sender receive an acknowledgment up to this number, which may be a lie.
        mutating func claim(_ number: UInt64) {
            sender.acknowledged(upTo: number)
            guard number > acknowledged, number <= sent.count else { return }
            acknowledged = Int(number)
            kept.removeAll { $0 <= acknowledged }
        }

        mutating func breakAndResume() throws(BrokenProperty) {
            underWay = []
            guard let missing = try replay(after: UInt64(arrived)) else { return self = Line() }
            underWay = missing.indices.map { UInt64(arrived + 1 + $0) }
        }

        /// Sends a resume that claims any number, and a message with any number.
        mutating func mislead(_ number: UInt64) throws(BrokenProperty) {
            var other = self
            _ = try other.replay(after: number)
            let expected: Link.Receipt = number == arrived + 1 ? .deliver : number <= arrived ? .duplicate : .gap
            try require(
                other.receiver.receive(seq: number) == expected, "\(number) after \(arrived) should be \(expected)")
        }

        private mutating func replay(after received: UInt64) throws(BrokenProperty) -> [[UInt8]]? {
            let missing = sender.replay(after: received)
            guard received <= sent.count, received >= acknowledged else {
                try require(missing == nil, "unsent or dropped messages are replayed after \(received)")
                return nil
            }
            claim(received)
            let lacking = Array(sent[Int(received)...])
            let isKept = kept.count == lacking.count
            try require(
                missing == (isKept ? lacking : nil),
                "after \(received), \(missing?.count ?? -1) messages are replayed; \(lacking.count) are missing and \(kept.count) kept"
            )
            return missing
        }
    }
}
