@testable import RTC

/// Parses hexadecimal digits and skips other characters.
func octets(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// Calls a parser with memory that has exactly the size of the bytes.
@discardableResult
func parsing<Result>(_ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes(body)
}

func written(capacity: Int = 1_500, _ body: (inout ByteWriter) -> Void) -> [UInt8] {
    var memory = [UInt8](repeating: 0xee, count: capacity)
    let count = memory.withUnsafeMutableBytes { bytes in
        var writer = ByteWriter(bytes)
        body(&writer)
        return writer.count
    }
    return Array(memory.prefix(count))
}

/// Writes a header with `RTPHeaderWriter`. Returns nil if the header does not fit.
func header(
    capacity: Int = 400, twoByteExtensions: Bool = false, _ body: (inout RTPHeaderWriter) -> Void = { _ in }
) -> [UInt8]? {
    var memory = [UInt8](repeating: 0xee, count: capacity)
    let length = memory.withUnsafeMutableBytes { bytes in
        var writer = RTPHeaderWriter(
            into: bytes, payloadType: 96, marker: true, sequenceNumber: 0x1234, timestamp: 0x5678_9abc,
            ssrc: 0xdef0_1234, twoByteExtensions: twoByteExtensions)
        body(&writer)
        return writer.finish()
    }
    return length == 0 ? nil : Array(memory.prefix(length))
}

/// Returns the extension elements of a packet, or nil if the bytes are not a packet.
func elements(of bytes: [UInt8]) -> [(id: UInt8, bytes: [UInt8])]? {
    parsing(bytes) { memory in
        guard let packet = RTPPacket(memory) else { return nil }
        var found: [(id: UInt8, bytes: [UInt8])] = []
        packet.forEachHeaderExtension(in: memory) { found.append(($0, Array(memory[$1]))) }
        return found
    }
}

extension MediaTime {
    static func milliseconds(_ count: Int64) -> MediaTime { MediaTime(nanoseconds: count * 1_000_000) }
    static func microseconds(_ count: Int64) -> MediaTime { MediaTime(nanoseconds: count * 1_000) }
}

/// Calls a mutating function and returns its result. Directly in `#expect`, it would be called on a copy.
func answer<Value, Result>(of value: inout Value, _ body: (inout Value) -> Result) -> Result { body(&value) }
