import TestSupport
import Testing

@testable import RTC

/// A sink that stores the sent datagrams.
final class SentDatagrams: DatagramSink {
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
    var sent: [(bytes: [UInt8], path: Path)] = []

    deinit { memory.deallocate() }
    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer { memory }
    func send(_ count: Int, on path: Path) { sent.append((Array(memory.prefix(count)), path)) }
    func take() -> [(bytes: [UInt8], path: Path)] {
        defer { sent = [] }
        return sent
    }
}

@Suite struct ICECredentialsTests {
    @Test func aUsernameFragmentNamesItsOwner() {
        var random = SeededGenerator(seed: 1)
        var firsts: Set<Character> = []
        for owner in ICECredentials.owners {
            let credentials = ICECredentials(using: &random, owner: owner)
            #expect(ICECredentials.owner(ofUfrag: credentials.ufrag.utf8) == owner)
            #expect(ICECredentials(ufrag: credentials.ufrag, password: credentials.password) == credentials)
            #expect(credentials.ufrag.utf8.count == 9, "the rest is as random as without an owner")
            firsts.insert(credentials.ufrag.first ?? " ")
        }
        #expect(firsts.count == ICECredentials.owners.count)
        #expect(ICECredentials.owner(ofUfrag: "".utf8) == nil && ICECredentials.owner(ofUfrag: "-A".utf8) == nil)
    }
}

@Suite struct ICELiteTests {
    private let sink = SentDatagrams()
    private var random = SeededGenerator(seed: 1)
    private let ours: ICECredentials
    private let theirs: ICECredentials
    private var agent: ICELiteAgent
    private let home = Path(socket: 0, remote: TransportAddress(v4: 0x0a00_0001, port: 5000))
    private let away = Path(socket: 0, remote: TransportAddress(v4: 0x0a00_0002, port: 6000))

    init() {
        ours = ICECredentials(using: &random)
        theirs = ICECredentials(using: &random)
        agent = ICELiteAgent(local: ours, remoteUfrag: theirs.ufrag)
    }

    private func at(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    private func request(
        to name: String? = nil, password: String? = nil, _ body: (inout STUNWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: STUN.maxBytes)
        let count = memory.withUnsafeMutableBytes { memory in
            var writer = STUNWriter(memory, .request, transaction: STUNTransaction(high: 5, low: 6))
            writer.username(Array((name ?? "\(ours.ufrag):\(theirs.ufrag)").utf8))
            writer.priority(1)
            writer.controlling(tieBreaker: 1)
            body(&writer)
            return writer.finish(key: Array((password ?? ours.password).utf8))
        }
        return Array(memory.prefix(count ?? 0))
    }

    private mutating func take(_ datagram: [UInt8], on path: Path, at milliseconds: Int64 = 0) -> ICEOutcome {
        datagram.withUnsafeBytes { agent.handle($0, on: path, now: at(milliseconds), sink: sink) }
    }

    @Test mutating func aCheckIsAnsweredWithItsSourceAddress() throws {
        #expect(take(request(), on: home) == .validated)
        #expect(agent.isValidated(home) && agent.selectedPath == nil)
        let answer = try #require(sink.take().first)
        #expect(answer.path == home)
        // The response has a header, XOR-MAPPED-ADDRESS, MESSAGE-INTEGRITY and FINGERPRINT (RFC 8489), and nothing more
        // that could amplify an attack.
        #expect(answer.bytes.count == 64)
        try answer.bytes.withUnsafeBytes {
            let message = try #require(STUNMessage($0))
            #expect(message.class == .success && message.transaction == STUNTransaction(high: 5, low: 6))
            #expect(message.mappedAddress == home.remote && message.isAuthentic(Array(ours.password.utf8)))
        }
        #expect(take(request(), on: home) == .refreshed)
    }

    @Test mutating func unauthenticatedChecksGetNoResponse() {
        let stranger = "\(ours.ufrag):stranger"
        #expect(take(request(to: stranger), on: home) == .dropped(.unknownName))
        #expect(take(request(to: "\(theirs.ufrag):\(ours.ufrag)"), on: home) == .dropped(.unknownName))
        #expect(take(request(to: ours.ufrag), on: home) == .dropped(.unknownName))
        #expect(take(request(password: theirs.password), on: home) == .dropped(.unauthenticated))
        // An unknown required attribute does not cause an error response either.
        let odd = request(password: theirs.password) { $0.raw(0x7000, [1]) }
        #expect(take(odd, on: home) == .dropped(.unauthenticated))
        #expect(take([0, 1, 0, 0], on: home) == .dropped(.malformed))
        #expect(sink.sent.isEmpty && !agent.hasPath)
    }

    @Test mutating func anyRemoteUfragIsAcceptedUntilItIsKnown() {
        agent = ICELiteAgent(local: ours)
        #expect(take(request(), on: home) == .validated)
        agent.setRemote(ufrag: "another")
        #expect(take(request(), on: home) == .dropped(.unknownName))
    }

    @Test mutating func unknownRequiredAttributesAreRejected() throws {
        #expect(take(request { $0.raw(0x7001, []) }, on: home) == .refused(420))
        let answer = try #require(sink.take().first)
        try answer.bytes.withUnsafeBytes {
            let message = try #require(STUNMessage($0))
            #expect(message.class == .failure && message.errorCode == 420)
            #expect(message.isAuthentic(Array(ours.password.utf8)))
        }
        #expect(!agent.isValidated(home))
    }

    @Test mutating func aControlledPeerIsRejected() throws {
        #expect(take(request { $0.controlled(tieBreaker: .max) }, on: home) == .refused(487))
        let answer = try #require(sink.take().first)
        answer.bytes.withUnsafeBytes { #expect(STUNMessage($0)?.errorCode == 487) }
    }

    @Test mutating func theLastNominationCounts() {
        #expect(take(request { $0.useCandidate() }, on: home) == .selected)
        #expect(agent.selectedPath == home)
        #expect(take(request(), on: away) == .validated)
        #expect(agent.selectedPath == home)
        #expect(take(request { $0.useCandidate() }, on: away) == .selected)
        #expect(agent.selectedPath == away)
        #expect(take(request { $0.useCandidate() }, on: away) == .refreshed)
    }

    @Test mutating func aPathWithoutChecksExpiresAfterThirtySeconds() {
        _ = take(request { $0.useCandidate() }, on: home, at: 0)
        _ = take(request(), on: away, at: 10_000)
        #expect(agent.nextTimeout == at(30_000))
        agent.handleTimeout(now: at(29_999))
        #expect(agent.selectedPath == home)
        agent.handleTimeout(now: at(30_000))
        #expect(!agent.isValidated(home) && agent.selectedPath == away)
        agent.handleTimeout(now: at(40_000))
        #expect(agent.selectedPath == nil && !agent.hasPath && agent.nextTimeout == nil)
    }

    @Test mutating func theNumberOfPathsIsBounded() {
        _ = take(request { $0.useCandidate() }, on: home, at: 0)
        for port in 1...UInt16(100) {
            let path = Path(socket: 0, remote: TransportAddress(v4: 0x0a00_0003, port: port))
            #expect(take(request(), on: path, at: Int64(port)) == .validated)
            #expect(agent.isValidated(path))
        }
        let kept = (1...UInt16(100)).filter {
            agent.isValidated(Path(socket: 0, remote: TransportAddress(v4: 0x0a00_0003, port: $0)))
        }
        #expect(kept == Array(86...100))
        #expect(agent.isValidated(home) && agent.selectedPath == home)
    }

    @Test mutating func aRestartKeepsTheOldPathUntilANewOneIsNominated() {
        _ = take(request { $0.useCandidate() }, on: home)
        let oldCheck = request()
        let (newer, newest) = (ICECredentials(using: &random), ICECredentials(using: &random))
        agent.restart(local: newer, remoteUfrag: "new1")
        agent.restart(local: newest, remoteUfrag: "new2")
        #expect(agent.selectedPath == home && take(oldCheck, on: home, at: 10_000) == .refreshed)
        let superseded = request(to: "\(newer.ufrag):new1", password: newer.password)
        #expect(take(superseded, on: away) == .dropped(.unknownName))
        let fresh = request(to: "\(newest.ufrag):new2", password: newest.password)
        #expect(take(fresh, on: away, at: 11_000) == .validated)
        #expect(agent.selectedPath == home)
        let nomination = request(to: "\(newest.ufrag):new2", password: newest.password) { $0.useCandidate() }
        #expect(take(nomination, on: away, at: 12_000) == .selected)
        #expect(agent.selectedPath == away && !agent.isValidated(home))
        #expect(take(oldCheck, on: home, at: 13_000) == .dropped(.unknownName))
    }

    @Test mutating func aClosedConnectionLosesItsPaths() {
        let stream = Path(socket: 9, isTCP: true, remote: away.remote)
        _ = take(request(), on: home)
        _ = take(request { $0.useCandidate() }, on: stream)
        agent.remove(socket: 9)
        #expect(agent.selectedPath == home && !agent.isValidated(stream))
    }
}

@Suite struct ICEControllingTests {
    private let best = TransportAddress(v4: 0x0a00_0001, port: 40000)
    private let second = TransportAddress(v4: 0x0a00_0002, port: 40000)
    private let client = TransportAddress(v4: 0xc0a8_0001, port: 7)

    /// A lite agent and a controlling agent over a network. The lite agent's host has two addresses and prefers the
    /// first.
    private final class Pair {
        var lite: ICELiteAgent
        var controlling: ICEControllingAgent
        var random: SeededGenerator
        let network: SimulatedMediaNetwork
        let server: SimulatedHost
        let client: SimulatedHost

        init(seed: UInt64, server addresses: [TransportAddress], client: TransportAddress, _ weather: NetworkConditions)
        {
            random = SeededGenerator(seed: seed)
            let (ours, theirs) = (ICECredentials(using: &random), ICECredentials(using: &random))
            lite = ICELiteAgent(local: ours, remoteUfrag: theirs.ufrag)
            controlling = ICEControllingAgent(local: theirs, using: &random)
            controlling.setRemote(ours)
            network = SimulatedMediaNetwork(seed: seed, weather: weather)
            server = network.host()
            server.addresses = addresses
            self.client = network.host(client)
            for (index, address) in addresses.enumerated() {
                controlling.add(Path(socket: 0, remote: address), priority: UInt32(100 - index))
            }
            server.receive = { [unowned self] in
                _ = lite.handle(UnsafeRawBufferPointer($0), on: $1, now: network.now, sink: server)
            }
            server.nextTimeout = { [unowned self] in lite.nextTimeout }
            server.handleTimeout = { [unowned self] in lite.handleTimeout(now: network.now) }
            self.client.receive = { [unowned self] in
                _ = controlling.handle(
                    UnsafeRawBufferPointer($0), on: $1, now: network.now, sink: self.client, using: &random)
            }
            self.client.nextTimeout = { [unowned self] in controlling.nextTimeout }
            self.client.handleTimeout = { [unowned self] in
                controlling.handleTimeout(now: network.now, sink: self.client, using: &random)
            }
        }

        var isSelected: Bool { controlling.selectedPath != nil && lite.selectedPath != nil }
    }

    private func pair(seed: UInt64 = 1, weather: NetworkConditions = NetworkConditions()) -> Pair {
        Pair(seed: seed, server: [best, second], client: client, weather)
    }

    @Test func theBestPairThatAnswersIsNominated() {
        let pair = pair()
        #expect(pair.network.run(for: .seconds(5)) { pair.isSelected })
        #expect(pair.controlling.selectedPath?.remote == best)
        #expect(pair.lite.selectedPath == Path(socket: 0, remote: client))
    }

    @Test func aWorsePairIsNominatedAfterADelay() {
        let pair = pair()
        pair.network.filter = { [best] _, _, to in to != best }
        #expect(pair.network.run(for: .seconds(5)) { pair.isSelected })
        #expect(pair.controlling.selectedPath?.remote == second)
    }

    @Test func anAgentWithoutResponsesFails() {
        let pair = pair()
        pair.network.filter = { _, _, _ in false }
        #expect(pair.network.run(for: .seconds(20)) { pair.controlling.hasFailed })
        #expect(pair.network.sent == 2 * ICEControllingAgent.maxAttempts)
    }

    @Test func responsesFromElsewhereOrWithoutThePasswordAreDropped() {
        let pair = pair()
        // Make each response come from another address, and once more modified from the right address.
        let network = pair.network
        network.filter = { [client] bytes, from, to in
            guard to == client, from.port == 40000 else { return true }
            network.inject(bytes, from: TransportAddress(v4: from.v4, port: 40001), to: to)
            // Remove FINGERPRINT, so only MESSAGE-INTEGRITY can detect the change.
            var forged = Array(bytes.dropLast(8))
            forged[3] -= 8
            forged[forged.count - 1] ^= 1
            if bytes.count > 60 { network.inject(forged, from: from, to: to) }
            return false
        }
        network.run(for: .seconds(20))
        #expect(pair.controlling.selectedPath == nil && pair.controlling.hasFailed)
    }

    @Test func consentIsCheckedEveryFiveSecondsAndExpiresAfterThirty() {
        let pair = pair()
        #expect(pair.network.run(for: .seconds(5)) { pair.isSelected })
        let before = pair.network.sent
        pair.network.run(for: .seconds(100))
        #expect((40...52).contains(pair.network.sent - before), "\(pair.network.sent - before) datagrams")
        #expect(pair.isSelected)
        pair.network.filter = { _, _, _ in false }
        pair.network.run(for: .seconds(24))
        #expect(pair.isSelected)
        pair.network.run(for: .seconds(11))
        #expect(pair.controlling.selectedPath == nil && pair.lite.selectedPath == nil)
        // The controlling agent keeps trying for a while, so it selects a path again once the network works.
        pair.network.filter = nil
        #expect(pair.network.run(for: .seconds(5)) { pair.isSelected })
    }

    @Test(arguments: 1...UInt64(20)) func aThirdOfTheDatagramsCanBeLost(seed: UInt64) {
        let pair = pair(seed: seed, weather: NetworkConditions(losses: 300, duplicates: 100, delay: 5...150))
        #expect(pair.network.run(for: .seconds(30)) { pair.isSelected })
    }

    @Test("an authentic check from an unknown address adds a pair, and no other check does") func learnsAddresses() {
        var random = SeededGenerator(seed: 3)
        let (ours, theirs) = (ICECredentials(using: &random), ICECredentials(using: &random))
        var agent = ICEControllingAgent(local: ours, using: &random)
        agent.setRemote(theirs)
        let (sink, path) = (SentDatagrams(), Path(socket: 0, remote: best))
        func take(password: String) -> ICEOutcome {
            var bytes = [UInt8](repeating: 0, count: STUN.maxBytes)
            return bytes.withUnsafeMutableBytes { memory in
                var writer = STUNWriter(memory, .request, transaction: STUNTransaction(using: &random))
                writer.username(Array("\(ours.ufrag):\(theirs.ufrag)".utf8))
                writer.priority(1)
                let length = writer.finish(key: Array(password.utf8)) ?? 0
                return agent.handle(
                    UnsafeRawBufferPointer(rebasing: memory[..<length]), on: path, now: MediaTime(nanoseconds: 0),
                    sink: sink, using: &random)
            }
        }
        #expect(take(password: theirs.password) == .dropped(.unauthenticated))
        agent.handleTimeout(now: MediaTime(nanoseconds: 0), sink: sink, using: &random)
        #expect(sink.take().isEmpty && agent.nextTimeout == nil)
        #expect(take(password: ours.password) == .refreshed)
        #expect(sink.take().map(\.path) == [path], "the check is answered")
        agent.handleTimeout(now: MediaTime(nanoseconds: 0), sink: sink, using: &random)
        #expect(sink.take().map(\.path) == [path], "the new pair is checked")
        #expect(!agent.isValidated(path))
    }

    /// A phone has other addresses after each change of its network.
    @Test func pairsOfFormerNetworksLeaveSpaceForTheNextOne() {
        let pair = pair()
        #expect(pair.network.run(for: .seconds(5)) { pair.isSelected })
        let selected = pair.controlling.selectedPath
        for change in 1...5 {
            let (ours, theirs) = (ICECredentials(using: &pair.random), ICECredentials(using: &pair.random))
            pair.controlling.restart(local: ours, remote: theirs)
            #expect(pair.controlling.selectedPath == selected, "media continues until there is another path")
            for number in 0..<8 {
                pair.controlling.add(network(change, number), priority: 1)
            }
        }
        let sink = SentDatagrams()
        #expect(checked(by: pair, sink) == Set((0..<8).map { network(5, $0) } + [selected].compactMap { $0 }))
    }

    @Test func aPairThatFailedGivesWayToANewOne() {
        let (pair, sink) = (pair(), SentDatagrams())
        // With the two addresses of the server, the list is full.
        for number in 2..<ICEControllingAgent.maxPairs { pair.controlling.add(network(1, number), priority: 1) }
        pair.controlling.add(network(2, 0), priority: 1)
        #expect(!checked(by: pair, sink).contains(network(2, 0)), "none has failed, so there is no space")
        #expect(pair.controlling.hasFailed)
        pair.controlling.add(network(2, 0), priority: 1)
        #expect(checked(by: pair, sink) == [network(2, 0)])
    }

    private func network(_ network: Int, _ number: Int) -> Path {
        Path(socket: 0, remote: TransportAddress(v4: 0x0a00_0000 + UInt32(network << 8 + number + 16), port: 9))
    }

    /// Lets time pass until nothing is left to do, without any response, and returns which paths were checked.
    private func checked(by pair: Pair, _ sink: SentDatagrams) -> Set<Path> {
        var now = pair.network.now
        let end = now + .seconds(60)
        while let next = pair.controlling.nextTimeout, next < end {
            now = max(now, next)
            pair.controlling.handleTimeout(now: now, sink: sink, using: &pair.random)
        }
        return Set(sink.take().map(\.path))
    }

    @Test func randomDatagramsNeverTrapAnAgent() {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        let pair = pair(seed: seed)
        var captured: [[UInt8]] = []
        pair.network.filter = { bytes, _, _ in
            captured.append(bytes)
            return true
        }
        #expect(pair.network.run(for: .seconds(5)) { pair.isSelected })
        var random = SeededGenerator(seed: seed)
        for round in 0..<20_000 {
            var bytes = captured[round % captured.count]
            // Modify every datagram. An eavesdropper can replay requests (RFC 8445 §19.2 offers no remedy), but must
            // not be able to modify them.
            bytes[Int.random(in: 8..<bytes.count - 8, using: &random)] ^= .random(in: 1...255, using: &random)
            if round % 2 == 0, bytes.count > 28 {
                // Remove FINGERPRINT, so the datagram passes the first check.
                bytes.removeLast(8)
                bytes[3] = UInt8(truncatingIfNeeded: bytes.count - 20)
            }
            bytes.withUnsafeBytes {
                let path = Path(socket: 0, remote: best)
                _ = pair.lite.handle($0, on: path, now: pair.network.now, sink: pair.server)
                _ = pair.controlling.handle(
                    $0, on: path, now: pair.network.now, sink: pair.client, using: &pair.random)
            }
        }
        #expect(!pair.lite.isValidated(Path(socket: 0, remote: best)))
    }
}
