import TestSupport
import Testing

@testable import MediaFiles
@testable import Peers
@testable import Robots

@Suite("Opus")
struct MediaOpusTests {
    private func samples(_ packet: [UInt8]) -> Int? { packet.withUnsafeBytes { OpusPacket.samples($0) } }

    @Test("packets have the duration in the table of RFC 6716 §3.1")
    func durations() {
        let silk = [480, 960, 1_920, 2_880]
        let hybrid = [480, 960]
        let celt = [120, 240, 480, 960]
        let table = silk + silk + silk + hybrid + hybrid + celt + celt + celt + celt
        #expect(table.count == 32)
        for (configuration, expected) in table.enumerated() {
            let first = UInt8(configuration) << 3
            #expect(samples([first, 1]) == expected, "configuration \(configuration)")
            #expect(samples([first | 1, 1]) == 2 * expected)
            #expect(samples([first | 2, 1]) == 2 * expected)
            #expect(samples([first | 4 | 3, 2]) == 2 * expected, "in stereo, two frames")
        }
    }

    @Test("packets without frames, without a frame count or beyond 120 ms are invalid")
    func malformed() {
        #expect(samples([]) == nil)
        #expect(samples([3]) == nil)
        #expect(samples([3, 0]) == nil)
        // 48 frames of 2.5 ms have 120 ms, the maximum. Three frames of 60 ms exceed it.
        #expect(samples([16 << 3 | 3, 48]) == 5_760)
        #expect(samples([16 << 3 | 3, 49]) == nil)
        #expect(samples([3 << 3 | 3, 3]) == nil)
        // The upper two bits of the frame count have another meaning.
        #expect(samples([1 << 3 | 3, 0xc2]) == 1_920)
    }

    private func file(head: [UInt8], packets: [[UInt8]]) -> [UInt8] {
        var writer = OggWriter(serial: 9)
        return writer.page([head]) + writer.page([OpusTags.bytes(vendor: "test")]) + writer.page(packets, isLast: true)
    }

    @Test("in Ogg is read back unchanged")
    func roundTrip() throws {
        let head = OpusHead(channels: 2, preSkip: 312, inputSampleRate: 44_100, outputGain: -256)
        let opus = try opus(file(head: head.bytes, packets: [[0x78, 1], [0x78 | 3, 2, 5], [0x80]]))
        #expect(opus.head == head)
        #expect(opus.packets.map(\.time) == [0, 960, 2_880])
        #expect(opus.packets.map(\.samples) == [960, 1_920, 120])
        #expect(opus.packets.map { Array(opus.bytes[$0.range]) } == [[0x78, 1], [0x78 | 3, 2, 5], [0x80]])
        #expect(opus.samples == 3_000)
        #expect(!opus.isDamaged)
    }

    @Test("files skip invalid packets")
    func skipped() throws {
        let head = OpusHead(channels: 1, preSkip: 0)
        let opus = try opus(file(head: head.bytes, packets: [[0x78], [], [3], [0x78]]))
        #expect(opus.packets.count == 2 && opus.isDamaged)
    }

    @Test("of a newer version or with more channels is rejected with a message")
    func otherHeads() {
        var newer = OpusHead(channels: 1, preSkip: 0).bytes
        newer[8] = 0x10
        var surround = OpusHead(channels: 6, preSkip: 0).bytes
        surround[18] = 1
        for head in [newer, surround] {
            #expect { try opus(file(head: head, packets: [])) } throws: {
                ($0 as? MediaFileError)?.code == .otherCodec
            }
        }
        #expect(throws: MediaFileError.self) { try opus(file(head: Array(newer.prefix(18)), packets: [])) }
    }

    @Test("is required: an Ogg file with another codec is rejected")
    func vorbis() {
        var writer = OggWriter(serial: 1)
        let bytes = writer.page([[1] + Array("vorbis".utf8)], isLast: true)
        #expect { try opus(bytes) } throws: {
            ($0 as? MediaFileError)?.message == "is an Ogg file without an Opus stream"
        }
    }
}
