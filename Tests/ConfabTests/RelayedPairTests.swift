import TestSupport
import Testing
import Wire

@testable import Confab

@Suite("Relayed media between two ends over a bad network")
struct RelayedPairTests {
    @Test("whatever is lost, both ends agree on one connection in the end, and no answer meets another offer")
    func agreement() {
        for seed in 1...1000 as ClosedRange<UInt64> {
            var pair = SimulatedPair(seed: seed)
            pair.run(for: .seconds(300))
            #expect(pair.faults.isEmpty, "seed \(seed): \(pair.faults)")
            #expect(pair.isConnected, "seed \(seed)")
            #expect(pair.ends.allSatisfy { $0.peer.phase == .idle && !$0.peer.negotiation.isOffering }, "seed \(seed)")
            if !pair.faults.isEmpty || !pair.isConnected { return }
        }
    }
}

/// Two ends with models of engines, which check that each step fits the state of the connection.
private struct SimulatedPair {
    struct End {
        var peer: RelayedPeer
        /// The engine's connection, unique in the simulation.
        var connection = 0
        /// The other end's connection in the description that was applied last.
        var remote: Int?
        /// The text of the own offer that has no answer.
        var offer: String?
        /// Reports count connections of this end from 1.
        var count = 0
        var isBusyUntil: Timestamp
    }

    private enum Happening {
        case input(RelayedPeer.Input)
        case step(PeerStep)
        case loss
    }

    private(set) var ends: [End] = []
    private(set) var faults: [String] = []
    private var agenda: [(at: Timestamp, end: Int, happening: Happening)] = []
    private var now = Timestamp(milliseconds: 0)
    private var random: SeededGenerator
    private var connections = 0
    private var versions = 0
    /// Until when messages are lost.
    private let calm = Timestamp(milliseconds: 40_000)

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        for isPolite in [true, false] {
            let peer = RelayedPeer(isPolite: isPolite, random: SeededGenerator(seed: random.next()))
            ends.append(End(peer: peer, isBusyUntil: now))
        }
        let source = MediaSource(media: FakeMedia())
        let publishers = [[0], [1], [0, 1]][Int.random(in: 0...2, using: &random)]
        for end in publishers {
            let stream = StreamID(high: 1, low: UInt64(end))
            let outgoing = RelayedPeer.Outgoing(audio: source, video: source)
            plan(.input(.send(stream, outgoing)), of: end, in: 0...5000)
            plan(.input(.expect), of: 1 - end, in: 0...5000)
            guard Bool.random(using: &random) else { continue }
            plan(.input(.stopSending(stream)), of: end, in: 5001...20_000)
            plan(.input(.send(stream, outgoing)), of: end, in: 20_001...30_000)
        }
        if Bool.random(using: &random) { plan(.loss, of: 0, in: 10_000...40_000) }
    }

    var isConnected: Bool {
        ends[0].remote == ends[1].connection && ends[1].remote == ends[0].connection
            && ends.allSatisfy { $0.peer.state == .connected }
    }

    mutating func run(for duration: Duration) {
        let end = now + duration
        while true {
            let timers = ends.indices.compactMap { index in ends[index].peer.nextTimeout.map { (at: $0, end: index) } }
            let timer = timers.min { $0.at < $1.at }
            let first = agenda.first
            guard let next = [timer?.at, first?.at].compactMap({ $0 }).min(), next <= end else { return }
            now = max(now, next)
            if let first, first.at <= timer?.at ?? first.at {
                agenda.removeFirst()
                happen(first.happening, at: first.end)
            } else if let timer {
                carryOut(ends[timer.end].peer.handleTimeout(now: now), of: timer.end)
            }
        }
    }

    private mutating func plan(_ happening: Happening, of end: Int, in range: ClosedRange<Int>) {
        insert(happening, of: end, at: now + .milliseconds(Int.random(in: range, using: &random)))
    }

    private mutating func insert(_ happening: Happening, of end: Int, at time: Timestamp) {
        let place = agenda.lastIndex { $0.at <= time }.map { $0 + 1 } ?? 0
        agenda.insert((time, end, happening), at: place)
    }

    private mutating func happen(_ happening: Happening, at end: Int) {
        switch happening {
        case .input(let input): carryOut(ends[end].peer.handle(input, now: now), of: end)
        case .step(let step): take(step, at: end)
        case .loss: for end in ends.indices { report(.event(.state(.failed)), of: end) }
        }
    }

    private mutating func carryOut(_ effects: [RelayedPeer.Effect], of end: Int) {
        for effect in effects {
            switch effect {
            case .step(let step):
                // Steps take time, and one follows the other.
                let start = max(now, ends[end].isBusyUntil)
                let time = start + .milliseconds(Int.random(in: 1...50, using: &random))
                ends[end].isBusyUntil = time
                insert(.step(step), of: end, at: time)
            case .post(let message):
                if now < calm, Int.random(in: 0..<100, using: &random) < 30 { continue }
                plan(.input(.received(message)), of: 1 - end, in: 1...400)
            case .state, .arrived, .firstFrame, .failed, .notSent: break
            }
        }
    }

    private mutating func report(_ report: PeerReport, of end: Int) {
        let input = RelayedPeer.Input.report(report, connection: ends[end].count)
        carryOut(ends[end].peer.handle(input, now: now), of: end)
    }

    /// Does what an engine does. Descriptions name the connections of both ends, and answers their offers.
    private mutating func take(_ step: PeerStep, at end: Int) {
        switch step {
        case .open:
            connections += 1
            ends[end].count += 1
            (ends[end].connection, ends[end].remote, ends[end].offer) = (connections, nil, nil)
            report(.opened, of: end)
        case .offer(let isRestarting):
            if ends[end].offer != nil { faults.append("an offer follows an offer without an answer") }
            versions += 1
            let text = "o=- \(ends[end].connection) \(versions)"
            ends[end].offer = text
            report(.offered(text, mids: [:]), of: end)
            if isRestarting { connect() }
        case .answer(let offer, let isRollingBack):
            if (ends[end].offer != nil) != isRollingBack { faults.append("an offer was taken back wrongly") }
            guard let theirs = RelayedPeer.origin(of: offer).flatMap({ Int($0) }) else { return }
            // As in WebRTC, a connection cannot go on with another one.
            if let remote = ends[end].remote, remote != theirs {
                return report(.failed(.noPeer), of: end)
            }
            (ends[end].offer, ends[end].remote) = (nil, theirs)
            report(.answered("o=- \(ends[end].connection) 0\n\(offer)"), of: end)
            connect()
        case .accept(let answer):
            let parts = answer.split(separator: "\n").map(String.init)
            if parts.last != ends[end].offer { faults.append("an answer met another offer") }
            (ends[end].offer, ends[end].remote) = (nil, RelayedPeer.origin(of: answer).flatMap { Int($0) })
            report(.accepted, of: end)
            connect()
        case .close, .add, .replace, .setDirection, .activate, .refreshServers, .candidate, .find, .expectFrame: break
        }
    }

    /// Media works as soon as each end has the other's present connection.
    private mutating func connect() {
        guard ends[0].remote == ends[1].connection, ends[1].remote == ends[0].connection else { return }
        for end in ends.indices where ends[end].peer.state != .connected {
            report(.event(.state(.connected)), of: end)
        }
    }
}
