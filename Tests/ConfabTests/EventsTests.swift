import TestSupport
import Testing

@testable import Confab

@Suite("Events")
struct EventsTests {
    @Test("an iteration begins with the present state and then gets each newer one")
    func presentFirst() async {
        let source = EventSource(state: 1)
        source.send(2)
        let iterator = source.events.makeAsyncIterator()
        #expect(await iterator.next() == 2)
        source.send(3)
        source.send(4)
        #expect(await iterator.next() == 4)
        source.finish()
        #expect(await iterator.next() == nil)
        #expect(iterator.failure == nil)
    }

    @Test("events are kept in order for a consumer that is busy, and a consumer that is too slow is notified")
    func slowConsumer() async {
        let source = EventSource<Int>()
        let iterator = source.events.makeAsyncIterator()
        for number in 0..<Events<Int>.maxUnread { source.send(number) }
        #expect(await iterator.next() == 0)
        source.send(1000)
        source.send(1001)
        source.send(1002)
        for number in 1..<Events<Int>.maxUnread { #expect(await iterator.next() == number) }
        #expect(await iterator.next() == 1000)
        #expect(await iterator.next() == nil)
        #expect(iterator.failure?.code == .slowConsumer)
    }

    @Test("an iteration that begins with many present events keeps as many new ones as any other")
    func largeState() async {
        let source = EventSource<Int> { present, event in if event < 1000 { present.append(event) } }
        let early = source.events.makeAsyncIterator()
        for number in 0..<1000 { source.send(number) }
        let late = source.events.makeAsyncIterator()
        for number in 1000..<1000 + Events<Int>.maxUnread { source.send(number) }
        source.finish()
        for iterator in [early, late] {
            var next = 0
            while let number = await iterator.next() {
                #expect(number == next)
                next += 1
            }
            #expect(next == 1000 + Events<Int>.maxUnread)
            #expect(iterator.failure == nil)
        }
    }

    @Test("each iteration has its own copy of every event")
    func copies() async {
        let source = EventSource<Int>()
        let (first, second) = (source.events.makeAsyncIterator(), source.events.makeAsyncIterator())
        source.send(1)
        #expect(await first.next() == 1)
        #expect(await second.next() == 1)
    }

    @Test("an iteration that is released or canceled is unsubscribed")
    func unsubscribing() async throws {
        let source = EventSource<Int>()
        do { _ = source.events.makeAsyncIterator() }
        #expect(source.subscriptionCount == 0)
        let events = source.events
        let task = Task {
            var count = 0
            for await _ in events { count += 1 }
            return count
        }
        try await until("the task reads events") { source.subscriptionCount > 0 }
        task.cancel()
        #expect(await task.value == 0)
        #expect(source.subscriptionCount == 0)
    }

    @Test("an iteration ends when its source is released")
    func releasedSource() async {
        var source: EventSource<Int>? = EventSource()
        let iterator = source!.events.makeAsyncIterator()
        source = nil
        #expect(await iterator.next() == nil)
    }
}
