import RTC

extension FuzzTarget {
    /// Fuzzes the VP8 descriptor, which is also rewritten with other numbers.
    static let vp8 = FuzzTarget("vp8", longestInput: 16) { input throws(BrokenProperty) in
        guard let descriptor = input.withUnsafeBytes({ VP8Descriptor($0) }) else { return }
        try require(
            descriptor.length < input.count && descriptor.length <= VP8Descriptor.maxLength,
            "a descriptor of \(descriptor.length) bytes in \(input.count)")
        let same = rewritten(descriptor, descriptor.pictureID ?? 0, descriptor.temporalLayerZeroIndex ?? 0)
        try require(same == Array(input.prefix(descriptor.length)), "a descriptor is encoded differently: \(same)")
        let other = rewritten(descriptor, 0x7f, 0xff) + input.dropFirst(descriptor.length)
        let again = other.withUnsafeBytes { VP8Descriptor($0) }
        try require(
            again?.length == descriptor.length && again?.isKeyframeStart == descriptor.isKeyframeStart
                && again?.temporalLayer == descriptor.temporalLayer && again?.keyIndex == descriptor.keyIndex,
            "the descriptor rewritten with other numbers is wrong: \(again as Any)")
        try require(
            descriptor.pictureID == nil || again?.pictureID == 0x7f,
            "the rewritten picture id is wrong: \(again?.pictureID as Any)")
    }

    private static func rewritten(_ descriptor: VP8Descriptor, _ picture: UInt16, _ index: UInt8) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: VP8Descriptor.maxLength)
        let length = memory.withUnsafeMutableBytes {
            descriptor.rewrite(into: $0, pictureID: picture, temporalLayerZeroIndex: index)
        }
        return Array(memory.prefix(length))
    }

    /// Fuzzes the VP9 descriptor, including its scalability structure.
    static let vp9 = FuzzTarget("vp9", longestInput: 300) { input throws(BrokenProperty) in
        guard let descriptor = input.withUnsafeBytes({ VP9Descriptor($0) }) else { return }
        try require(descriptor.length < input.count, "a descriptor of \(descriptor.length) bytes in \(input.count)")
        let alone = Array(input.prefix(descriptor.length))
        try require(
            alone.withUnsafeBytes { VP9Descriptor($0) } == nil, "a descriptor is parsed without VP9 data after it")
        let short = alone + [0]
        try require(
            short.withUnsafeBytes { VP9Descriptor($0) } == descriptor, "a descriptor depends on the data after it")
    }

    /// Fuzzes an H.264 payload, including aggregated units.
    static let h264 = FuzzTarget("h264", longestInput: 200) { input throws(BrokenProperty) in
        let payload = input.withUnsafeBytes { H264Payload($0) }
        let isStart = input.withUnsafeBytes { VideoPayloadFormat.h264.isKeyframeStart($0) }
        try require(
            isStart == (payload?.isKeyframeStart ?? false),
            "H264Payload and VideoPayloadFormat disagree about a keyframe")
    }

    /// Fuzzes the aggregation header and the dependency descriptor of AV1.
    static let av1 = FuzzTarget("av1", longestInput: 64) { input throws(BrokenProperty) in
        let header = input.withUnsafeBytes { AV1AggregationHeader($0) }
        try require(
            header?.isKeyframeStart != true || header?.continues == false, "a sequence starts with a continuation")
        let descriptor = input.withUnsafeBytes { DependencyDescriptor($0) }
        try require(
            (descriptor == nil) == (input.count < 3),
            "a descriptor is parsed from fewer than three bytes, or not parsed from three or more")
        try require(
            descriptor?.hasTemplateStructure != true || input.count > 3, "a structure is present without its flag")
    }
}
