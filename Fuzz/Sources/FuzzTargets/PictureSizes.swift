import RTC

extension FuzzTarget {
    /// A packet in which a keyframe may begin, after a byte that says of which codec: how large its pictures are.
    static let pictureSizes = FuzzTarget("picture-sizes", longestInput: 200) { input throws(BrokenProperty) in
        guard let first = input.first else { return }
        let formats = VideoPayloadFormat.allCases
        let format = formats[Int(first) % formats.count]
        let payload = Array(input.dropFirst())
        guard let size = payload.withUnsafeBytes({ format.pictureSize($0) }) else { return }
        try require(
            (1...16384).contains(size.width) && (1...16384).contains(size.height), "\(format) has pictures of \(size)")
        try require(
            payload.withUnsafeBytes { format.isKeyframeStart($0) },
            "\(size) is said where no keyframe of \(format) begins")
        let longer = payload + [0]
        let again = longer.withUnsafeBytes { format.pictureSize($0) }
        // What follows a single H.264 unit is of that unit.
        try require(
            format == .h264 || again == size, "\(size) of \(format) depends on what is behind it: \(again as Any)")
    }
}
