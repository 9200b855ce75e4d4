import RTC

/// The reason a media file cannot be read or used.
public struct MediaFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of problem. `message` has the details.
    public struct Code: Hashable, Sendable {
        /// The stable name, such as `damaged`.
        public let name: String

        /// The file does not start with the signature of the expected format.
        public static let notThisFormat = Code(name: "not_this_format")
        /// The file has the right format, but its content is not supported, or the clip cannot have another file of
        /// this kind.
        public static let otherCodec = Code(name: "other_codec")
        /// The file is inconsistent, or ends too early.
        public static let damaged = Code(name: "damaged")
        /// The file exceeds one of Confab's limits.
        public static let tooLarge = Code(name: "too_large")
    }

    public let code: Code
    /// A predicate without the file's name, such as "is not an IVF file".
    public let message: String

    public init(_ code: Code, _ message: String) {
        (self.code, self.message) = (code, message)
    }

    public var description: String { message }
}

extension ByteReader {
    mutating func littleEndian16() -> UInt16? { u16()?.byteSwapped }
    mutating func littleEndian32() -> UInt32? { u32()?.byteSwapped }
    mutating func littleEndian64() -> UInt64? { u64()?.byteSwapped }
}

extension [UInt8] {
    /// Appends the bytes of the number in little-endian order.
    mutating func append(littleEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension [UInt8] {
    /// Does the same as `withUnsafeBytes`, but with typed throws.
    package func withRawBytes<Value, Failure>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withUnsafeBufferPointer { buffer throws(Failure) in try body(UnsafeRawBufferPointer(buffer)) }
    }
}
