import Foundation
import Signaling
import Testing
import Wire

/// Clients and a hub on a bad network. Resuming loses and duplicates nothing, or reports a failure.
///
/// `CONFAB_NETWORK_SEEDS` sets how many networks each test simulates. `CONFAB_NETWORK_SEED` sets the first seed, to
/// reproduce a run.
@Suite struct NetworkTests {
    /// Runs a bad network for some minutes and then a perfect one. Afterwards all clients are connected, every request
    /// is answered, and every signal sent on the perfect network reaches all members, without a gap.
    private func run(_ network: SimulatedNetwork) -> (resumes: Int, failures: Int) {
        network.run(for: .seconds(120))
        network.weather = .calm
        network.weather.absence = 0...10
        network.run(for: .seconds(90))
        network.isTalkative = false
        network.run(for: .seconds(5))
        for client in network.clients { client.speak() }
        network.run(for: .seconds(5))
        for client in network.clients {
            if !client.isAtRest { network.fail("\(client.number) is not back") }
            if !client.unanswered.isEmpty { network.fail("\(client.number) has no answer to \(client.unanswered)") }
            for other in network.clients where client.heard[other.sender] != other.said - 1 {
                network.fail(
                    "\(client.number) heard \(client.heard[other.sender] ?? -1) of \(other.sender), who said \(other.said)"
                )
            }
        }
        if network.hub.clientCount != network.clients.count {
            network.fail("\(network.hub.clientCount) clients are left")
        }
        let resumes = network.clients.map(\.resumes).reduce(0, +)
        return (resumes, network.clients.map(\.failures).reduce(0, +))
    }

    private static func setting(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    private func seeds(_ usual: Int) -> [UInt64] {
        let first = Self.setting("CONFAB_NETWORK_SEED") ?? .random(in: 0 ... .max)
        let count = Self.setting("CONFAB_NETWORK_SEEDS").map { Int(clamping: $0) } ?? usual
        print("network: \(count) seeds from \(first)")
        return (0..<count).map { first &+ UInt64($0) }
    }

    /// Runs this number of networks, which must have no fault. Returns how often clients resumed and started over.
    private func run(
        _ usual: Int, _ weather: Weather, replay: Link.Bounds = .init(), keeping: Int? = nil
    ) -> (resumes: Int, failures: Int) {
        var (resumes, failures) = (0, 0)
        for seed in seeds(usual) {
            let network = SimulatedNetwork(
                seed: seed, weather: weather, clients: 4, replay: replay, keeping: keeping)
            let result = run(network)
            resumes += result.resumes
            failures += result.failures
            #expect(network.faults == [])
        }
        print("network: \(resumes) resumes, \(failures) fresh starts")
        return (resumes, failures)
    }

    @Test func brokenSocketsLoseAndDuplicateNothing() {
        let (resumes, failures) = run(20, Weather(duplicates: 50, breaks: 15, notice: 0...5000, absence: 0...2000))
        #expect(resumes > 0)
        // Sometimes a socket breaks so often in a row that the grace period expires.
        #expect(failures * 10 <= resumes)
    }

    @Test func lostFramesAreSentAgain() {
        #expect(run(12, Weather(duplicates: 20, losses: 30, breaks: 5)).resumes > 0)
    }

    @Test func aClientThatWasAwayTooLongStartsOver() {
        #expect(run(12, Weather(breaks: 20, absence: 0...60_000)).failures > 0)
    }

    @Test func aBufferOverflowIsReported() {
        let (resumes, failures) = run(
            12, Weather(duplicates: 20, breaks: 30), replay: .init(messages: 3, bytes: 2000))
        #expect(failures > 0 && resumes > 0)
    }

    /// The clients keep so few messages that some cannot resume, and some requests cannot be sent.
    @Test func everyRequestHasOneOutcomeAndEveryEventArrivesOnceInOrder() {
        let (resumes, failures) = run(
            20, Weather(duplicates: 20, breaks: 20, delay: 1...300, notice: 0...20_000), keeping: 8)
        #expect(failures > 0 && resumes > 0)
    }

    @Test func leavingAtAnyMomentGivesEveryRequestOneOutcome() {
        for seed in seeds(60) {
            let weather = Weather(duplicates: 20, breaks: 20, delay: 1...300, notice: 0...20_000)
            let network = SimulatedNetwork(seed: seed, weather: weather, clients: 1)
            network.run(for: .milliseconds(Int64(seed % 40_000)))
            let client = network.clients[0]
            client.leave()
            network.run(for: .seconds(10))
            #expect(network.faults == [])
            #expect(client.isOver && client.unanswered == [], "seed \(seed)")
        }
    }
}
