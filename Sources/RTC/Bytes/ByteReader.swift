/// Reads numbers in network byte order, and never past the end: each read returns nil if too few bytes are left.
public struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    public private(set) var position = 0

    /// - Parameter bytes: the memory to read from; must outlive the reader.
    public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    public var remaining: Int { bytes.count - position }
    public var isAtEnd: Bool { remaining == 0 }

    @inline(__always)
    public mutating func u8() -> UInt8? {
        guard remaining >= 1 else { return nil }
        defer { position &+= 1 }
        return bytes[position]
    }

    @inline(__always)
    public mutating func u16() -> UInt16? {
        guard remaining >= 2 else { return nil }
        defer { position &+= 2 }
        return bytes.bigEndian16(at: position)
    }

    @inline(__always)
    public mutating func u24() -> UInt32? {
        guard remaining >= 3 else { return nil }
        defer { position &+= 3 }
        return UInt32(bytes[position]) << 16 | UInt32(bytes.bigEndian16(at: position + 1))
    }

    @inline(__always)
    public mutating func u32() -> UInt32? {
        guard remaining >= 4 else { return nil }
        defer { position &+= 4 }
        return bytes.bigEndian32(at: position)
    }

    public mutating func u64() -> UInt64? {
        guard let high = u32(), let low = u32() else { return nil }
        return UInt64(high) << 32 | UInt64(low)
    }

    /// Returns a view of the next `count` bytes, without copying them, and moves past them. Returns nil and does not
    /// move if fewer are left.
    @inline(__always)
    public mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, remaining >= count else { return nil }
        defer { position &+= count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    public mutating func skip(_ count: Int) -> Bool { take(count) != nil }
}

extension UnsafeRawBufferPointer {
    /// Reads a big-endian number. The caller must check the bounds.
    @inline(__always)
    public func bigEndian16(at offset: Int) -> UInt16 {
        UInt16(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// Reads a big-endian number. The caller must check the bounds.
    @inline(__always)
    public func bigEndian32(at offset: Int) -> UInt32 {
        UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}
