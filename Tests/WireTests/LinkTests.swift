import TestSupport
import Testing
import Wire

@Suite struct LinkTests {
    /// Sends a message with this many bytes. Its first byte is the message's number.
    @discardableResult
    private func send(_ link: inout Link, size: Int = 1) -> [UInt8] {
        link.send { seq, _ in [UInt8(truncatingIfNeeded: seq)] + [UInt8](repeating: 0, count: size - 1) }
    }

    private func numbers(_ messages: [[UInt8]]?) -> [UInt8]? { messages?.map { $0[0] } }

    @Test func messagesAreNumberedFromOneAndAcknowledge() {
        var link = Link()
        var seen: [[UInt64]] = []
        _ = link.receive(seq: 1)
        for _ in 0..<3 {
            _ = link.send { seq, ack in
                seen.append([seq, ack])
                return []
            }
            _ = link.receive(seq: link.received + 1)
        }
        #expect(seen == [[1, 1], [2, 2], [3, 3]])
    }

    @Test func aNumberIsDeliveredOnceAndInOrder() {
        var link = Link()
        #expect(link.receive(seq: 1) == .deliver)
        #expect(link.receive(seq: 1) == .duplicate)
        #expect(link.receive(seq: 3) == .gap)
        #expect(link.received == 1, "a message after a gap is not accepted")
        #expect(link.receive(seq: 2) == .deliver)
        #expect(link.receive(seq: 1) == .duplicate)
        #expect(link.receive(seq: .max) == .gap)
        #expect(link.receive(seq: 0) == .duplicate)
        #expect(link.received == 2)
    }

    @Test func replayReturnsUnreceivedMessagesInOrder() {
        var link = Link()
        for _ in 0..<5 { send(&link) }
        #expect(numbers(link.replay(after: 2)) == [3, 4, 5])
        #expect(numbers(link.replay(after: 2)) == [3, 4, 5], "a replay can be lost too")
        #expect(numbers(link.replay(after: 5)) == [])
        #expect(link.replay(after: 6) == nil, "unsent messages cannot be acknowledged")
        #expect(link.replay(after: 4) == nil, "acknowledged messages are not replayed")
    }

    @Test func acknowledgedMessagesAreForgotten() {
        var link = Link()
        for _ in 0..<5 { send(&link) }
        link.acknowledged(upTo: 3)
        #expect(link.replay(after: 2) == nil)
        #expect(numbers(link.replay(after: 3)) == [4, 5])
    }

    @Test func acknowledgingUnsentMessagesIsIgnored() {
        var link = Link()
        send(&link)
        link.acknowledged(upTo: 2)
        link.acknowledged(upTo: .max)
        #expect(numbers(link.replay(after: 0)) == [1])
        link.acknowledged(upTo: 1)
        link.acknowledged(upTo: 0)
        #expect(link.replay(after: 0) == nil)
    }

    @Test func keptMessagesAreLimited() {
        var link = Link(bounds: .init(messages: 4, bytes: 1000))
        for _ in 0..<4 { send(&link) }
        #expect(numbers(link.replay(after: 0)) == [1, 2, 3, 4])
        send(&link)
        #expect(link.replay(after: 0) == nil, "the first message is lost, and the loss is reported")
        #expect(numbers(link.replay(after: 1)) == [2, 3, 4, 5])
    }

    @Test func keptBytesAreLimitedExceptForTheNewestMessage() {
        var link = Link(bounds: .init(messages: 100, bytes: 10))
        send(&link, size: 5)
        send(&link, size: 5)
        #expect(numbers(link.replay(after: 0)) == [1, 2])
        send(&link, size: 50)
        #expect(link.replay(after: 1) == nil)
        #expect(numbers(link.replay(after: 2)) == [3])
        send(&link, size: 1)
        #expect(numbers(link.replay(after: 3)) == [4])
        #expect(link.replay(after: 2) == nil)
    }

    @Test func receiptsAreCountedUntilTheyAreAcknowledged() {
        var link = Link()
        for seq in 1...3 { _ = link.receive(seq: UInt64(seq)) }
        _ = link.receive(seq: 2)
        #expect(link.unacknowledgedReceipts == 3, "a duplicate is not counted")
        #expect(link.acknowledge() == 3)
        #expect(link.unacknowledgedReceipts == 0)
        _ = link.receive(seq: 4)
        send(&link)
        #expect(link.unacknowledgedReceipts == 0, "every numbered message acknowledges the received ones")
    }

    /// Compares the link with a plain list. A bug is most likely where the link compacts its array, which is rare.
    @Test func aLinkBehavesLikeAPlainList() {
        let seed = UInt64.random(in: 0 ... .max)
        print("link: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<40 {
            let bounds = Link.Bounds(
                messages: .random(in: 1...300, using: &generator), bytes: .random(in: 1...2000, using: &generator))
            var link = Link(bounds: bounds)
            var list: [(seq: UInt64, bytes: [UInt8])] = []
            var (sent, acknowledged): (UInt64, UInt64) = (0, 0)
            for _ in 0..<600 {
                if Int.random(in: 0..<4, using: &generator) > 0 {
                    sent += 1
                    let bytes = send(&link, size: .random(in: 1...40, using: &generator))
                    list.append((sent, bytes))
                    while list.count > 1,
                        list.count > bounds.messages || list.map(\.bytes.count).reduce(0, +) > bounds.bytes
                    {
                        list.removeFirst()
                    }
                } else {
                    let ack = UInt64.random(in: 0...(sent + 1), using: &generator)
                    link.acknowledged(upTo: ack)
                    if ack <= sent { acknowledged = max(acknowledged, ack) }
                    list.removeAll { $0.seq <= acknowledged }
                }
                let after = UInt64.random(in: acknowledged...sent, using: &generator)
                let isKept = after == sent || list.first.map { $0.seq <= after + 1 } ?? false
                let expected = isKept ? list.filter { $0.seq > after }.map(\.bytes) : nil
                var copy = link
                #expect(copy.replay(after: after) == expected, "seed \(seed)")
            }
        }
    }
}
