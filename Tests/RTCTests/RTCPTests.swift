import TestSupport
import Testing

@testable import RTC

/// Describes the packets of a compound as strings, for comparison.
private func described(_ bytes: [UInt8]) -> [String]? {
    parsing(bytes) { memory in
        guard let compound = RTCPCompound(memory) else { return nil }
        return compound.map(describe)
    }
}

private func describe(_ packet: RTCP.Packet) -> String {
    switch packet {
    case .senderReport(let report): "SR \(report.info) \(Array(report.blocks))"
    case .receiverReport(let report): "RR \(report.ssrc) \(Array(report.blocks))"
    case .sourceDescription(let chunks):
        "SDES "
            + chunks.map { "\($0.ssrc)=\(String(decoding: $0.cname.map(Array.init) ?? [], as: UTF8.self))" }
            .joined(separator: ",")
    case .bye(let bye): "BYE \(Array(bye.sources))"
    case .nack(let nack): "NACK \(nack.sender) \(nack.media) \(Array(nack.lost))"
    case .pli(let request): "PLI \(request.sender) \(request.media)"
    case .fir(let request):
        "FIR \(request.sender) " + request.entries.map { "\($0.ssrc):\($0.sequenceNumber)" }.joined(separator: ",")
    case .remb(let limit): "REMB \(limit.sender) \(limit.bitrate) \(Array(limit.sources))"
    case .transportFeedback(let report): "TWCC \(report.baseSequenceNumber)+\(report.statusCount)"
    case .application(let packet):
        "APP \(packet.sender) \(packet.subtype) \(String(packet.name, radix: 16)) \(Array(packet.data))"
    case .unknown(let type, let format): "unknown \(type)/\(format)"
    case .malformed(let type): "malformed \(type)"
    }
}

private func block(_ ssrc: UInt32, lost: Int32 = 5) -> RTCP.ReportBlock {
    RTCP.ReportBlock(
        ssrc: ssrc, fractionLost: 3, lost: lost, highestSequenceNumber: 0x1_0002, jitter: 9, lastSenderReport: 10,
        delaySinceLastSenderReport: 11)
}

private let info = RTCP.SenderInfo(
    ssrc: 1, ntp: NTPTime(0x1122_3344_5566_7788), rtpTimestamp: 2, packetCount: 3, octetCount: 4)

@Suite struct RTCPTests {
    @Test(arguments: [
        ("80 c9 0001 00000007", "RR 7 []"),
        ("81 cb 0001 00000007", "BYE [7]"),
        ("80 cb 0000", "BYE []"),
        ("81 cb 0002 00000007 03 616263", "BYE [7]"),
        ("81 ca 0004 00000007 0103 616263 02 01 78 00000000", "SDES 7=abc"),
        ("82 ca 0005 00000007 01 01 61 00 00000008 02 00 01 00 00000000", "SDES 7=a,8="),
        ("81 cd 0003 00000001 00000002 0064 0000", "NACK 1 2 [100]"),
        ("81 cd 0003 00000001 00000002 ffff 8001", "NACK 1 2 [65535, 0, 15]"),
        ("81 cd 0004 00000001 00000002 0001 0002 0010 0000", "NACK 1 2 [1, 3, 16]"),
        ("81 ce 0002 00000001 00000002", "PLI 1 2"),
        ("84 ce 0004 00000001 00000000 00000009 05000000", "FIR 1 9:5"),
        ("8f ce 0005 00000001 00000000 52454d42 01 0406a0 00000009", "REMB 1 3392 [9]"),
        ("8f ce 0005 00000001 00000000 52454d42 01 ffffff 00000009", "REMB 1 18446744073709551615 [9]"),
        ("8f ce 0003 00000001 00000000 58585858", "unknown 206/15"),
        ("81 cf 0001 00000001", "unknown 207/1"),
        ("83 cc 0003 00000001 63726c79 01020304", "APP 1 3 63726c79 [1, 2, 3, 4]"),
        ("80 cc 0002 00000001 63726c79", "APP 1 0 63726c79 []"),
        ("80 cc 0001 00000001", "malformed 204"),
        ("83 cd 0002 00000001 00000002", "unknown 205/3"),
        ("a1 ce 0003 00000001 00000002 00000004", "PLI 1 2"),
    ])
    func aPacketIsRead(_ text: String, _ expected: String) {
        #expect(described(octets(text)) == [expected])
    }

    @Test func reportBlocksAreReadCompletely() {
        let bytes = octets(
            "81 c9 0007 00000007 00000008 ff 800000 ffffffff 00000003 00000004 00000005")
        let expected = RTCP.ReportBlock(
            ssrc: 8, fractionLost: 255, lost: -0x80_0000, highestSequenceNumber: .max, jitter: 3, lastSenderReport: 4,
            delaySinceLastSenderReport: 5)
        #expect(described(bytes) == ["RR 7 \([expected])"])
    }

    @Test(arguments: [
        "", "80 c9 00", "80 c9 0001 000000", "80 c9 0002 00000007", "80 c9 ffff 00000007",
        // An unsupported version, in the first packet or in a later one.
        "40 c9 0001 00000007", "80 c9 0001 00000007 00 c9 0001 00000007",
        // Extra bytes after the last packet.
        "80 c9 0001 00000007 80", "80 c9 0001 00000007 80 c9",
        // Padding in a packet before the last.
        "a0 c9 0002 00000007 00000004 80 c9 0001 00000007",
    ])
    func aCompoundWithWrongLengthsIsRejected(_ text: String) {
        #expect(described(octets(text)) == nil)
    }

    @Test(arguments: [
        // Packets without all of their blocks, sources or chunks.
        ("81 c9 0001 00000007", 201), ("9f c9 0001 00000007", 201), ("80 c9 0000", 201), ("80 c8 0001 00000007", 200),
        ("81 c8 0006 00000001 00000002 00000003 00000004 00000005 00000006", 200), ("82 cb 0001 00000007", 203),
        ("81 ca 0000", 202), ("81 ca 0001 00000007", 202), ("81 ca 0002 00000007 01ff6161", 202),
        ("81 ca 0002 00000007 01026161", 202), ("9f ca 0002 00000007 00000000", 202),
        // Feedback without its sources or its items.
        ("81 cd 0001 00000001", 205), ("81 cd 0002 00000001 00000002", 205), ("81 ce 0001 00000001", 206),
        ("84 ce 0002 00000001 00000000", 206), ("84 ce 0003 00000001 00000000 00000009", 206),
        ("8f ce 0004 00000001 00000000 52454d42 01000001", 206),
        ("8f ce 0004 00000001 00000000 52454d42 ff000001", 206),
        ("8f ce 0003 00000001 00000000 52454d42", 206),
        // Padding of zero bytes, of a partial word, and longer than the packet.
        ("a0 cb 0001 00000000", 203), ("a0 cb 0001 00000003", 203), ("a0 cb 0001 00000008", 203), ("a0 cb 0000", 203),
        ("a1 ce 0002 00000001 00000004", 206),
    ])
    func aTruncatedPacketIsMalformed(_ text: String, _ type: Int) {
        #expect(described(octets(text)) == ["malformed \(type)"])
        let followed = described(octets("80 c9 0001 00000007" + text))
        #expect(followed == ["RR 7 []", "malformed \(type)"])
    }

    @Test func aCompoundOfTooManyPacketsIsRejected() {
        let packet = octets("80 c9 0001 00000007")
        let most = Array(repeating: packet, count: RTCPCompound.maxPackets).flatMap(\.self)
        #expect(described(most)?.count == RTCPCompound.maxPackets)
        #expect(described(most + packet) == nil)
    }

    @Test func aHugeNACKIsReadOnlyInPart() throws {
        let item = octets("0000 ffff")
        let one = described(octets("81 cd 0003 00000001 00000002") + item)
        #expect(one == ["NACK 1 2 \(Array(UInt16(0)...16))"])
        let items = Array(repeating: item, count: 360).flatMap(\.self)
        let storm = octets("81 cd") + [UInt8(362 >> 8), UInt8(362 & 0xff)] + octets("00000001 00000002") + items
        let count = parsing(storm) { memory -> Int? in
            guard var compound = RTCPCompound(memory), case .nack(let nack) = compound.next() else { return nil }
            return nack.lost.reduce(0) { count, _ in count + 1 }
        }
        #expect(count == RTCP.LostSequenceNumbers.most)
    }
}

@Suite struct RTCPWritingTests {
    @Test func aCompoundIsReadAsItWasWritten() {
        let bytes = written { writer in
            RTCP.writeSenderReport(info, blocks: [block(8), block(9, lost: -3)], to: &writer)
            RTCP.writeSourceDescription(ssrc: 1, cname: "abcdef", to: &writer)
            RTCP.writeReceiverReport(sender: 1, blocks: [block(10)], to: &writer)
            RTCP.writeNACK(sender: 1, media: 2, lost: [65_530, 65_535, 3, 10, 11, 27, 28], to: &writer)
            RTCP.writePLI(sender: 1, media: 2, to: &writer)
            RTCP.writeFIR(sender: 1, entries: [.init(ssrc: 5, sequenceNumber: 200)], to: &writer)
            RTCP.writeREMB(sender: 1, bitrate: 1_500_000, sources: [2, 3], to: &writer)
            RTCP.writeBye(sources: [1, 2], to: &writer)
            RTCP.writeApplication(sender: 1, subtype: 2, name: 0x6162_6364, to: &writer) { $0.u24(0x01_0203) }
        }
        #expect(
            described(bytes) == [
                "SR \(info) \([block(8), block(9, lost: -3)])",
                "SDES 1=abcdef",
                "RR 1 \([block(10)])",
                "NACK 1 2 [65530, 65535, 3, 10, 11, 27, 28]",
                "PLI 1 2",
                "FIR 1 5:200",
                "REMB 1 1500000 [2, 3]",
                "BYE [1, 2]",
                "APP 1 2 61626364 [1, 2, 3, 0]",
            ])
    }

    @Test(arguments: 0...300) func aCNAMEOfAnyLengthFits(_ length: Int) {
        let name = String(repeating: "x", count: length)
        let bytes = written { RTCP.writeSourceDescription(ssrc: 1, cname: name, to: &$0) }
        #expect(bytes.count & 3 == 0)
        #expect(described(bytes) == ["SDES 1=\(name.prefix(255))"])
    }

    @Test func blocksBeyondThirtyOneGoIntoAnotherPacket() throws {
        let blocks = (0..<40).map { block($0) }
        let report = try #require(described(written { RTCP.writeSenderReport(info, blocks: blocks, to: &$0) }))
        #expect(report == ["SR \(info) \(Array(blocks.prefix(31)))", "RR 1 \(Array(blocks.suffix(9)))"])
        let receiver = try #require(
            described(written { RTCP.writeReceiverReport(sender: 1, blocks: blocks, to: &$0) }))
        #expect(receiver == ["RR 1 \(Array(blocks.prefix(31)))", "RR 1 \(Array(blocks.suffix(9)))"])
        #expect(described(written { RTCP.writeReceiverReport(sender: 1, blocks: [], to: &$0) }) == ["RR 1 []"])
    }

    @Test func aNACKIsAsShortAsPossible() {
        #expect(written { RTCP.writeNACK(sender: 1, media: 2, lost: [], to: &$0) } == [])
        let run = written { RTCP.writeNACK(sender: 1, media: 2, lost: Array(100...116), to: &$0) }
        #expect(run == octets("81 cd 0003 00000001 00000002 0064 ffff"))
        let far = written { RTCP.writeNACK(sender: 1, media: 2, lost: [100, 100, 117], to: &$0) }
        #expect(far == octets("81 cd 0004 00000001 00000002 0064 0000 0075 0000"))
        let many = stride(from: UInt16(0), to: 60_000, by: 100)
        #expect(written { RTCP.writeNACK(sender: 1, media: 2, lost: many, to: &$0) }.count == 12 + 250 * 4)
    }

    @Test(arguments: [0, 1, 0x3_ffff, 0x4_0000, 300_000, 1_500_000, 1 << 40, 1 << 63, UInt64.max])
    func aBitrateIsRoundedDown(_ bitrate: UInt64) throws {
        let back = RTCP.bitrate(scaled: RTCP.scaled(bitrate: bitrate))
        #expect(back <= bitrate)
        #expect(bitrate - back <= bitrate >> 17)
    }

    @Test func nothingIsWrittenBeyondTheMemory() {
        for capacity in 0..<200 {
            let bytes = written(capacity: capacity) { writer in
                RTCP.writeSenderReport(info, blocks: [block(8)], to: &writer)
                RTCP.writeNACK(sender: 1, media: 2, lost: [1, 50, 100], to: &writer)
                RTCP.writeREMB(sender: 1, bitrate: 9, sources: [2, 3], to: &writer)
                RTCP.writeSourceDescription(ssrc: 1, cname: "abcdef", to: &writer)
            }
            #expect(bytes.count <= capacity)
        }
    }

    @Test func randomRTCPNeverTraps() {
        let seed = UInt64.random(in: 0 ... .max)
        print("RTCP: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100_000 {
            var bytes = (0..<Int.random(in: 0...15, using: &random) * 4).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            // Write valid lengths, so that most packets pass the first check.
            var position = 0
            while position + 4 <= bytes.count, Int.random(in: 0..<50, using: &random) > 0 {
                let words = Int.random(in: 0...(bytes.count - position) / 4 - 1, using: &random)
                bytes[position] = 0x80 | bytes[position] & 0x3f
                bytes[position + 1] = 199 + bytes[position + 1] % 9
                bytes[position + 2] = 0
                bytes[position + 3] = UInt8(words)
                if Bool.random(using: &random) { bytes[position] = 0x8f }
                position += (words + 1) * 4
            }
            parsing(bytes) { memory in
                RTCPCompound(memory)?.forEach { packet in
                    _ = describe(packet)
                    if case .transportFeedback(let report) = packet { report.forEachPacket { _, _ in } }
                }
            }
        }
    }

    @Test func randomRTPNeverTraps() {
        let seed = UInt64.random(in: 0 ... .max)
        print("RTP: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100_000 {
            var bytes = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if bytes.count > 16, Int.random(in: 0..<20, using: &random) > 0 {
                bytes[0] = [0x80, 0x90, 0xb0, 0x91, 0xa0].randomElement(using: &random) ?? 0x90
                bytes.replaceSubrange(12..<14, with: Bool.random(using: &random) ? [0xbe, 0xde] : [0x10, 0x00])
                bytes.replaceSubrange(14..<16, with: [0, bytes[15] & 7])
            }
            parsing(bytes) { memory in
                guard let packet = RTPPacket(memory) else { return }
                #expect(packet.payloadRange.upperBound <= bytes.count, "seed \(seed)")
                packet.forEachHeaderExtension(in: memory) { _, range in
                    #expect(packet.extensionRange.contains(range), "seed \(seed)")
                    let element = UnsafeRawBufferPointer(rebasing: memory[range])
                    _ = (HeaderExtensions.AudioLevel(element), HeaderExtensions.absoluteSendTime(element))
                    _ = (HeaderExtensions.transportSequenceNumber(element), SDESLabel(element))
                }
                _ = packet.originalSequenceNumber(in: memory)
            }
        }
    }
}
