import LiveComposing

extension FuzzTarget {
    /// Fuzzes the socket between the server and the compositor. The messages must not depend on how the bytes are split, what is read
    /// must be written as the same bytes, and the rules must accept any order of messages.
    static let compositorMessages = FuzzTarget("compositor-messages", longestInput: 2048, dictionary: "json") {
        input throws(BrokenProperty) in
        let whole = messages(of: input, pieces: input.count)
        try require(whole == messages(of: input, pieces: 1), "split into single bytes, the messages differ")
        try require(input.starts(with: whole.flatMap(\.bytes)), "the messages are written differently")
        var composition = LiveComposition(CompositorConfiguration())
        var time = Duration.zero
        for message in whole {
            if let output = try? CompositorOutput(message) {
                try require((try? CompositorOutput(output.message)) == output, "\(output) is read back differently")
            }
            guard let taken = try? CompositorInput(message) else { continue }
            try require((try? CompositorInput(taken.message)) == taken, "\(taken) is read back differently")
            _ = composition.take(taken, now: time)
            time += CompositorClock.interval
            let plan = composition.plan(for: time)
            let isInside = plan.cells.allSatisfy { $0.x + $0.width <= 1_280 && $0.y + $0.height <= 720 }
            try require(isInside, "\(plan.cells) are not inside")
        }
    }

    private static func messages(of input: [UInt8], pieces size: Int) -> [CompositorMessage] {
        var reader = CompositorMessageReader()
        var messages: [CompositorMessage] = []
        var rest = input[...]
        while !rest.isEmpty {
            reader.append(rest.prefix(max(1, size)))
            rest = rest.dropFirst(max(1, size))
            do throws(CompositorMessageError) {
                while let message = try reader.next() { messages.append(message) }
            } catch {
                return messages
            }
        }
        return messages
    }
}
