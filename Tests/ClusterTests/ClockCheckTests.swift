import Cluster
import Testing

@Suite("Clocks of nodes")
struct ClockCheckTests {
    @Test("the time that the answer took explains a difference in one direction")
    func waiting() {
        func difference(ledger: Int, wall: Int, waited: Int) -> Duration {
            ClockCheck.difference(
                ledger: .milliseconds(ledger), wall: .milliseconds(wall), waited: .milliseconds(waited))
        }
        #expect(difference(ledger: 10_000, wall: 10_400, waited: 400) == .zero)
        #expect(difference(ledger: 10_000, wall: 10_500, waited: 400) == .milliseconds(100))
        #expect(difference(ledger: 10_000, wall: 9_900, waited: 400) == .milliseconds(-100))
    }

    @Test("a difference is reported once, and once more when it is over")
    func changes() {
        var check = ClockCheck()
        #expect(check.note(.milliseconds(250)) == nil)
        #expect(check.note(.milliseconds(251)) == .differs(by: .milliseconds(251)))
        #expect(check.note(.seconds(-3)) == nil)
        #expect(check.note(.zero) == .agrees)
        #expect(check.note(.zero) == nil)
        #expect(check.note(.milliseconds(-251)) == .differs(by: .milliseconds(-251)))
    }
}
