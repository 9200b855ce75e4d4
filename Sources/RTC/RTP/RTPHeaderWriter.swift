/// Writes an RTP header with extensions in place (RFC 3550 §5.1, RFC 8285), without allocating memory.
///
/// ```swift
/// var header = RTPHeaderWriter(into: memory, payloadType: 96, marker: true, sequenceNumber: 7, timestamp: 0, ssrc: 1)
/// header.addExtension(id: 4, bytes: mid)
/// let length = header.finish()
/// ```
/// Callers inline the functions, because every packet to every subscriber gets its own header.
public struct RTPHeaderWriter {
    @usableFromInline let bytes: UnsafeMutableRawBufferPointer
    @usableFromInline let twoByteExtensions: Bool
    @usableFromInline var position = 0
    @usableFromInline var overflowed = false
    @inlinable var hasExtensions: Bool { position > RTPPacket.fixedHeaderLength }

    /// - Parameters:
    ///   - bytes: the memory for the packet; must outlive the writer.
    ///   - payloadType: 0 to 127; the highest bit is ignored.
    ///   - twoByteExtensions: whether to write the two-byte form of extensions. It also allows ids above 14, and elements that
    ///     are empty or longer than 16 bytes.
    @inlinable
    public init(
        into bytes: UnsafeMutableRawBufferPointer, payloadType: UInt8, marker: Bool, sequenceNumber: UInt16,
        timestamp: UInt32, ssrc: UInt32, twoByteExtensions: Bool = false
    ) {
        self.bytes = bytes
        self.twoByteExtensions = twoByteExtensions
        guard bytes.count >= RTPPacket.fixedHeaderLength else {
            overflowed = true
            return
        }
        bytes[0] = 0x80
        bytes[1] = (payloadType & 0x7f) | (marker ? 0x80 : 0)
        bytes.storeBytes(of: sequenceNumber.bigEndian, toByteOffset: 2, as: UInt16.self)
        bytes.storeBytes(of: timestamp.bigEndian, toByteOffset: 4, as: UInt32.self)
        bytes.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
        position = RTPPacket.fixedHeaderLength
    }

    /// Adds an extension element. Returns false and adds nothing if the chosen form does not allow it, or if the
    /// memory is too small.
    ///
    /// - Parameters:
    ///   - id: the extension's id, 1 to 14, or 1 to 255 in the two-byte form.
    ///   - bytes: the content, 1 to 16 bytes, or 0 to 255 in the two-byte form.
    @inlinable
    @inline(__always)
    @discardableResult
    public mutating func addExtension(id: UInt8, bytes element: UnsafeRawBufferPointer) -> Bool {
        guard begin(id: id, length: element.count) else { return false }
        // Most elements are one byte long, and for these a loop is faster than a call to memcpy.
        for byte in element {
            bytes[position] = byte
            position &+= 1
        }
        return true
    }

    /// Adds an extension element that contains a number. Returns false and adds nothing if `length` is not allowed, if
    /// the chosen form does not allow the element, or if the memory is too small.
    ///
    /// - Parameters:
    ///   - value: the number, of which the lowest `length` bytes are written in network byte order.
    ///   - length: the number of bytes, 1 to 4.
    @inlinable
    @inline(__always)
    @discardableResult
    public mutating func addExtension(id: UInt8, value: UInt32, length: Int) -> Bool {
        guard (1...4).contains(length), begin(id: id, length: length) else { return false }
        for index in 0..<length {
            bytes[position &+ index] = UInt8(truncatingIfNeeded: value &>> UInt32((length - 1 - index) * 8))
        }
        position &+= length
        return true
    }

    /// Writes an element's header if the whole element fits. Returns false if it does not fit or the form does not
    /// allow it.
    @inlinable
    @inline(__always)
    mutating func begin(id: UInt8, length: Int) -> Bool {
        let fits =
            twoByteExtensions
            ? (0...255).contains(length) && id > 0 : (1...16).contains(length) && (1...14).contains(id)
        guard fits, !overflowed else { return false }
        let before = (hasExtensions ? 0 : 4) + (twoByteExtensions ? 2 : 1)
        // Keep room for up to three bytes of padding after the last element.
        guard bytes.count &- position >= before &+ length &+ 3 else {
            overflowed = true
            return false
        }
        // Nothing can overflow after this check, because the position stays within the memory.
        if !hasExtensions {
            bytes[0] |= 0x10
            let profile: UInt16 = twoByteExtensions ? 0x1000 : 0xbede
            bytes.storeBytes(of: profile.bigEndian, toByteOffset: position, as: UInt16.self)
            position &+= 4
        }
        if twoByteExtensions {
            bytes[position] = id
            bytes[position &+ 1] = UInt8(truncatingIfNeeded: length)
            position &+= 2
        } else {
            bytes[position] = id << 4 | UInt8(truncatingIfNeeded: length &- 1)
            position &+= 1
        }
        return true
    }

    /// Pads the extension to whole words and writes its length.
    ///
    /// - Returns: the header's length in bytes; 0 if the memory was too small.
    @inlinable @inline(__always)
    public mutating func finish() -> Int {
        guard !overflowed else { return 0 }
        guard hasExtensions else { return position }
        // Do not use a loop: the compiler would turn it into a call to memset for each packet.
        if position & 1 != 0 {
            bytes[position] = 0
            position &+= 1
        }
        if position & 2 != 0 {
            bytes.storeBytes(of: 0, toByteOffset: position, as: UInt16.self)
            position &+= 2
        }
        let words = (position - RTPPacket.fixedHeaderLength - 4) / 4
        bytes.storeBytes(
            of: UInt16(truncatingIfNeeded: words).bigEndian, toByteOffset: RTPPacket.fixedHeaderLength + 2,
            as: UInt16.self)
        return position
    }
}
