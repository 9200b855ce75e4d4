import Confab
import ConfabHeadless
import Foundation
import MediaFiles
import Peers

/// Frames with the headers of VP8, and a body that names them.
enum Frames {
    static let size = VideoSize(width: 320, height: 240)

    /// - Parameter number: the frame's number, of which each tenth is a keyframe. Some frames need several packets.
    static func video(_ number: Int) -> EncodedFrame {
        let isKeyframe = number % 10 == 0
        let header: [UInt8] = isKeyframe ? [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xf0, 0x00] : [0x11, 0, 0]
        let body = [UInt8](repeating: UInt8(number % 251), count: number % 3 == 0 ? 4_000 : 300)
        return EncodedFrame(
            .vp8, header + body, at: .milliseconds(40 * number), isKeyframe: isKeyframe,
            size: isKeyframe ? size : nil)
    }

    static func audio(_ number: Int) -> EncodedFrame {
        // 20 ms of CELT in one frame (RFC 6716 §3.1).
        EncodedFrame(.opus, [0xfc] + [UInt8](repeating: UInt8(number % 251), count: 60), at: .milliseconds(20 * number))
    }

    /// Ten frames as an IVF file.
    static func ivf(framesPerSecond: UInt32 = 100) -> [UInt8] {
        var header = IVFHeader(width: 320, height: 240, unitNumerator: 1, unitDenominator: framesPerSecond)
        header.frameCount = 10
        return (0..<10).reduce(into: header.bytes) { bytes, number in
            let frame = video(number)
            bytes += IVFFrame.header(time: UInt64(number), size: frame.bytes.count) + frame.bytes
        }
    }

    /// Writes a file into the temporary directory.
    static func file(_ bytes: [UInt8], _ suffix: String) throws -> URL {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(
            "confab-\(UUID().uuidString).\(suffix)")
        try Data(bytes).write(to: file)
        return file
    }
}
