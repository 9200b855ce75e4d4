import Cluster
import Testing

@Suite("Whether people reach a node") struct DoorWatchTests {
    private func at(_ seconds: Double) -> Instant { Instant(.milliseconds(Int64(seconds * 1000))) }

    /// A node that was asked, and has heard clients, each second until `last`.
    private func watch(checkedUntil checked: Int, heardUntil heard: Int, pingInterval: Duration = .seconds(10))
        -> DoorWatch
    {
        var watch = DoorWatch(pingInterval: pingInterval, at: at(0))
        for second in 1...100 {
            watch.note(checks: UInt64(min(second, checked)), heard: UInt64(min(second, heard)), at: at(Double(second)))
        }
        return watch
    }

    private let asked: [Duration?] = [nil, .seconds(1)]

    @Test("a node that hears neither its load balancer nor its clients for 15 s is cut off, if another one is asked")
    func cutOff() {
        let watch = watch(checkedUntil: 80, heardUntil: 85)
        #expect(!watch.isCutOff(clients: 3, others: asked, at: at(99.9)))
        #expect(watch.isCutOff(clients: 3, others: asked, at: at(100)))
        #expect(watch.sinceCheck(at: at(100)) == .seconds(20))
    }

    @Test("a node that was taken out of the load balancer hears its clients, and is not cut off")
    func removed() {
        #expect(!watch(checkedUntil: 20, heardUntil: 99).isCutOff(clients: 3, others: asked, at: at(101)))
    }

    @Test("while the load balancer is away, no node is asked, and none is cut off")
    func noLoadBalancer() {
        let watch = watch(checkedUntil: 50, heardUntil: 50)
        #expect(!watch.isCutOff(clients: 3, others: [nil, .seconds(50)], at: at(100)))
        #expect(!watch.isCutOff(clients: 3, others: [], at: at(100)))
    }

    @Test("a node without clients has nothing to give away")
    func empty() { #expect(!watch(checkedUntil: 50, heardUntil: 50).isCutOff(clients: 0, others: asked, at: at(100))) }

    @Test("a node that no load balancer asks regularly is never cut off")
    func neverAsked() {
        let watch = watch(checkedUntil: 9, heardUntil: 9)
        #expect(watch.sinceCheck(at: at(100)) == nil)
        #expect(!watch.isCutOff(clients: 3, others: asked, at: at(100)))
    }

    @Test("with a longer ping interval, clients may be silent for longer")
    func slowPings() {
        let watch = watch(checkedUntil: 50, heardUntil: 60, pingInterval: .seconds(60))
        #expect(!watch.isCutOff(clients: 3, others: asked, at: at(124)))
        #expect(watch.isCutOff(clients: 3, others: asked, at: at(125)))
    }
}
