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
            case .report(let fault, let relay, let life): "\(fault): \(relay.index) to \(life) at \(relay.addresses)"
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
        _ = book.noted(1, of: Self.first, isConnected: true)
        _ = book.noted(7, of: Self.first, isConnected: true)
        _ = book.noted(0, of: Self.second, isConnected: true)
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
        #expect(book.indices(to: Self.first).isEmpty && book.indices(to: Self.third) == [0])
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
        #expect(book.ended(Self.first).isEmpty && book.indices(to: Self.second) == [0])
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

    // MARK: Relays that do not connect

    /// An event of the relay with index 0 to the node of `first`.
    private enum Event {
        /// This end begins an attempt.
        case begins(UInt32)
        /// The credentials of the other end arrive.
        case letter(UInt32)
        case connects, breaks
    }

    /// Returns the reports after each event, without empty ones.
    private func reports(_ events: [Event]) -> [String] {
        var book = book
        _ = book.read([Self.first: node(loops: 1)])
        return events.enumerated().flatMap { number, event -> [String] in
            var effects: [RelayBook.Effect] = []
            switch event {
            case .begins(let attempt): effects = book.began(attempt, 0, of: Self.first)
            case .letter(let attempt): _ = book.receive(credentials(0, attempt: attempt), from: Self.first)
            case .connects: _ = book.noted(0, of: Self.first, isConnected: true)
            case .breaks: _ = book.noted(0, of: Self.first, isConnected: false)
            }
            return summary(effects).map { "\(number) \($0)" }
        }
    }

    @Test("a relay whose datagrams do not arrive is reported after three attempts, once")
    func blocked() {
        let attempts = (1...9 as ClosedRange<UInt32>).flatMap { [Event.begins($0), .letter($0)] }
        #expect(reports(attempts) == ["6 unreachable: 0 to 1-3 at [\"192.0.2.1:40000\"]"])
        // The other end's letter may come first, and may let this end begin.
        let follower = (1...9 as ClosedRange<UInt32>).flatMap { [Event.letter($0), .begins($0)] }
        #expect(reports(follower) == ["7 unreachable: 0 to 1-3 at [\"192.0.2.1:40000\"]"])
    }

    @Test("a node that does not answer is reported, and a later answer without media is reported as unreachable")
    func unanswered() {
        let silent = (1...5 as ClosedRange<UInt32>).map { Event.begins($0) }
        // A late letter of an earlier attempt is no answer.
        let late = silent.flatMap { [$0, .letter(1)] }.dropFirst(2)
        for events in [silent, Array(late)] {
            let report = reports(events).map { $0.drop { $0 != "u" } }
            #expect(report == ["unanswered: 0 to 1-3 at [\"192.0.2.1:40000\"]"])
        }
        let answered = (6...9 as ClosedRange<UInt32>).flatMap { [Event.begins($0), .letter($0)] }
        #expect(reports(silent + answered).map { $0.prefix(9) } == ["3 unanswe", "11 unreac"])
    }

    @Test("a relay that connects after its report can be reported again, and one that connects in time is not")
    func connectedLater() {
        let failures = (1...4 as ClosedRange<UInt32>).flatMap { [Event.begins($0), .letter($0)] }
        let again = (5...8 as ClosedRange<UInt32>).flatMap { [Event.begins($0), .letter($0)] }
        let outage: [Event] = [.connects, .breaks]
        #expect(reports(failures + outage + again).count == 2)
        // An attempt that had connected does not count as failed.
        #expect(reports(failures + outage + again.dropLast(2)).count == 1)
        let flapping = (1...20 as ClosedRange<UInt32>).flatMap {
            [Event.begins($0), .letter($0), $0 % 3 == 0 ? .connects : .breaks]
        }
        #expect(reports(flapping).isEmpty)
    }

    @Test("only a change of a relay's state is reported as one")
    func changes() {
        var book = book
        _ = book.read([Self.first: node(loops: 1)])
        #expect(book.noted(0, of: Self.first, isConnected: false) == false)
        #expect(book.noted(0, of: Self.first, isConnected: true) == true)
        #expect(book.noted(0, of: Self.first, isConnected: true) == false)
        #expect(book.noted(0, of: Self.first, isConnected: false) == true)
        #expect(book.noted(1, of: Self.first, isConnected: true) == false)
        #expect(book.noted(0, of: Self.third, isConnected: true) == false)
        #expect(book.began(1, 1, of: Self.first).isEmpty && book.began(1, 0, of: Self.third).isEmpty)
    }

    @Test("late events about a relay to an earlier life of a node have no effect")
    func earlierLife() {
        var book = book
        _ = book.read([Self.first: node(loops: 1)])
        _ = book.began(1, 0, of: Self.first)
        #expect(book.noted(0, of: Self.first, isConnected: true) == true)
        _ = book.read([Self.second: node(loops: 1)])
        let before = book
        #expect(book.receive(credentials(0, attempt: 99), from: Self.first) == [])
        #expect(book.noted(0, of: Self.first, isConnected: true) == false)
        for attempt in 2...9 as ClosedRange<UInt32> { #expect(book.began(attempt, 0, of: Self.first) == []) }
        #expect(book == before && book.counts == [.connecting: 1] && book.connectedLives == [])
    }

    @Test("operators see the relays to each life: their number, why they do not connect, and losses")
    func states() {
        var book = book
        #expect(book.states.isEmpty)
        _ = book.read([Self.first: node(loops: 2), Self.third: node(loops: 1)])
        #expect(book.states[Self.first] == relayStates(connecting: 2))
        #expect(book.states[Self.third] == relayStates(connecting: 1))
        for attempt in 1...4 as ClosedRange<UInt32> {
            #expect(book.states[Self.first]?.fault == nil)
            _ = book.began(attempt, 1, of: Self.first)
            _ = book.receive(credentials(1, attempt: attempt), from: Self.first)
        }
        _ = book.noted(0, of: Self.first, isConnected: true)
        #expect(book.states[Self.first] == relayStates(connected: 1, connecting: 1, fault: .unreachable))
        _ = book.noted(1, of: Self.first, isConnected: true)
        book.thinned(1, of: Self.first, layers: 2)
        book.thinned(0, of: Self.second, layers: 2)
        book.thinned(7, of: Self.first, layers: 2)
        #expect(book.states[Self.first] == relayStates(connected: 2, thinned: 1))
        // What an interrupted relay carried no longer matters.
        _ = book.noted(1, of: Self.first, isConnected: false)
        #expect(book.states[Self.first] == relayStates(connected: 1, connecting: 1))
        _ = book.noted(1, of: Self.first, isConnected: true)
        book.thinned(1, of: Self.first, layers: 0)
        #expect(book.states[Self.first] == relayStates(connected: 2))
        _ = book.ended(Self.first)
        #expect(book.states == [Self.third: relayStates(connecting: 1)])
    }

    @Test("the state has the fault of the last failed attempt, also if it was reported before")
    func faultOfTheLastAttempt() {
        var book = book
        _ = book.read([Self.first: node(loops: 1)])
        // Attempts 1 to 4 and 9 are answered, 5 to 8 are not.
        for attempt in 1...10 as ClosedRange<UInt32> {
            _ = book.began(attempt, 0, of: Self.first)
            if !(5...8).contains(attempt) { _ = book.receive(credentials(0, attempt: attempt), from: Self.first) }
            let fault: RelayFault? = attempt < 4 ? nil : (8...9).contains(attempt) ? .unanswered : .unreachable
            #expect(book.states[Self.first]?.fault == fault, "attempt \(attempt)")
        }
    }

    private func relayStates(
        connected: Int = 0, connecting: Int = 0, thinned: Int = 0, fault: RelayFault? = nil
    ) -> RelayStates {
        var states = RelayStates()
        (states.connected, states.connecting) = (connected, connecting)
        (states.thinned, states.fault) = (thinned, fault)
        return states
    }

    @Test("a report says what to open", arguments: [RelayFault.unreachable, .unanswered])
    func reportTexts(_ fault: RelayFault) {
        let text = fault.text(node: 7)
        #expect(text.contains("node 7 ") && !text.contains("\n") && text.contains("  ") == false)
        #expect(text.contains("UDP") == (fault == .unreachable) && text.contains("Redis") == (fault == .unanswered))
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
        _ = book.noted(0, of: Self.first, isConnected: true)
        _ = book.noted(0, of: Self.third, isConnected: true)
        #expect(book.connectedLives == [Self.third])
        _ = book.noted(1, of: Self.first, isConnected: true)
        #expect(book.connectedLives == [Self.first, Self.third])
        _ = book.noted(0, of: Self.third, isConnected: false)
        #expect(book.connectedLives == [Self.first])
        _ = book.ended(Self.first)
        #expect(book.connectedLives.isEmpty)
    }
}
