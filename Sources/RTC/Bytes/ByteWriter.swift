/// Writes numbers in network byte order into the caller's memory. A write that does not fit sets `overflowed` and writes
/// nothing, so a caller needs only one check after its last write.
public struct ByteWriter {
    private let bytes: UnsafeMutableRawBufferPointer
    public private(set) var count = 0
    public private(set) var overflowed = false

    /// - Parameter bytes: the memory to write to; must outlive the writer.
    public init(_ bytes: UnsafeMutableRawBufferPointer) { self.bytes = bytes }

    private mutating func room(_ size: Int) -> Bool {
        guard !overflowed, bytes.count - count >= size else {
            overflowed = true
            return false
        }
        return true
    }

    public mutating func u8(_ value: UInt8) {
        guard room(1) else { return }
        bytes[count] = value
        count += 1
    }

    public mutating func u16(_ value: UInt16) {
        guard room(2) else { return }
        bytes.storeBytes(of: value.bigEndian, toByteOffset: count, as: UInt16.self)
        count += 2
    }

    public mutating func u24(_ value: UInt32) {
        u8(UInt8(truncatingIfNeeded: value >> 16))
        u16(UInt16(truncatingIfNeeded: value))
    }

    public mutating func u32(_ value: UInt32) {
        guard room(4) else { return }
        bytes.storeBytes(of: value.bigEndian, toByteOffset: count, as: UInt32.self)
        count += 4
    }

    public mutating func u64(_ value: UInt64) {
        u32(UInt32(truncatingIfNeeded: value >> 32))
        u32(UInt32(truncatingIfNeeded: value))
    }

    public mutating func append(_ source: UnsafeRawBufferPointer) {
        guard room(source.count) else { return }
        guard let from = source.baseAddress, let base = bytes.baseAddress else { return }
        (base + count).copyMemory(from: from, byteCount: source.count)
        count += source.count
    }

    public mutating func append(_ source: [UInt8]) {
        source.withUnsafeBytes { append($0) }
    }

    public mutating func zeros(_ size: Int) {
        guard size >= 0, room(size) else { return }
        for index in count..<count + size { bytes[index] = 0 }
        count += size
    }

    /// Overwrites a length or count that was unknown when its two bytes were written.
    public mutating func patch16(_ value: UInt16, at offset: Int) {
        guard offset >= 0, offset + 2 <= count else { return }
        bytes.storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt16.self)
    }
}
