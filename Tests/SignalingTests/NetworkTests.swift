import Signaling
import Testing
import Wire

/// Client and hub over a bad network: resuming loses nothing and repeats nothing, or says so.
@Suite struct NetworkTests {
    /// Bad weather for some minutes, then calm: everybody is back, every request is answered, and whoever speaks is heard by
    /// all from the first word of the calm to the last, without a word lost on the way there.
    private func run(seed: UInt64, _ weather: Weather, replay: Link.Bounds = .init()) -> (network: SimulatedNetwork, resumes: Int, failures: Int) {
        let network = SimulatedNetwork(seed: seed, weather: weather, clients: 4, replay: replay)
        network.run(for: .seconds(180))
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
                network.fail("\(client.number) heard \(client.heard[other.sender] ?? -1) of \(other.sender), who said \(other.said)")
            }
        }
        if network.hub.clientCount != network.clients.count { network.fail("\(network.hub.clientCount) clients are left") }
        let resumes = network.clients.map(\.resumes).reduce(0, +)
        return (network, resumes, network.clients.map(\.failures).reduce(0, +))
    }

    private func seeds(_ count: Int) -> [UInt64] {
        let first = UInt64.random(in: 0 ... .max)
        print("network: \(count) seeds from \(first)")
        return (0..<count).map { first &+ UInt64($0) }
    }

    @Test func brokenSocketsLoseNothingAndRepeatNothing() {
        var (resumes, failures) = (0, 0)
        for seed in seeds(60) {
            let result = run(seed: seed, Weather(duplicates: 50, breaks: 20))
            resumes += result.resumes
            failures += result.failures
            #expect(result.network.faults == [])
        }
        print("network: \(resumes) resumes, \(failures) fresh starts")
        #expect(resumes > 100)
        #expect(failures == 0, "nobody was away for longer than the grace, or too long for the buffer")
    }

    @Test func framesThatVanishAreSaidAgain() {
        var resumes = 0
        for seed in seeds(40) {
            let result = run(seed: seed, Weather(duplicates: 20, losses: 30, breaks: 5))
            resumes += result.resumes
            #expect(result.network.faults == [])
        }
        print("network: \(resumes) resumes")
        #expect(resumes > 100)
    }

    @Test func whoeverWasAwayTooLongBeginsAnewAndIsToldSo() {
        var (resumes, failures) = (0, 0)
        for seed in seeds(40) {
            let result = run(seed: seed, Weather(breaks: 20, absence: 0...60_000))
            resumes += result.resumes
            failures += result.failures
            #expect(result.network.faults == [])
        }
        print("network: \(resumes) resumes, \(failures) fresh starts")
        #expect(failures > 20)
    }

    @Test func aBufferTooSmallIsSaidAndNeverPassedOverInSilence() {
        var (resumes, failures) = (0, 0)
        for seed in seeds(40) {
            let result = run(seed: seed, Weather(duplicates: 20, breaks: 30), replay: .init(messages: 3, bytes: 2000))
            resumes += result.resumes
            failures += result.failures
            #expect(result.network.faults == [])
        }
        print("network: \(resumes) resumes, \(failures) fresh starts")
        #expect(failures > 20)
        #expect(resumes > 20)
    }
}
