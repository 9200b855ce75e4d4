import RTC

/// Cuts VP8 frames into payloads (RFC 7741 §4): each with the first partition's number, whatever lies where a payload
/// begins, and each with a picture id of 15 bits, by which receivers see that none is missing.
///
/// ```swift
/// packetiser.cut(frame) { payload, marker in connection.send(payload, …) }
/// ```
public struct VP8Packetiser {
    /// In bytes, descriptor included: with headers, extensions and a tag it stays below 1280, which every path takes
    /// (RFC 8200 §5).
    public static let mostPayload = 1_180
    /// What stands before VP8 in each of them.
    static let descriptorLength = 4

    private var pictureID: UInt16
    private var memory = [UInt8](repeating: 0, count: mostPayload)

    /// - Parameter pictureID: of the first frame; its lower 15 bits count.
    public init(pictureID: UInt16) { self.pictureID = pictureID & 0x7fff }

    /// How many payloads a frame of so many bytes takes.
    static func payloads(_ size: Int) -> Int {
        let room = mostPayload - descriptorLength
        return (size + room - 1) / room
    }

    /// Hands over the frame's payloads in order, all about as long: a last one of a few bytes would cost as much.
    ///
    /// - Parameters:
    ///   - frame: one, whole; nothing comes of an empty one.
    ///   - body: `marker` is true for the last; the payload is good for the call.
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
                // X, and S for the frame's beginning; then I; then M and the picture id (RFC 7741 §4.2).
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
