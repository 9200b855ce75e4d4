import Cluster
import Testing

@Suite("Whether clients reach a node") struct DoorWatchTests {
    private func at(_ seconds: Double) -> Instant { Instant(.milliseconds(Int64(seconds * 1000))) }

    /// What a node notes in 140 seconds.
    private struct Script {
        /// When the load balancer asks this node, and another one; when clients send something. In seconds.
        var isChecked: (Int) -> Bool = { _ in true }
        var isOtherChecked: (Int) -> Bool = { _ in true }
        var isHeard: (Int) -> Bool = { _ in true }
        var pingInterval = Duration.seconds(10)
        var clients = 3
    }

    /// Returns the first second at which the node is cut off; nil if it never is.
    private func cutOff(_ script: Script) -> Int? {
        var watch = DoorWatch(pingInterval: script.pingInterval, at: at(0))
        var (checks, heard, otherAt) = (UInt64(0), UInt64(0), nil as Int?)
        for second in 1...140 {
            if script.isChecked(second) { checks += 1 }
            if script.isHeard(second) { heard += 1 }
            if script.isOtherChecked(second) { otherAt = second }
            let other = otherAt.map { Duration.seconds(second - $0) }
            watch.note(checks: checks, heard: heard, others: [nil, other], at: at(Double(second)))
            if watch.isCutOff(clients: script.clients, at: at(Double(second))) { return second }
        }
        return nil
    }

    @Test("a node that hears neither its load balancer nor its clients for 15 s is cut off, if another one is asked")
    func cutOff() {
        #expect(cutOff(Script(isChecked: { $0 <= 80 }, isHeard: { $0 <= 85 })) == 100)
        #expect(cutOff(Script(isChecked: { $0 <= 85 }, isHeard: { $0 <= 80 })) == 100)
    }

    @Test("a node that was taken out of the load balancer hears its clients, and is not cut off")
    func removed() { #expect(cutOff(Script(isChecked: { $0 <= 20 })) == nil) }

    @Test("while the load balancer is away, no node is asked, and none is cut off")
    func noLoadBalancer() {
        let isThere = { (second: Int) in second <= 50 }
        #expect(cutOff(Script(isChecked: isThere, isOtherChecked: isThere, isHeard: isThere)) == nil)
    }

    @Test("a load balancer that returns and asks this node some seconds after another one has not cut it off")
    func returns() {
        let script = Script(
            isChecked: { $0 <= 50 || $0 >= 84 }, isOtherChecked: { $0 <= 50 || $0 >= 80 },
            isHeard: { $0 <= 50 || $0 >= 85 })
        #expect(cutOff(script) == nil)
    }

    @Test("a load balancer that returns, but not to this node, has cut it off after 5 s")
    func returnsToOthers() {
        #expect(
            cutOff(Script(isChecked: { $0 <= 50 }, isOtherChecked: { $0 <= 50 || $0 >= 80 }, isHeard: { $0 <= 50 }))
                == 85)
    }

    @Test("what other nodes have published too long ago does not count")
    func unknown() {
        var watch = DoorWatch(pingInterval: .seconds(10), at: at(0))
        for second in 1...100 {
            let others: [Duration?] = second <= 50 ? [.seconds(1)] : []
            watch.note(
                checks: UInt64(min(second, 50)), heard: UInt64(min(second, 50)), others: others, at: at(Double(second)))
        }
        #expect(!watch.isCutOff(clients: 3, at: at(100)))
    }

    @Test("a node without clients has nothing to give away")
    func empty() { #expect(cutOff(Script(isChecked: { $0 <= 50 }, isHeard: { $0 <= 50 }, clients: 0)) == nil) }

    @Test("a node that no load balancer asks regularly is never cut off")
    func neverAsked() { #expect(cutOff(Script(isChecked: { $0 <= 9 }, isHeard: { $0 <= 9 })) == nil) }

    @Test("with a longer ping interval, clients may be silent for longer")
    func slowPings() {
        #expect(cutOff(Script(isChecked: { $0 <= 50 }, isHeard: { $0 <= 60 }, pingInterval: .seconds(60))) == 125)
    }

    @Test("a load balancer that asks every 10 s must leave out three requests")
    func rareChecks() {
        #expect(cutOff(Script(isChecked: { $0 % 10 == 0 && $0 <= 100 }, isHeard: { $0 <= 100 })) == 130)
    }
}
