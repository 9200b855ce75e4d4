import RTC

/// Why a file of media cannot be read or used.
public struct MediaFileError: Error, Equatable, Sendable, CustomStringConvertible {
    public struct Code: Hashable, Sendable {
        let name: String

        /// It does not begin as this kind of file does.
        public static let notThisFormat = Code(name: "not_this_format")
        /// It is of this kind, and holds something else than is asked for.
        public static let otherCodec = Code(name: "other_codec")
        /// It contradicts itself, or ends before anything is in it.
        public static let damaged = Code(name: "damaged")
        /// It is beyond a bound of ours.
        public static let tooLarge = Code(name: "too_large")
    }

    public let code: Code
    /// A sentence about the file without its name, such as "is not an IVF file".
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
    /// The number's bytes, the lowest first.
    mutating func append(littleEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension [UInt8] {
    /// `withUnsafeBytes`, which does not say what it throws.
    func withRawBytes<Value, Failure>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withUnsafeBufferPointer { buffer throws(Failure) in try body(UnsafeRawBufferPointer(buffer)) }
    }
}
