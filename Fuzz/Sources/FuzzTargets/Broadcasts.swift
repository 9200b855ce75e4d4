import Broadcasting
import MediaFiles
import Wire

extension FuzzTarget {
    /// Fuzzes what divides the output of an encoder into parts. The pieces in which the bytes come must not matter, parts must be playable
    /// in order, and an error must last.
    static let segments = FuzzTarget("segments", longestInput: 4_096) { input throws(BrokenProperty) in
        // The first byte is the size of the pieces, and decides whether parts have a maximum duration.
        let (first, bytes) = (Int(input.first ?? 0), Array(input.dropFirst()))
        let rules = first.isMultiple(of: 2) ? HLSSettings.lowLatency.segmenting : HLSSettings.standard.segmenting
        var whole = Segmenter(rules)
        let (items, error) = divide(bytes, by: bytes.count, with: &whole)
        var piecewise = Segmenter(rules)
        let (others, otherError) = divide(bytes, by: first + 1, with: &piecewise)
        // In one piece, a later error of the boxes comes before an earlier one of their times, and the items before it are lost.
        try require(
            (error == nil) == (otherError == nil),
            "the error is \(String(describing: error)), in pieces \(String(describing: otherError))")
        try require(error != nil || items == others, "in pieces of \(first + 1), other items are read")
        if let otherError {
            let (none, again) = divide([0], by: 1, with: &piecewise)
            try require(none.isEmpty && again == otherError, "after \(otherError) it continues")
        }
        try checkParts(others, of: bytes.count)
    }

    private static func checkParts(_ items: [Segmenter.Item], of count: Int) throws(BrokenProperty) {
        var (size, last): (Int, Duration?) = (0, nil)
        for (index, item) in items.enumerated() {
            switch item {
            case .initialization(let initialization):
                try require(index == 0, "an initialization section is not the first item")
                size += initialization.bytes.count
            case .part(let part):
                try require(part.duration > .zero && part.start > last ?? .seconds(-1), "\(part.start) is out of order")
                try require(part.isIndependent || !part.startsSegment, "a segment does not start with a keyframe")
                try require(last != nil || part.startsSegment, "the first part does not start a segment")
                last = part.start
                size += part.bytes.count
            }
        }
        try require(size <= count, "\(size) bytes are read of \(count)")
    }

    private static func divide(
        _ bytes: [UInt8], by size: Int, with segmenter: inout Segmenter
    ) -> (items: [Segmenter.Item], error: SegmenterError?) {
        var items: [Segmenter.Item] = []
        var position = 0
        while position < bytes.count {
            let end = min(bytes.count, position + max(1, size))
            do throws(SegmenterError) {
                items += try segmenter.take(bytes[position..<end])
            } catch {
                return (items, error)
            }
            position = end
        }
        return (items, nil)
    }

    /// Fuzzes the checks of RTMP targets, and of names and directives in requests for HLS. The first line is a server URL, a name or a
    /// segment, and the second line a stream name or a part.
    static let broadcastTexts = FuzzTarget("broadcast-texts", longestInput: 512) { input throws(BrokenProperty) in
        let lines = String(decoding: input, as: UTF8.self).split(
            separator: "\n", maxSplits: 1, omittingEmptySubsequences: false
        ).map(String.init)
        let (first, second) = (lines[0], lines.count > 1 ? lines[1] : "")
        if let file = HLSFile(name: first) { try require(file.name == first, "\(first) is read as \(file.name)") }
        try checkDirectives(first, second)
        guard let target = try? RTMPDestination(serverURL: first, streamName: second) else { return }
        try require((1...65_535).contains(target.port) && !target.host.isEmpty, "\(target) cannot be reached")
        try require(target.url.utf8.allSatisfy { (0x21...0x7e).contains($0) }, "\(target.url) is not one argument")
        let again = try? RTMPDestination(serverURL: "\(target)/live", streamName: "key")
        try require(
            again?.host == target.host && again?.port == target.port && again?.isEncrypted == target.isEncrypted,
            "\(target) is another place than \(first)")
        let shown = target.withoutSecret("x \(target.url) x")
        try require(!shown.contains(target.serverURL), "\(shown) contains the server URL")
    }

    private static func checkDirectives(_ segment: String, _ part: String) throws(BrokenProperty) {
        let values = ["_HLS_msn": segment, "_HLS_part": part]
        guard let directives = try? HLSDirectives.parse({ values[$0] }) else { return }
        try require(
            directives.segment >= 0 && directives.part ?? 0 >= 0 && directives.segment < 1_000_000_000_000_000,
            "\(directives) cannot be counted")
    }
}
