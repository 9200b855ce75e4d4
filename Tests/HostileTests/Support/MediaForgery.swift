import RTC

/// An RTP packet with arbitrary fields (RFC 3550 §5.1). Its payload is encrypted correctly, so the server finds the
/// faults only after it has authenticated the packet.
struct MediaForgery {
    var type = MediaSource.videoType
    var marker = false
    var padded = false
    var sequence: UInt16 = 0
    var timestamp: UInt32 = 0
    var ssrc: UInt32 = 0
    var contributors: [UInt32] = []
    /// The extension's profile and words, padded to full words.
    var profile: UInt16 = 0xbede
    var elements: [UInt8]?
    var payload: [UInt8] = []

    init(ssrc: UInt32, type: UInt8 = MediaSource.videoType) { (self.ssrc, self.type) = (ssrc, type) }

    /// Adds an element with a one-byte header (RFC 8285 §4.2).
    mutating func add(_ name: HeaderExtension, _ value: [UInt8]) {
        let head = OfferedMedia.id(name) << 4 | UInt8(truncatingIfNeeded: max(1, min(16, value.count)) - 1)
        elements = (elements ?? []) + [head] + value.prefix(16)
    }

    var header: [UInt8] {
        var bytes: [UInt8] = [
            0x80 | (padded ? 0x20 : 0) | (elements == nil ? 0 : 0x10) | UInt8(contributors.count & 15),
            (marker ? 0x80 : 0) | type & 0x7f,
        ]
        bytes += bigEndian(sequence) + bigEndian(timestamp) + bigEndian(ssrc)
        for contributor in contributors.prefix(15) { bytes += bigEndian(contributor) }
        if let elements {
            let words = (elements.count + 3) / 4
            bytes += bigEndian(profile) + bigEndian(UInt16(words)) + elements
            bytes += [UInt8](repeating: 0, count: words * 4 - elements.count)
        }
        return bytes
    }

    /// - Returns: false if our own transport refuses to send, because the sequence number was already used.
    @discardableResult
    func send(over line: MediaLine) -> Bool {
        let header = header
        return line.send(
            header: { memory in
                memory.copyBytes(from: header)
                return header.count
            }, payload: payload)
    }

    /// Truncated payload descriptors of VP8 and other codecs.
    static let cutDescriptors: [[UInt8]] = [
        [], [0x90], [0x90, 0x80], [0x90, 0x80, 0x80], [0x90, 0x80, 0x80, 0x01], [0x80, 0x40], [0x80, 0x20],
        [0x80, 0xf0],
        [0x80, 0xff], [0x90, 0xff, 0xff, 0xff, 0xff], [0x90, 0xff, 0xff, 0xff, 0xff, 0xff], [0xff], [0x10], [0x00],
        [0x10, 0x00], [0x10, 0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a], [0x1f, 0xff], [UInt8](repeating: 0xff, count: 1400),
    ]
}

/// Encodes RTCP packets with arbitrary lengths and counts (RFC 3550 §6, RFC 4585 §6.1).
enum MediaControlForgery {
    /// - Parameter words: the value of the length field; nil for the correct value.
    static func packet(_ type: UInt8, _ count: UInt8, _ body: [UInt8], words: UInt16? = nil) -> [UInt8] {
        [0x80 | count & 31, type] + bigEndian(words ?? UInt16(body.count / 4)) + body
    }

    static func feedback(_ type: UInt8, _ format: UInt8, media: UInt32, _ rest: [UInt8] = []) -> [UInt8] {
        packet(type, format, bigEndian(UInt32(7)) + bigEndian(media) + rest)
    }

    /// Encodes a NACK that requests 17 packets for each of the numbers.
    static func nack(media: UInt32, _ numbers: some Sequence<UInt16>) -> [UInt8] {
        feedback(205, 1, media: media, numbers.flatMap { bigEndian($0) + [0xff, 0xff] })
    }

    static func pli(media: UInt32) -> [UInt8] { feedback(206, 1, media: media) }

    static func fir(media: UInt32, number: UInt8) -> [UInt8] {
        feedback(206, 4, media: 0, bigEndian(media) + [number, 0, 0, 0])
    }

    static func bye(_ sources: [UInt32]) -> [UInt8] {
        packet(203, UInt8(sources.count), sources.flatMap { bigEndian($0) })
    }

    /// RTCP packets that no browser would send.
    static func nonsense(_ ssrc: UInt32) -> [[UInt8]] {
        let words = bigEndian(ssrc)
        return [
            // REMB with more sources than it contains, without a rate, with the maximum rate, and with another
            // identifier.
            feedback(206, 15, media: 0, Array("REMB".utf8) + [255, 0xff, 0xff, 0xff] + words),
            feedback(206, 15, media: 0, Array("REMB".utf8) + [1, 0, 0, 0] + words),
            feedback(206, 15, media: 0, Array("REMB".utf8) + [1, 0xff, 0xff, 0xff] + words),
            feedback(206, 15, media: 0, Array("BMER".utf8)), feedback(206, 15, media: 0),
            // Transport feedback about 65535 packets in one chunk, about no packet, with two-byte deltas only, and
            // without deltas.
            feedback(205, 15, media: ssrc, [0, 0, 0xff, 0xff, 0, 0, 0, 0, 0x1f, 0xff, 0, 0]),
            feedback(205, 15, media: ssrc, [0, 0, 0, 0, 0, 0, 0, 0]),
            feedback(205, 15, media: ssrc, [0, 0, 0x1f, 0xff, 0, 0, 0, 0, 0x5f, 0xff, 0, 0]),
            feedback(205, 15, media: ssrc, [0xff, 0xff, 0, 14, 0x80, 0, 0, 0xff, 0xea, 0xaa, 0x80, 0]),
            // Reports with more blocks than the packet has room for, from unknown sources, and from the future.
            packet(200, 31, words + [UInt8](repeating: 0xff, count: 20)), packet(201, 31, words), packet(201, 0, words),
            packet(200, 0, words + [UInt8](repeating: 0xff, count: 20)),
            packet(201, 1, words + words + [UInt8](repeating: 0xff, count: 20)),
            // Source descriptions without an end, application packets, extended reports, and unknown types.
            packet(202, 31, words + [1, 255, 65, 65]), packet(202, 1, words + [1, 2, 65, 65]),
            packet(204, 0, words + Array("NAME".utf8)), packet(207, 0, words + [4, 0, 0, 255]), packet(223, 31, words),
            // Packets with a length that is too short or too long, and a packet that is only a header.
            packet(201, 0, words, words: 0xffff), packet(201, 0, words + words, words: 0),
            packet(203, 31, [], words: 0) + [0x80], packet(205, 1, words + words, words: 2),
            packet(206, 4, words + words + words, words: 3), packet(206, 1, words, words: 1),
            // Packets that are only padding, that have zero bytes of padding, and that have padding before the last
            // packet.
            [0xa0, 201, 0, 1] + [0, 0, 0, 255], [0xa0, 201, 0, 1] + [0, 0, 0, 0],
            [0xa0, 201, 0, 1] + words + packet(201, 0, words),
            (0..<200).flatMap { _ in packet(201, 0, words) },
        ]
    }
}
