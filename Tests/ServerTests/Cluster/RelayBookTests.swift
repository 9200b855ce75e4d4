import Cluster
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Which relays a node has")
struct RelayBookTests {
    private static let own = NodeTag(node: 2, life: 5)!
    private static let first = NodeTag(node: 1, life: 3)!
    private static let second = NodeTag(node: 1, life: 9)!
    private static let third = NodeTag(node: 3, life: 4)!

    private func node(loops: Int, versions: ClosedRange<Int> = 1...1) -> NodeRelays {
        NodeRelays(fingerprint: "00", loops: (0..<loops).map { ["192.0.2.1:\(40_000 + $0)"] }, versions: versions)
    }

    private var book: RelayBook { RelayBook(of: Self.own, node(loops: 1)) }

    private func credentials(_ index: UInt8, attempt: UInt32 = 1) -> RelayCredentials {
        RelayCredentials(index: index, attempt: attempt, ufrag: "ufrag", password: "password")
    }

    /// The lives and indices of relays that are opened, closed or passed credentials, in order.
    private func summary(_ effects: [RelayBook.Effect]) -> [String] {
        effects.map { effect in
            switch effect {
            case .open(let relay, let life, _): "open \(relay.index) to \(life)"
            case .close(let index, let life): "close \(index) to \(life)"
            case .receive(let credentials, let life): "\(credentials.index).\(credentials.attempt) of \(life)"
            case .pull(let client, let index, let life): "pull \(client.low) over \(index) from \(life)"
            case .stopPulling(let client, let index, let life): "stop \(client.low) over \(index) from \(life)"
            }
        }
    }

    @Test("it opens those to each living node when its record was read, once")
    func opening() {
        var book = book
        let records = [Self.third: node(loops: 1), Self.first: node(loops: 2)]
        #expect(summary(book.read(records)) == ["open 0 to 1-3", "open 1 to 1-3", "open 0 to 3-4"])
        #expect(book.read(records).isEmpty)
        #expect(book.counts == [.connecting: 3])
        book.noted(1, of: 1, isConnected: true)
        book.noted(7, of: 1, isConnected: true)
        book.noted(0, of: 9, isConnected: true)
        #expect(book.counts == [.connecting: 2, .connected: 1])
    }

    @Test("a record that is missing closes nothing, and one without a common version opens nothing")
    func records() {
        var book = book
        #expect(book.read([Self.first: node(loops: 1, versions: 2...3)]).isEmpty)
        #expect(book.read([Self.first: node(loops: 1, versions: 1...3)]).count == 1)
        #expect(book.read([:]).isEmpty && book.indices(to: Self.first) == [0])
    }

    @Test("it closes those to a life that is over, and does not open them again because of an old record")
    func ends() {
        var book = book
        _ = book.read([Self.first: node(loops: 2), Self.third: node(loops: 1)])
        #expect(summary(book.ended(Self.first)) == ["close 0 to 1-3", "close 1 to 1-3"])
        #expect(book.ended(Self.first).isEmpty)
        #expect(book.read([Self.first: node(loops: 2)]).isEmpty)
        #expect(book.life(of: 1) == nil && book.life(of: 3) == Self.third)
        #expect(summary(book.read([Self.second: node(loops: 1)])) == ["open 0 to 1-9"])
        #expect(summary(book.closeAll()) == ["close 0 to 1-9", "close 0 to 3-4"])
        #expect(book.counts.isEmpty)
    }

    @Test("it closes those to an earlier life of a node before it opens those to the next one")
    func nextLife() {
        var book = book
        _ = book.read([Self.first: node(loops: 2)])
        let effects = book.read([Self.second: node(loops: 1)])
        #expect(summary(effects) == ["close 0 to 1-3", "close 1 to 1-3", "open 0 to 1-9"])
        // The end of the earlier life is known only now.
        #expect(book.ended(Self.first).isEmpty && book.life(of: 1) == Self.second)
        #expect(book.read([Self.first: node(loops: 2)]).isEmpty)
    }

    @Test("credentials reach the relay of the life that has posted them, and no other")
    func received() {
        var book = book
        _ = book.read([Self.second: node(loops: 2), Self.third: node(loops: 1)])
        #expect(book.receive(credentials(1), from: Self.second) == [.receive(credentials(1), from: Self.second)])
        #expect(book.receive(credentials(1), from: Self.third).isEmpty)
        #expect(book.receive(credentials(0), from: Self.first).isEmpty)
        #expect(book.receive(credentials(0), from: Self.own).isEmpty)
        _ = book.ended(Self.second)
        #expect(book.receive(credentials(1), from: Self.second).isEmpty)
    }

    @Test("credentials that come before the record wait for it, the newest of each relay")
    func early() {
        var book = book
        for (index, attempt) in [(1, 1), (0, 2), (0, 3), (0, 2), (5, 1), (64, 1)] as [(UInt8, UInt32)] {
            #expect(book.receive(credentials(index, attempt: attempt), from: Self.second).isEmpty)
        }
        // An earlier life of the same node counts no more.
        #expect(book.receive(credentials(0, attempt: 9), from: Self.first).isEmpty)
        #expect(
            summary(book.read([Self.second: node(loops: 2)])) == [
                "open 0 to 1-9", "open 1 to 1-9", "0.3 of 1-9", "1.1 of 1-9",
            ])
        #expect(book.receive(credentials(0), from: Self.third).isEmpty)
        _ = book.ended(Self.third)
        #expect(book.read([Self.third: node(loops: 1)]).isEmpty)
    }

    // MARK: Streams of other nodes

    private func client(_ tag: NodeTag, _ low: UInt64) -> ConnectionID {
        ConnectionID(high: tag.rawValue << 24 | 5, low: low)
    }

    private func stream(_ low: UInt64) -> StreamID { StreamID(high: 1, low: low) }

    @Test("a client of another node is pulled over all relays to it while it has streams here")
    func pulling() {
        var book = book
        _ = book.read([Self.first: node(loops: 2)])
        #expect(book.published(stream(1), by: client(Self.own, 1)).isEmpty)
        #expect(book.published(stream(1), by: ConnectionID(high: 7, low: 7)).isEmpty)
        let other = client(Self.first, 8)
        #expect(summary(book.published(stream(2), by: other)) == ["pull 8 over 0 from 1-3", "pull 8 over 1 from 1-3"])
        #expect(book.published(stream(2), by: other).isEmpty && book.published(stream(3), by: other).isEmpty)
        #expect(book.unpublished(stream(2), by: other).isEmpty && book.unpublished(stream(9), by: other).isEmpty)
        let stops = book.unpublished(stream(3), by: other)
        #expect(summary(stops) == ["stop 8 over 0 from 1-3", "stop 8 over 1 from 1-3"])
        #expect(book.unpublished(stream(3), by: other).isEmpty)
    }

    @Test("if the relays are opened only later, they pull the clients then")
    func pullingLater() {
        var book = book
        for low in [UInt64(9), 8] { #expect(book.published(stream(low), by: client(Self.first, low)).isEmpty) }
        #expect(book.published(stream(1), by: client(Self.third, 1)).isEmpty)
        #expect(
            summary(book.read([Self.first: node(loops: 1)])) == [
                "open 0 to 1-3", "pull 8 over 0 from 1-3", "pull 9 over 0 from 1-3",
            ])
        // The end of the relays ends what they pull.
        #expect(summary(book.ended(Self.first)) == ["close 0 to 1-3"])
        #expect(book.unpublished(stream(8), by: client(Self.first, 8)).isEmpty)
    }

    @Test("media can cross to a node when all relays to it are connected")
    func crossing() {
        var book = book
        _ = book.read([Self.first: node(loops: 2), Self.third: node(loops: 1)])
        #expect(book.connectedLives.isEmpty)
        book.noted(0, of: 1, isConnected: true)
        book.noted(0, of: 3, isConnected: true)
        #expect(book.connectedLives == [Self.third])
        book.noted(1, of: 1, isConnected: true)
        #expect(book.connectedLives == [Self.first, Self.third])
        book.noted(0, of: 3, isConnected: false)
        #expect(book.connectedLives == [Self.first])
        _ = book.ended(Self.first)
        #expect(book.connectedLives.isEmpty)
    }
}
