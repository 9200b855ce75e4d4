import RTC

/// The start of a box, which is what MP4 files consist of (ISO/IEC 14496-12 §4.2).
package struct MP4BoxHeader: Hashable, Sendable {
    /// Four characters, such as `moof`.
    package let kind: String
    /// The size of the box in bytes, including its header.
    package let size: Int64
    /// The size of the header in bytes, 8 or 16.
    package let length: Int

    /// The number of bytes after which each header is complete.
    package static let maxLength = 16
    /// The maximum size of a box. Sums of sizes cannot overflow below it.
    private static let maxSize: UInt64 = 1 << 60

    /// Parses the header at the start of the bytes. Returns nil if the bytes end too early, or the size is impossible.
    package init?(_ bytes: ArraySlice<UInt8>) {
        guard let short = Self.number(bytes.prefix(4)), bytes.count >= 8 else { return nil }
        kind = String(decoding: bytes.dropFirst(4).prefix(4), as: UTF8.self)
        // A size of 1 means that it follows in 64 bits. 0 would mean the rest of the file, which only a cut file has.
        guard short == 1 else {
            guard short >= 8 else { return nil }
            (size, length) = (Int64(short), 8)
            return
        }
        guard let high = Self.number(bytes.dropFirst(8).prefix(4)), let low = Self.number(bytes.dropFirst(12).prefix(4))
        else { return nil }
        let long = UInt64(high) << 32 | UInt64(low)
        guard long >= 16, long <= Self.maxSize else { return nil }
        (size, length) = (Int64(long), 16)
    }

    /// Calls `body` with the kind and the content of each whole box in the bytes, up to the first that is not whole.
    package static func children<Failure>(
        _ bytes: ArraySlice<UInt8>, _ body: (String, ArraySlice<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        var rest = bytes
        while let box = MP4BoxHeader(rest), box.size <= Int64(rest.count) {
            try body(box.kind, rest.prefix(Int(box.size)).dropFirst(box.length))
            rest = rest.dropFirst(Int(box.size))
        }
    }

    /// Returns the content of the first whole box of a kind.
    package static func first(_ kind: String, in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var found: ArraySlice<UInt8>?
        children(bytes) { if $0 == kind, found == nil { found = $1 } }
        return found
    }

    /// Returns the number in four bytes; nil if there are fewer.
    package static func number(_ bytes: ArraySlice<UInt8>) -> UInt32? {
        bytes.count == 4 ? bytes.reduce(0) { $0 << 8 | UInt32($1) } : nil
    }
}

extension ArraySlice<UInt8> {
    /// Calls `body` with a reader of these bytes.
    func read<Value, Failure>(_ body: (inout ByteReader) throws(Failure) -> Value) throws(Failure) -> Value {
        try withUnsafeBufferPointer { buffer throws(Failure) in
            var reader = ByteReader(UnsafeRawBufferPointer(buffer))
            return try body(&reader)
        }
    }
}
