import RTC

extension FuzzTarget {
    /// Fuzzes the size of a keyframe in a packet. The first byte selects the codec.
    static let pictureSizes = FuzzTarget("picture-sizes", longestInput: 200) { input throws(BrokenProperty) in
        guard let first = input.first else { return }
        let formats = VideoPayloadFormat.allCases
        let format = formats[Int(first) % formats.count]
        let payload = Array(input.dropFirst())
        guard let size = payload.withUnsafeBytes({ format.pictureSize($0) }) else { return }
        try require(
            (1...16384).contains(size.width) && (1...16384).contains(size.height),
            "a picture of \(format) has an invalid size: \(size)")
        try require(
            payload.withUnsafeBytes { format.isKeyframeStart($0) },
            "\(size) is returned without a keyframe of \(format)")
        let longer = payload + [0]
        let again = longer.withUnsafeBytes { format.pictureSize($0) }
        // Bytes after a single H.264 unit belong to that unit.
        try require(
            format == .h264 || again == size, "\(size) of \(format) depends on the data after it: \(again as Any)")
    }
}
