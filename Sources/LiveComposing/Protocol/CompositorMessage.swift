/// A message on the socket between the server and the compositor, before its body is read.
///
/// On the wire, all numbers big-endian: how many bytes follow (4 bytes), `type` (1), `stream` (4), `time` in microseconds (8),
/// `flags` (1), and the body.
public struct CompositorMessage: Hashable, Sendable {
    /// The size of the first number, in bytes.
    public static let prefixLength = 4
    /// The bytes between the first number and the body.
    public static let headerLength = 14
    /// The longest body in bytes: that of a fragment of the maximum bitrate, and of a video frame, is within.
    public static let maxBody = 4 << 20
    /// The latest time, 31 years, so that sums of times cannot overflow.
    public static let maxTime = Duration.seconds(1_000_000_000)

    /// The kind of message, a `CompositorInput.Kind` or a `CompositorOutput.Kind`.
    public var type: UInt8
    /// The number that the server gave a stream; 0 if the message is about no stream.
    public var stream: UInt32
    /// A time of the server's timeline, whole microseconds.
    public var time: Duration
    /// Bits whose meaning depends on the type.
    public var flags: UInt8
    /// The content.
    public var body: [UInt8]

    public init(type: UInt8, stream: UInt32 = 0, time: Duration = .zero, flags: UInt8 = 0, body: [UInt8] = []) {
        (self.type, self.stream, self.time, self.flags, self.body) = (type, stream, time, flags, body)
    }

    /// The message as it is sent. A longer body than `maxBody` makes the other side close the connection.
    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.prefixLength + Self.headerLength + body.count)
        bytes.append(bigEndian: UInt32(clamping: Self.headerLength + body.count))
        bytes.append(type)
        bytes.append(bigEndian: stream)
        bytes.append(bigEndian: UInt64(clamping: time.wholeMicroseconds))
        bytes.append(flags)
        return bytes + body
    }

    /// Reads what follows the first number.
    init(_ bytes: ArraySlice<UInt8>) throws(CompositorMessageError) {
        guard bytes.count >= Self.headerLength else { throw CompositorMessageError("A message has no header.") }
        let start = bytes.startIndex
        type = bytes[start]
        stream = UInt32(truncatingIfNeeded: bytes.bigEndian(at: start + 1, count: 4))
        let microseconds = bytes.bigEndian(at: start + 5, count: 8)
        guard microseconds <= UInt64(Self.maxTime.wholeMicroseconds) else {
            throw CompositorMessageError("The time \(microseconds) µs is out of range.")
        }
        time = .microseconds(Int64(microseconds))
        flags = bytes[start + 13]
        body = Array(bytes.dropFirst(Self.headerLength))
    }
}

/// Why bytes on the socket are not a message. The connection cannot be used after it.
public struct CompositorMessageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence. It contains no media.
    public let description: String

    init(_ description: String) { self.description = description }
}

/// Divides the bytes of the socket into messages. It keeps at most one unfinished message and one read.
public struct CompositorMessageReader: Sendable {
    private var buffer: [UInt8] = []
    private var offset = 0

    public init() {}

    /// Adds bytes as they were read. Take all messages before the next call, so that the buffer stays small.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        if offset > 0 {
            buffer.removeFirst(offset)
            offset = 0
        }
        buffer += bytes
    }

    /// Returns the next whole message; nil if more bytes are needed.
    ///
    /// - Throws: `CompositorMessageError` if a message is too short, too long, or has a time out of range.
    public mutating func next() throws(CompositorMessageError) -> CompositorMessage? {
        let available = buffer.count - offset
        guard available >= CompositorMessage.prefixLength else { return nil }
        let length = Int(buffer[...].bigEndian(at: offset, count: CompositorMessage.prefixLength))
        guard
            (CompositorMessage.headerLength...CompositorMessage.headerLength + CompositorMessage.maxBody).contains(
                length)
        else { throw CompositorMessageError("A message of \(length) bytes is not possible.") }
        let start = offset + CompositorMessage.prefixLength
        guard available - CompositorMessage.prefixLength >= length else { return nil }
        offset = start + length
        return try CompositorMessage(buffer[start..<offset])
    }
}

extension Duration {
    /// Whole microseconds, rounded down; at most the largest `Int64`.
    package var wholeMicroseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, overflowsToo) = product.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return overflows || overflowsToo ? (seconds < 0 ? .min : .max) : sum
    }
}

extension [UInt8] {
    mutating func append(bigEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }
}

extension ArraySlice<UInt8> {
    /// Reads a number of at most eight bytes, which must be in the slice.
    func bigEndian(at index: Int, count: Int) -> UInt64 {
        self[index..<index + count].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
