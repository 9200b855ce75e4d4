import Foundation
import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Rings between event loops")
struct PipeRingTests {
    private struct Ends {
        let writer: PipeRingWriter
        let reader: PipeRingReader

        init() {
            let ring = PipeRing()
            (writer, reader) = (PipeRingWriter(ring), PipeRingReader(ring))
        }
    }

    /// Calls `body` with a packet of this length, whose bytes depend on the sequence number.
    private static func withPacket<Result>(
        _ sequence: Int64, length: Int, _ body: (FeedPacket) throws -> Result
    ) rethrows -> Result {
        var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: length)
        bytes.replaceSubrange(0..<12, with: [0x80, 96] + [UInt8](repeating: 0, count: 10))
        return try bytes.withUnsafeBytes { memory in
            let packet = try #require(RTPPacket(memory))
            var feedPacket = FeedPacket(
                bytes: memory, packet: packet, sequence: sequence, codec: 0, startsKeyframe: false)
            feedPacket.spare = 10
            return try body(feedPacket)
        }
    }

    @discardableResult
    private static func write(_ sequence: Int64, length: Int = 1200, to writer: PipeRingWriter) throws -> Bool {
        try withPacket(sequence, length: length) {
            writer.write($0, track: 7, feed: 2, arrivedAt: MediaTime(nanoseconds: sequence))
        }
    }

    private static func isIntact(_ piped: UnsafePointer<PipeRing.Packet>, _ sequence: Int64) -> Bool {
        let (packet, bytes) = (piped.pointee.packet, piped.pointee.packet.bytes)
        return packet.sequence == sequence && piped.pointee.track == 7 && piped.pointee.feed == 2
            && piped.pointee.arrivedAt.nanoseconds == sequence && packet.spare == 10
            && bytes.dropFirst(12).allSatisfy { $0 == UInt8(truncatingIfNeeded: sequence) }
    }

    @Test("packets and messages of all sizes arrive in order")
    func order() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let ends = Ends()
        var expected: [(sequence: Int64, isMessage: Bool)] = []
        var (next, read) = (Int64(0), 0)
        for _ in 0..<400 {
            for _ in 0..<Int.random(in: 0..<60, using: &random) {
                next += 1
                if Int.random(in: 0..<8, using: &random) == 0 {
                    ends.writer.write(.pause(UInt32(next)))
                    expected.append((next, true))
                } else if try Self.write(next, length: .random(in: 12...1472, using: &random), to: ends.writer) {
                    expected.append((next, false))
                }
            }
            _ = ends.writer.commit()
            for _ in 0..<Int.random(in: 0..<70, using: &random) {
                guard let item = ends.reader.next() else { break }
                let (sequence, isMessage) = expected[read]
                read += 1
                switch item {
                case .packet(let packet): #expect(!isMessage && Self.isIntact(packet, sequence))
                case .message(.pause(let id)): #expect(isMessage && id == UInt32(sequence))
                case .message: Issue.record("a message that was not sent")
                }
            }
            ends.reader.release()
        }
        #expect(read > 5000)
    }

    @Test("what is not committed is not visible")
    func visibility() throws {
        let ends = Ends()
        try Self.write(1, to: ends.writer)
        #expect(!ends.reader.hasMore && ends.reader.next() == nil)
        #expect(ends.writer.commit() && ends.reader.hasMore)
        #expect(!ends.writer.commit())
    }

    @Test("a full ring drops packets but keeps all messages, and continues when the reader has released memory")
    func overflow() throws {
        let ends = Ends()
        var accepted = 0
        while try Self.write(Int64(accepted), to: ends.writer) { accepted += 1 }
        #expect(accepted > 500)
        let messages = PipeRing.capacity / 32
        for index in 0..<messages { ends.writer.write(.pause(UInt32(index))) }
        _ = ends.writer.commit()
        // Messages wait now, so a packet would overtake them.
        #expect(try !Self.write(0, length: 12, to: ends.writer))
        var (packets, got) = (0, 0)
        repeat {
            while let item = ends.reader.next() {
                switch item {
                case .packet(let packet):
                    #expect(Self.isIntact(packet, Int64(packets)))
                    packets += 1
                case .message(.pause(let id)):
                    #expect(id == UInt32(got))
                    got += 1
                case .message: Issue.record("a message that was not sent")
                }
            }
            ends.reader.release()
        } while ends.writer.commit()
        #expect(packets == accepted && got == messages)
        #expect(try Self.write(1, to: ends.writer))
    }

    @Test("two threads can use the ends of a ring at the same time")
    func threads() throws {
        /// What each thread owns.
        struct Transfer: @unchecked Sendable {
            let ends = Ends()
        }
        let (transfer, count) = (Transfer(), Int64(100_000))
        let thread = Thread {
            var sequence = Int64(0)
            while sequence < count {
                let isWritten = (try? Self.write(sequence, length: 200, to: transfer.ends.writer)) ?? false
                if isWritten { sequence += 1 }
                if sequence % 16 == 0 || !isWritten { _ = transfer.ends.writer.commit() }
            }
            transfer.ends.writer.write(.end(0))
            _ = transfer.ends.writer.commit()
        }
        thread.start()
        var (sequence, isDone, intact) = (Int64(0), false, true)
        while !isDone {
            while let item = transfer.ends.reader.next() {
                switch item {
                case .packet(let packet):
                    intact = intact && Self.isIntact(packet, sequence)
                    sequence += 1
                case .message: isDone = true
                }
            }
            transfer.ends.reader.release()
        }
        #expect(sequence == count && intact)
    }

    @Test("a ring that is discarded releases the messages in it")
    func leftovers() {
        // Leaks of the messages would be found by the address sanitizer; here the memory is only walked.
        let ends = Ends()
        for index in 0..<100 { ends.writer.write(.tracks(of: Key(high: 1, low: 2), [UInt32(index)])) }
        _ = ends.writer.commit()
        _ = ends.reader.next()
        ends.reader.release()
    }

    @Test("a loop that waits is woken once, and does not wait if something has arrived")
    func bell() {
        let rings = Counter()
        let bell = PipeBell { rings.add() }
        bell.ring()
        #expect(rings.count == 0)
        #expect(!bell.beginWait { true })
        bell.ring()
        #expect(rings.count == 0)
        #expect(bell.beginWait { false })
        bell.ring()
        bell.ring()
        #expect(rings.count == 1)
        _ = bell.beginWait { false }
        bell.endWait()
        bell.ring()
        #expect(rings.count == 1)
    }

    /// Counts calls on one thread.
    private final class Counter: @unchecked Sendable {
        private(set) var count = 0
        func add() { count += 1 }
    }

    @Test("a message that was read is freed once, even if the ring ends before its memory was released")
    func endsAfterReading() {
        for round in 0..<1_000 {
            let ends = Ends()
            for number in 0..<8 { ends.writer.write(.pause(UInt32(round + number))) }
            _ = ends.writer.commit()
            for number in 0..<4 {
                guard case .message(.pause(let id))? = ends.reader.next() else {
                    Issue.record("no message")
                    return
                }
                #expect(id == UInt32(round + number))
            }
        }
    }
}
