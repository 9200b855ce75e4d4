import RTC

extension FuzzTarget {
    /// Fuzzes datagrams on a TCP connection. The frames must not depend on how the bytes are split.
    static let streamFrames = FuzzTarget("stream-frames", longestInput: 4096) { input throws(BrokenProperty) in
        let whole = frames(of: input, pieces: input.count)
        try require(whole == frames(of: input, pieces: 1), "split into single bytes, the frames differ")
        try require(whole == frames(of: input, pieces: 7), "split into pieces, the frames differ")
        let size = whole.reduce(0) { $0 + $1.count + StreamFraming.prefixLength }
        try require(size <= input.count, "the output is longer than the input")
    }

    private static func frames(of input: [UInt8], pieces size: Int) -> [[UInt8]] {
        var read: [UInt8] = []
        var offset = 0
        var frames: [[UInt8]] = []
        var rest = input[...]
        while !rest.isEmpty {
            read += rest.prefix(max(1, size))
            rest = rest.dropFirst(max(1, size))
            while true {
                let step = read.withUnsafeBytes { StreamFraming.next(in: $0, at: offset) }
                guard case .frame(let range) = step else {
                    if step == .tooLong { return frames }
                    break
                }
                frames.append(Array(read[range]))
                offset = range.upperBound
            }
        }
        return frames
    }
}
