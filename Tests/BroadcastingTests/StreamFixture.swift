import Foundation
import MediaFiles

@testable import Broadcasting

/// Media for tests of what does not look into it.
enum StreamFixture {
    /// The `ftyp` and `moov` boxes that ffmpeg wrote for H.264 of 160x120, made by
    /// `-f lavfi -i testsrc2=s=160x120:r=25 -c:v libx264 -preset ultrafast -movflags empty_moov+default_base_moof+frag_keyframe`.
    private static let boxes = """
        AAAAHGZ0eXBpc281AAACAGlzbzVpc282bXA0MQAAAuhtb292AAAAbG12aGQAAAAAAAAAAAAAAAAAAAPoAAAAAAABAAABAAAAAAAA\
        AAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAAAB6nRy\
        YWsAAABcdGtoZAAAAAMAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAA\
        AAAAAAAAAEAAAAAAoAAAAHgAAAAAAYZtZGlhAAAAIG1kaGQAAAAAAAAAAAAAAAAAADIAAAAAAFXEAAAAAAAtaGRscgAAAAAAAAAA\
        dmlkZQAAAAAAAAAAAAAAAFZpZGVvSGFuZGxlcgAAAAExbWluZgAAABR2bWhkAAAAAQAAAAAAAAAAAAAAJGRpbmYAAAAcZHJlZgAA\
        AAAAAAABAAAADHVybCAAAAABAAAA8XN0YmwAAAClc3RzZAAAAAAAAAABAAAAlWF2YzEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAA\
        oAB4AEgAAABIAAAAAAAAAAEMTGF2YyBsaWJ4MjY0AAAAAAAAAAAAAAAAAAAAAAAAAAAY//8AAAAvYXZjQwFCwAv/4QAYZ0LAC9oK\
        EflwEQAAAwABAAADADIPFCqgAQAEaM4PyAAAABBwYXNwAAAAAQAAAAEAAAAQc3R0cwAAAAAAAAAAAAAAEHN0c2MAAAAAAAAAAAAA\
        ABRzdHN6AAAAAAAAAAAAAAAAAAAAEHN0Y28AAAAAAAAAAAAAAChtdmV4AAAAIHRyZXgAAAAAAAAAAQAAAAEAAAAAAAAAAAAAAAAA\
        AABidWR0YQAAAFptZXRhAAAAAAAAACFoZGxyAAAAAAAAAABtZGlyYXBwbAAAAAAAAAAAAAAAAC1pbHN0AAAAJal0b28AAAAdZGF0\
        YQAAAAEAAAAATGF2ZjU5LjI3LjEwMA==
        """

    /// An initialization section with one video track.
    static func initialization() throws -> MP4Initialization {
        var reader = FragmentedMP4Reader()
        for item in try reader.take([UInt8](Data(base64Encoded: boxes) ?? Data())) {
            if case .initialization(let initialization) = item { return initialization }
        }
        throw HLSRefusal.notFound
    }

    /// A part of 480 ms. Each fourth starts a segment.
    static func part(_ number: Int) -> MediaPart {
        MediaPart(
            bytes: [UInt8(truncatingIfNeeded: number)], start: .milliseconds(480 * number),
            duration: .milliseconds(480), isIndependent: number % 4 == 0, startsSegment: number % 4 == 0)
    }
}
