import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Messages between the ends of a relay")
struct RelayMessageTests {
    private static let client = Key(high: 1, low: .max)

    private static let video = RemoteTrackState(
        id: 7, mid: "v", isVideo: true,
        codecs: [
            Codec(.vp8, payloadType: 96, rtxPayloadType: 97),
            Codec(.h264(profileLevelID: 0x42e01f, packetizationMode: 1), payloadType: 102, rtxPayloadType: 103),
            Codec(.vp9(profile: 2), payloadType: 98), Codec(.av1(profile: 0), payloadType: 45, rtxPayloadType: 46),
        ],
        extensions: [.absCaptureTime: 5],
        encodings: [
            RemoteTrackState.Encoding(
                rid: "f", generation: 255, codec: 1, size: PictureSize(width: 1280, height: 720), isAlive: true,
                hasTemporalLayers: true, framesPer10s: SIMD4(75, 150, 300, 300),
                bytesPerSecond: SIMD4(100_000, 150_000, 200_000, 200_000)),
            RemoteTrackState.Encoding(rid: "q", isMissing: true),
        ])

    private static let audio = RemoteTrackState(
        id: .max, mid: "0123456789abcdef", isVideo: false,
        codecs: [Codec(.red, payloadType: 63, fmtp: "111"), Codec(.opus, payloadType: 111)],
        extensions: [.audioLevel: 14, .absCaptureTime: 1], encodings: [RemoteTrackState.Encoding()])

    private static let messages: [RelayMessage] = [
        .heartbeat, .end(client: client, number: 3),
        .demand(RelayDemand(client: client, number: .max, tracks: [])),
        .demand(
            RelayDemand(
                client: client, number: 2,
                tracks: [
                    RelayDemand.Track(
                        id: 9, wanted: 5, refused: 2, decoders: [3, 0, 255],
                        encodings: [
                            RelayDemand.Encoding(index: 0, generation: 4, channel: 255),
                            RelayDemand.Encoding(index: 2, generation: 0, channel: 0),
                        ]), RelayDemand.Track(id: 10),
                ])),
        .listing(RelayListingPart(client: client, number: 1, index: 0, count: 0, track: nil)),
        .listing(RelayListingPart(client: client, number: 1, index: 0, count: 2, track: video)),
        .listing(RelayListingPart(client: client, number: 1, index: 1, count: 2, track: audio)),
        .acknowledgement(RelayAcknowledgement(.demand, of: client, 5)),
        .acknowledgement(RelayAcknowledgement(.listing, of: client, 6)),
    ]

    @Test("are read as they were written", arguments: messages.indices)
    func roundTrip(_ index: Int) throws {
        let bytes = written(Self.messages[index])
        #expect(read(bytes) == Self.messages[index])
    }

    @Test("of the largest size fit in a datagram")
    func largest() throws {
        let codecs = (0..<UInt8(RelayMessage.maxCodecs)).map {
            Codec(.h264(profileLevelID: 0x42e01f, packetizationMode: 1), payloadType: 96 + $0, rtxPayloadType: 35)
        }
        let encodings = (0..<RelayMessage.maxEncodings).map {
            RemoteTrackState.Encoding(rid: "0123456789abcde\($0)", framesPer10s: .zero, bytesPerSecond: .zero)
        }
        var track = Self.video
        (track.mid, track.codecs, track.encodings) = ("0123456789abcdef", codecs, encodings)
        let listing = RelayMessage.listing(
            RelayListingPart(client: Self.client, number: 1, index: 0, count: 16, track: track))
        #expect(read(written(listing)) == listing && written(listing).count <= RouterOutput.maxReport)
        let demanded = (0..<RelayMessage.maxEncodings).map {
            RelayDemand.Encoding(index: UInt8($0), generation: 0, channel: UInt16($0))
        }
        let tracks = (0..<UInt32(RelayMessage.maxTracks)).map {
            RelayDemand.Track(
                id: $0, decoders: [UInt8](repeating: 1, count: RelayMessage.maxCodecs), encodings: demanded)
        }
        let demand = RelayMessage.demand(RelayDemand(client: Self.client, number: 1, tracks: tracks))
        #expect(read(written(demand)) == demand && written(demand).count <= RouterOutput.maxReport)
    }

    @Test("that are cut off are refused, and members at the end of a message are ignored", arguments: messages.indices)
    func lengths(_ index: Int) throws {
        let message = Self.messages[index]
        let content = Array(written(message).dropFirst(12))
        for count in stride(from: 0, to: content.count, by: 4) {
            // A shorter list of numbers can only be another message if the rest is padding.
            #expect(read(content: Array(content.prefix(count))) != message, "\(count) bytes")
        }
        #expect(read(content: content + [1, 2, 3, 4]) == message)
    }

    @Test("with numbers beyond the limits are refused")
    func limits() {
        let key = [UInt8](repeating: 0, count: 16)
        let number: [UInt8] = [0, 0, 0, 1]
        #expect(read(content: [1] + key + number + [17]) == nil)
        #expect(read(content: [3] + key + number + [0, 17]) == nil)
        #expect(read(content: [3] + key + number + [2, 2]) == nil)
        #expect(read(content: [4, 2] + key + number) == nil)
        #expect(read(content: [5]) == nil && read(content: []) == nil)
        // A channel, an encoding's index, and the numbers of codecs and encodings.
        let track: [UInt8] = [0, 0, 0, 7, 0, 0]
        #expect(read(content: [1] + key + number + [1] + track + [0, 1, 0, 0, 0, 255]) != nil)
        #expect(read(content: [1] + key + number + [1] + track + [0, 1, 0, 0, 1, 0]) == nil)
        #expect(read(content: [1] + key + number + [1] + track + [0, 1, 4, 0, 0, 0]) == nil)
        #expect(read(content: [1] + key + number + [1] + track + [33] + [UInt8](repeating: 0, count: 40)) == nil)
        #expect(read(content: [1] + key + number + [1] + track + [0, 5] + [UInt8](repeating: 0, count: 40)) == nil)
    }

    @Test("of another version or application are refused")
    func versions() {
        #expect(read(content: [0], version: 2) == nil)
        #expect(read(content: [0], name: 0x6162_6364) == nil)
        #expect(read(content: [0]) == .heartbeat)
    }

    private func written(_ message: RelayMessage) -> [UInt8] { bytes { message.write(sender: 9, to: &$0) } }

    private func bytes(_ write: (inout ByteWriter) -> Void) -> [UInt8] {
        var memory = [UInt8](repeating: 0xee, count: 2000)
        let count = memory.withUnsafeMutableBytes { bytes in
            var writer = ByteWriter(bytes)
            write(&writer)
            return writer.count
        }
        return Array(memory.prefix(count))
    }

    private func read(
        content: [UInt8], version: UInt8 = RelayMessage.version, name: UInt32 = RelayMessage.name
    ) -> RelayMessage? {
        read(
            bytes { writer in
                RTCP.writeApplication(sender: 9, subtype: version, name: name, to: &writer) { $0.append(content) }
            })
    }

    private func read(_ bytes: [UInt8]) -> RelayMessage? {
        bytes.withUnsafeBytes {
            guard var compound = RTCPCompound($0), case .application(let packet) = compound.next() else { return nil }
            return RelayMessage(packet)
        }
    }
}
