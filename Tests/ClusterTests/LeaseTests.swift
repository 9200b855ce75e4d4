import Cluster
import Testing

@Suite("A lease")
struct LeaseTests {
    private static let tag = NodeTag(node: 1, life: 7)!
    private static let heir = NodeTag(node: 2, life: 9)!

    private func at(_ milliseconds: Int) -> Instant { Instant(.milliseconds(milliseconds)) }

    /// A lease that has begun at 0, with renewals sent at 0, 500 and so on until `milliseconds`, none of which is answered.
    private func lease(renewingUntil milliseconds: Int) -> Lease {
        var lease = Lease(of: Self.tag, begun: at(0))
        for time in stride(from: 0, through: milliseconds, by: 500) {
            #expect(lease.tick(at: at(time)) == [.renew(number: UInt64(time / 500 + 1))])
        }
        return lease
    }

    @Test("a life acts only from the first renewal that was sent when it was a second old")
    func begins() {
        var lease = lease(renewingUntil: 1500)
        for number in 1...3 { #expect(lease.answered(UInt64(number), .renewed, at: at(1501)) == []) }
        #expect(!lease.acts(at: at(1501)))
        #expect(lease.answered(4, .renewed, at: at(1502)) == [.thawed])
        #expect(lease.acts(at: at(1502)))
    }

    @Test("a renewal is valid for 2.94 s from when it was sent, however late it was answered")
    func validity() {
        var lease = lease(renewingUntil: 1500)
        #expect(lease.answered(4, .renewed, at: at(4439)) == [.thawed])
        #expect(lease.acts(at: at(4439)))
        #expect(!lease.acts(at: at(4440)))
        #expect(lease.tick(at: at(4440)).first == .froze)
    }

    @Test("a renewal that is answered after it has become invalid does not thaw")
    func tooLate() {
        var lease = lease(renewingUntil: 1500)
        #expect(lease.answered(4, .renewed, at: at(4440)) == [])
        #expect(lease.state == .frozen)
    }

    @Test("answers in another order do not shorten the lease")
    func order() {
        var lease = lease(renewingUntil: 2500)
        #expect(lease.answered(6, .renewed, at: at(2501)) == [.thawed])
        #expect(lease.answered(5, .renewed, at: at(2502)) == [])
        #expect(lease.acts(at: at(5439)))
        #expect(!lease.acts(at: at(5440)))
    }

    @Test("a frozen node thaws when the ledger can be reached again, and events wait only in between")
    func thaws() {
        var lease = lease(renewingUntil: 1500)
        _ = lease.answered(4, .renewed, at: at(1501))
        #expect(lease.tick(at: at(60_000)) == [.froze, .renew(number: 5)])
        #expect(lease.answered(5, .renewed, at: at(60_010)) == [.thawed])
        #expect(lease.acts(at: at(60_010)))
    }

    @Test("a fenced life says so once, sends nothing more, and never acts again")
    func fenced() {
        var lease = lease(renewingUntil: 2000)
        _ = lease.answered(4, .renewed, at: at(2001))
        #expect(lease.answered(5, .fenced(heir: Self.heir), at: at(2002)) == [.fenced(heir: Self.heir)])
        #expect(!lease.acts(at: at(2002)))
        #expect(lease.nextWakeUp == nil)
        #expect(lease.tick(at: at(3000)) == [])
        #expect(lease.answered(4, .renewed, at: at(3000)) == [])
        #expect(lease.answered(5, .fenced(heir: nil), at: at(3000)) == [])
        #expect(!lease.acts(at: at(3000)))
    }

    @Test("a life whose row is lost is over")
    func rowIsLost() {
        var lease = lease(renewingUntil: 0)
        #expect(lease.answered(1, .fenced(heir: nil), at: at(3)) == [.fenced(heir: nil)])
    }

    @Test("it wakes up for the next renewal, or earlier when the last one becomes invalid")
    func wakesUp() {
        var lease = Lease(of: Self.tag, begun: at(0))
        #expect(lease.nextWakeUp == at(0))
        for time in [0, 500, 1000, 1500] { _ = lease.tick(at: at(time)) }
        #expect(lease.nextWakeUp == at(2000))
        _ = lease.answered(4, .renewed, at: at(1501))
        for time in [2000, 2500, 3000, 3500, 4000] { _ = lease.tick(at: at(time)) }
        #expect(lease.nextWakeUp == at(4440))
    }

    @Test("renewals without an answer do not pile up: an answer to an old one is ignored")
    func bounded() {
        var lease = lease(renewingUntil: 7500)
        #expect(lease.answered(4, .renewed, at: at(1501)) == [])
        lease.failed(16)
        #expect(lease.answered(16, .renewed, at: at(7501)) == [])
        #expect(lease.answered(15, .renewed, at: at(7501)) == [.thawed])
        #expect(lease.answered(99, .renewed, at: at(7501)) == [])
    }
}
