import TestSupport
import Testing

@testable import RTC

/// An entry of a parsed feedback packet: a sequence number, and the arrival time in ticks of 250 µs.
private struct Reported: Equatable {
    var number: UInt16
    var ticks: Int64?
}

private func read(_ bytes: [UInt8]) -> [Reported]? {
    parsing(bytes) { memory in
        guard var compound = RTCPCompound(memory), case .transportFeedback(let report) = compound.next() else {
            return nil
        }
        var reported: [Reported] = []
        report.forEachPacket { reported.append(Reported(number: $0, ticks: $1.map { $0.nanoseconds / 250_000 })) }
        return reported.count == report.statusCount ? reported : nil
    }
}

@Suite struct RTCPTransportFeedbackTests {
    private func packets(of feedback: inout TransportFeedback) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        while true {
            let bytes = written { _ = feedback.writeFeedback(sender: 1, media: 2, to: &$0) }
            guard !bytes.isEmpty else { return packets }
            packets.append(bytes)
        }
    }

    /// Returns the feedback packets for these arrivals, each given as a sequence number and a time in ticks.
    private func feedback(_ arrivals: [(UInt16, Int64)]) -> [[UInt8]] {
        var feedback = TransportFeedback()
        for (number, ticks) in arrivals { feedback.receive(number, at: MediaTime(nanoseconds: ticks * 250_000)) }
        return packets(of: &feedback)
    }

    private static let head = "00000001 00000002"

    @Test func withoutPacketsThereIsNoFeedback() {
        #expect(feedback([]).isEmpty)
    }

    @Test func theFormatIsThatOfTheDraft() {
        // A run of two packets, the first at reference time 1 and the second 4 ms later.
        #expect(
            feedback([(5, 256), (6, 272)])
                == [octets("8f cd 0005" + Self.head + "0005 0002 000001 00 2002 0010")])
        // One bit per packet: received, lost, received.
        #expect(
            feedback([(5, 257), (7, 259)])
                == [octets("8f cd 0005" + Self.head + "0005 0003 000001 00 a800 0102")])
        // Two bits per packet: a small delta, a large delta, lost, a large negative delta.
        #expect(
            feedback([(0, 256), (1, 600), (3, 500)])
                == [octets("8f cd 0006" + Self.head + "0000 0004 000001 00 d880 00 0158 ff9c 00")])
        // Lost packets at the end of one chunk of 14 packets and at the beginning of the next.
        #expect(
            feedback([(0, 256), (21, 256)])
                == [octets("8f cd 0006" + Self.head + "0000 0016 000001 00 a000 8040 0000 0000")])
        // Many lost packets in a row form a run.
        #expect(
            feedback([(0, 256), (101, 256)])
                == [octets("8f cd 0006" + Self.head + "0000 0066 000001 00 a000 0057 2001 0000")])
    }

    /// libwebrtc pads to a whole word, sets the padding bit, and writes the number of bytes, which is not a multiple of four.
    @Test(
        "feedback is read as browsers pad it",
        arguments: [
            ("0006", "2003 000000 000003", 3), ("0006", "2004 00000000 0002", 4), ("0006", "2005 0000000000 01", 5),
        ])
    func padded(length: String, _ rest: String, _ count: Int) {
        let bytes = octets("af cd \(length)" + Self.head + "0007 000\(count) 000001 00" + rest)
        let reported = (0..<count).map { Reported(number: UInt16(7 + $0), ticks: 256) }
        #expect(read(bytes) == reported)
        // Also before another packet in the same datagram.
        #expect(read(bytes + octets("80 c9 0001 00000007")) == reported)
    }

    @Test func feedbackIsNumberedAndContinuesWhereTheLastEnded() {
        var feedback = TransportFeedback()
        feedback.receive(65_534, at: .milliseconds(64))
        #expect(feedback.hasNews)
        #expect(packets(of: &feedback).map { read($0) } == [[Reported(number: 65_534, ticks: 256)]])
        #expect(!feedback.hasNews)
        feedback.receive(1, at: .milliseconds(65))
        let next = packets(of: &feedback)
        #expect(next.map { $0[19] } == [1])
        #expect(
            next.map { read($0) } == [
                [
                    Reported(number: 65_535, ticks: nil), Reported(number: 0, ticks: nil),
                    Reported(number: 1, ticks: 260),
                ]
            ])
    }

    @Test func aLatePacketIsReportedWithThePacketsAfterIt() {
        var feedback = TransportFeedback()
        feedback.receive(10, at: .milliseconds(64))
        feedback.receive(12, at: .milliseconds(65))
        _ = packets(of: &feedback)
        feedback.receive(11, at: .milliseconds(66))
        #expect(
            packets(of: &feedback).map { read($0) } == [
                [Reported(number: 11, ticks: 264), Reported(number: 12, ticks: 260)]
            ])
        feedback.receive(11, at: .milliseconds(90))
        feedback.receive(12, at: .milliseconds(90))
        #expect(packets(of: &feedback).isEmpty)
    }

    @Test func aLatePacketCostsLittle() {
        var feedback = TransportFeedback()
        feedback.receive(0, at: .milliseconds(0))
        for number in UInt16(2)...2_000 { feedback.receive(number, at: .milliseconds(Int64(number))) }
        _ = packets(of: &feedback)
        feedback.receive(1, at: .milliseconds(3_000))
        #expect(packets(of: &feedback).isEmpty)
    }

    @Test func aPauseTooLongForADeltaBeginsANewPacket() throws {
        let packets = feedback([(0, 256), (1, 256 + 32_767), (2, 256 + 32_767 + 32_768), (3, 256)])
        #expect(
            packets.map { read($0) } == [
                [Reported(number: 0, ticks: 256), Reported(number: 1, ticks: 33_023)],
                [Reported(number: 2, ticks: 65_791)],
                [Reported(number: 3, ticks: 256)],
            ])
    }

    @Test func theReferenceTimeWrapsAfter24Bits() throws {
        let wrap = Int64(1) << 32
        let reported = try #require(feedback([(0, wrap - 1), (1, wrap + 1)]).first.flatMap(read))
        // The highest 24-bit value is read as -1, which is just before the origin.
        #expect(reported == [Reported(number: 0, ticks: -1), Reported(number: 1, ticks: 1)])
        #expect(feedback([(0, -5), (1, -3)]).count == 1)
    }

    @Test func aJumpBeyondTheWindowStartsOver() throws {
        let packets = feedback([(0, 256), (1, 257), (20_000, 258)])
        #expect(packets.map { read($0) } == [[Reported(number: 20_000, ticks: 258)]])
    }

    @Test func onlyTheWindowIsRemembered() throws {
        var feedback = TransportFeedback()
        for number in 0..<20_000 {
            feedback.receive(UInt16(number), at: MediaTime(nanoseconds: Int64(number) * 250_000))
        }
        let packets = packets(of: &feedback)
        let reported = packets.compactMap(read).flatMap(\.self)
        #expect(reported == (11_808..<20_000).map { Reported(number: UInt16($0), ticks: Int64($0)) })
        #expect(packets.allSatisfy { $0.count <= TransportFeedback.maxBytes })
    }

    @Test(arguments: [
        // Feedback with missing chunks, with missing deltas, with no status, and with too many statuses.
        "8f cd 0004" + head + "0005 0002 000001 00", "8f cd 0005" + head + "0005 0003 000001 00 2001 0000",
        "8f cd 0005" + head + "0005 0003 000001 00 2003 0000", "8f cd 0005" + head + "0005 0002 000001 00 4002 0000",
        "8f cd 0005" + head + "0005 0000 000001 00 2000 0000", "8f cd 0005" + head + "0005 ffff 000001 00 1fff 1fff",
        "8f cd 0009" + head + "0005 ffff 000001 00 1fff 1fff 1fff 1fff 1fff 1fff 1fff 1fff 1fff 1fff",
        "8f cd 0005" + head + "0005 0010 000001 00 0000 0000", "8f cd 0002" + head, "8f cd 0003" + head + "00050002",
    ])
    func feedbackWithWrongCountsIsRejected(_ text: String) {
        #expect(read(octets(text)) == nil)
    }

    @Test func aReservedStatusHasNoDelta() {
        #expect(read(octets("8f cd 0005" + Self.head + "0005 0002 000001 00 6002 0000"))?.map(\.ticks) == [nil, nil])
    }
}

/// A transport that loses, delays and duplicates packets, with the actual arrivals and those reported in its feedback.
private struct LossyTransport {
    var random: SeededGenerator
    var feedback = TransportFeedback()
    var number: Int64
    var ticks: Int64 = 1_000
    private var first: Int64?
    /// The time of each packet's first arrival, by sequence number.
    var arrived: [Int64: Int64] = [:]
    var reported: [Int64: Int64?] = [:]

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        number = .random(in: 65_536...131_071, using: &random)
    }

    mutating func send(_ count: Int) {
        let loss = Int.random(in: 0...60, using: &random)
        for _ in 0..<count {
            number += 1
            ticks += .random(in: 0...(Bool.random(using: &random) ? 20 : 400), using: &random)
            if Int.random(in: 0..<100, using: &random) < loss { continue }
            arrive(number)
            if Int.random(in: 0..<10, using: &random) == 0 { arrive(number - .random(in: 0...20, using: &random)) }
        }
    }

    private mutating func arrive(_ number: Int64) {
        // Packets from before the first received one are not reported.
        guard number >= first ?? number else { return }
        first = first ?? number
        if arrived[number] == nil { arrived[number] = ticks }
        feedback.receive(UInt16(truncatingIfNeeded: number), at: MediaTime(nanoseconds: ticks * 250_000))
    }

    /// Reads all feedback. Returns a description of the first fault, or nil if there is none.
    mutating func report() -> String? {
        while feedback.hasNews {
            let bytes = written { _ = feedback.writeFeedback(sender: 1, media: 2, to: &$0) }
            guard bytes.count <= TransportFeedback.maxBytes else { return "\(bytes.count) bytes" }
            guard let reported = read(bytes) else { return "not read" }
            for one in reported {
                let place = number + Int64(Int16(bitPattern: one.number &- UInt16(truncatingIfNeeded: number)))
                if place > number { return "\(place) was never sent" }
                if let before = self.reported[place], let before, before != one.ticks { return "\(place) moved" }
                self.reported[place] = .some(one.ticks)
            }
        }
        return nil
    }
}

@Suite struct RTCPTransportFeedbackModelTests {
    @Test func theFeedbackMatchesTheArrivals() {
        for _ in 0..<200 {
            let seed = UInt64.random(in: 0 ... .max)
            var transport = LossyTransport(seed: seed)
            for _ in 0..<8 {
                transport.send(.random(in: 1...400, using: &transport.random))
                if let wrong = transport.report() { return #expect(Bool(false), "seed \(seed): \(wrong)") }
            }
            for (number, ticks) in transport.arrived {
                let reported = transport.reported[number] ?? nil
                #expect(reported == ticks, "seed \(seed): \(number)")
            }
            let lost = transport.reported.filter { $0.value == nil }.keys
            #expect(lost.allSatisfy { transport.arrived[$0] == nil }, "seed \(seed)")
        }
    }
}
