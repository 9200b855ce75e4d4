import RTC

/// Splits VP8 frames into payloads (RFC 7741 §4). All of them have partition index 0, and a 15-bit picture ID lets
/// receivers detect missing frames.
///
/// ```swift
/// packetizer.cut(frame) { payload, marker in connection.send(payload, …) }
/// ```
public struct VP8Packetizer {
    /// Maximum payload length in bytes, including the descriptor. With RTP headers, extensions and the authentication
    /// tag, the packet stays below 1280 bytes, which every IPv6 path supports (RFC 8200 §5).
    public static let maxPayload = 1_180
    /// Length of the VP8 payload descriptor.
    static let descriptorLength = 4

    private var pictureID: UInt16
    private var memory = [UInt8](repeating: 0, count: maxPayload)

    /// - Parameter pictureID: ID of the first frame; only its lower 15 bits are used.
    public init(pictureID: UInt16) { self.pictureID = pictureID & 0x7fff }

    /// Returns how many payloads a frame of this size needs.
    static func payloads(_ size: Int) -> Int {
        let room = maxPayload - descriptorLength
        return (size + room - 1) / room
    }

    /// Passes the frame's payloads to `body` in order. They have about equal lengths: a short last one would cost as
    /// much as a full one.
    ///
    /// - Parameters:
    ///   - frame: one whole frame. An empty one produces no payloads.
    ///   - body: `marker` is true for the last payload. The payload is valid only during the call.
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
                // X, and S at the start of the frame; then I; then M and the picture ID (RFC 7741 §4.2).
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
