import RTC

/// Splits VP8 frames into payloads (RFC 7741 §4). All payloads have partition index 0, and a 15-bit picture id with which
/// receivers detect missing frames.
///
/// ```swift
/// packetizer.cut(frame) { payload, marker in connection.send(payload, …) }
/// ```
public struct VP8Packetizer {
    /// The maximum length of a payload in bytes, including the descriptor. With RTP headers, extensions and the authentication
    /// tag, a packet stays below 1280 bytes, which every IPv6 path supports (RFC 8200 §5).
    public static let maxPayload = 1_180
    /// The length of the VP8 payload descriptor in bytes.
    static let descriptorLength = 4

    private var pictureID: UInt16
    private var memory = [UInt8](repeating: 0, count: maxPayload)

    /// - Parameter pictureID: the picture id of the first frame; only its lower 15 bits are used.
    public init(pictureID: UInt16) { self.pictureID = pictureID & 0x7fff }

    /// Returns the number of payloads for a frame of `size` bytes.
    static func payloads(_ size: Int) -> Int {
        let room = maxPayload - descriptorLength
        return (size + room - 1) / room
    }

    /// Passes the frame's payloads to `body` in order. Their lengths are about equal, because a short last payload would cost
    /// as much as a full one.
    ///
    /// - Parameters:
    ///   - frame: one whole frame. An empty frame produces no payloads.
    ///   - body: receives each payload, which is valid only during the call. `marker` is true for the last payload.
    public mutating func cut(
        _ frame: UnsafeRawBufferPointer, _ body: (_ payload: UnsafeRawBufferPointer, _ marker: Bool) -> Void
    ) {
        let count = Self.payloads(frame.count)
        guard count > 0 else { return }
        let id = pictureID
        memory.withUnsafeMutableBytes { memory in
            for index in 0..<count {
                let range = frame.count * index / count..<frame.count * (index + 1) / count
                var writer = ByteWriter(memory)
                // Write the descriptor (RFC 7741 §4.2): a byte with the bit X, and with S at the start of the frame; a
                // byte with the bit I; the bit M with the picture id.
                writer.u8(index == 0 ? 0x90 : 0x80)
                writer.u8(0x80)
                writer.u16(0x8000 | id)
                writer.append(UnsafeRawBufferPointer(rebasing: frame[range]))
                body(UnsafeRawBufferPointer(rebasing: memory[..<writer.count]), index == count - 1)
            }
        }
        pictureID = (pictureID &+ 1) & 0x7fff
    }
}
