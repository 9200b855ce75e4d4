import Foundation
import Testing
import Wire

@testable import Confab

/// Runs a closure when it is released.
private final class Probe: Sendable {
    private let released: @Sendable () -> Void
    init(_ released: @escaping @Sendable () -> Void) { self.released = released }
    deinit { released() }
}

/// Objects are released outside the locks of those that held them: what runs then may take the same locks.
@Suite("Releasing objects")
struct ReleasingTests {
    @Test("a listener of a connection may hold the last reference to the registration of another one")
    func listeners() {
        let network = SimulatedNetwork(seed: 1)
        let core = ClientCore(
            url: URL(string: "ws://simulated/v1/socket"), credential: .anonymous(MemoryIdentity()), hello: Hello(),
            media: nil, options: ConfabClient.Options(), dependencies: network.dependencies)
        let released = LockedValue(0)
        let inner = LockedValue<Listening?>(core.listen { _ in })
        let probe = LockedValue<Probe?>(Probe { released.withLock { $0 += 1 } })
        var outer: Listening? = core.listen { [inner = inner.withLock(\.self), probe = probe.withLock(\.self)] _ in
            withExtendedLifetime((inner, probe)) {}
        }
        inner.withLock { $0 = nil }
        probe.withLock { $0 = nil }
        #expect(outer != nil && released.withLock(\.self) == 0)
        outer = nil
        #expect(released.withLock(\.self) == 1)
    }

    @Test("an object in an event may use the events when it is released")
    func events() async {
        let source = EventSource<Probe>()
        let iterator = source.events.makeAsyncIterator()
        let released = LockedValue(0)
        for _ in 0..<200 {
            source.send(
                Probe {
                    #expect(iterator.failure == nil)
                    released.withLock { $0 += 1 }
                })
        }
        for _ in 0..<200 { #expect(await iterator.next() != nil) }
        #expect(released.withLock(\.self) == 200)
    }

    @Test("media in an initial event may read the events while a newer event replaces it")
    func presentEvents() {
        let source = EventSource<Probe>(holdsMedia: true) { present, event in present = [event] }
        let counts = LockedValue<[Int]>([])
        for _ in 0..<3 {
            source.send(
                Probe { [weak source] in
                    let count = source?.present.count ?? 0
                    counts.withLock { $0.append(count) }
                })
        }
        #expect(counts.withLock(\.self) == [1, 1])
    }
}
