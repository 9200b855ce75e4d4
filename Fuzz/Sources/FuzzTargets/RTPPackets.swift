import RTC

extension FuzzTarget {
    /// Fuzzes a decrypted RTP packet.
    static let rtpPackets = FuzzTarget("rtp-packets", longestInput: 200) { input throws(BrokenProperty) in
        guard let packet = input.withUnsafeBytes({ RTPPacket($0) }) else { return }
        try require(
            packet.headerLength >= RTPPacket.fixedHeaderLength && packet.headerLength == packet.payloadRange.lowerBound,
            "the header has \(packet.headerLength) bytes, and the payload begins at \(packet.payloadRange)")
        try require(packet.payloadRange.upperBound <= input.count, "\(packet.payloadRange) is beyond \(input.count)")
        try require(
            packet.hasPadding == (packet.payloadRange.upperBound < input.count),
            "padding is counted without the padding bit")
        let elements = extensionElements(of: packet, in: input)
        try require(
            elements.allSatisfy { packet.extensionRange.contains($0.range) },
            "\(elements) are not all within \(packet.extensionRange)")
        for element in elements {
            let first = input.withUnsafeBytes { packet.headerExtension(element.id, in: $0) }
            try require(
                first == elements.first { $0.id == element.id }?.range,
                "element \(element.id) is found at \(first as Any)")
        }
        _ = input.withUnsafeBytes { packet.originalSequenceNumber(in: $0) }
    }

    /// Fuzzes the bytes of a header extension, whose elements are encoded again.
    static let headerExtensions = FuzzTarget("header-extensions", longestInput: 300) { input throws(BrokenProperty) in
        var reader = InputReader(input)
        let isOneByte = reader.byte() & 1 == 0
        var words = Array(input.dropFirst().prefix(1_000))
        words += [UInt8](repeating: 0, count: (4 - words.count & 3) & 3)
        let profile: [UInt8] = isOneByte ? [0xbe, 0xde] : [0x10, 0x00]
        let packet =
            [0x90, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3] + profile
            + [0, UInt8(words.count / 4)] + words
        guard let parsed = input.isEmpty ? nil : packet.withUnsafeBytes({ RTPPacket($0) }) else { return }
        let elements = extensionElements(of: parsed, in: packet)
        let again = rewritten(elements, of: packet, twoByteExtensions: !isOneByte)
        guard let second = again.withUnsafeBytes({ RTPPacket($0) }) else {
            throw BrokenProperty(description: "the encoded packet is invalid: \(again)")
        }
        let copies = extensionElements(of: second, in: again)
        try require(
            copies.map(\.id) == elements.map(\.id)
                && copies.map { Array(again[$0.range]) } == elements.map { Array(packet[$0.range]) },
            "\(elements) are encoded as \(copies)")
        for element in elements { try checkValues(of: Array(packet[element.range])) }
    }

    private static func extensionElements(
        of packet: RTPPacket, in bytes: [UInt8]
    ) -> [(id: UInt8, range: Range<Int>)] {
        var elements: [(id: UInt8, range: Range<Int>)] = []
        bytes.withUnsafeBytes { packet.forEachHeaderExtension(in: $0) { elements.append(($0, $1)) } }
        return elements
    }

    private static func rewritten(
        _ elements: [(id: UInt8, range: Range<Int>)], of packet: [UInt8], twoByteExtensions: Bool
    ) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: packet.count + 8)
        let length = memory.withUnsafeMutableBytes { memory in
            packet.withUnsafeBytes { bytes in
                var writer = RTPHeaderWriter(
                    into: memory, payloadType: 96, marker: false, sequenceNumber: 1, timestamp: 2, ssrc: 3,
                    twoByteExtensions: twoByteExtensions)
                for element in elements {
                    writer.addExtension(id: element.id, bytes: UnsafeRawBufferPointer(rebasing: bytes[element.range]))
                }
                return writer.finish()
            }
        }
        return Array(memory.prefix(length))
    }

    private static func checkValues(of element: [UInt8]) throws(BrokenProperty) {
        let level = element.withUnsafeBytes { HeaderExtensions.AudioLevel($0) }
        try require(level?.byte == element.first, "an audio level is encoded differently")
        _ = element.withUnsafeBytes { HeaderExtensions.absoluteSendTime($0) }
        _ = element.withUnsafeBytes { HeaderExtensions.transportSequenceNumber($0) }
        _ = element.withUnsafeBytes { HeaderExtensions.videoOrientation($0) }
        guard let label = element.withUnsafeBytes({ SDESLabel($0) }) else { return }
        try require(SDESLabel(label.description) == label, "\(label) is read back differently")
        try require(label.withBytes { Array($0) } == element, "\(label) has other bytes")
    }
}
