import Cluster
import Testing
import Wire

@testable import Signaling

/// Who refreshes what they see of their contacts, and when, after letters of another node were lost.
@Suite struct LostContactsTests {
    private static let second = NodeTag(node: 2, life: 2)!
    private static let third = NodeTag(node: 3, life: 3)!
    private let start = Timestamp(milliseconds: 1_790_000_000_000)

    private func people(_ numbers: Range<UInt64>) -> [IdentityID] { numbers.map { IdentityID(high: 1, low: $0) } }

    @Test func aTurnHasAtMostASlice() {
        var lost = LostContacts()
        lost.add(people(0..<70), of: Self.second, isOver: false)
        lost.add(people(0..<10), of: Self.third, isOver: true)
        #expect(lost.take(now: start).map(\.person) == people(0..<50))
        #expect(lost.nextTurn(now: start) == start + LostContacts.pause)
        #expect(lost.take(now: start).isEmpty, "the pause is not over")
        let rest = lost.take(now: start + LostContacts.pause)
        #expect(rest.map(\.person) == people(50..<70) + people(0..<10))
        #expect(rest.map(\.tag) == Array(repeating: Self.second, count: 20) + Array(repeating: Self.third, count: 10))
        #expect(rest.last?.isOver == true)
        #expect(lost.isEmpty && lost.nextTurn(now: start) == nil)
    }

    @Test func aSecondLossOfALifeBeginsAgain() {
        var lost = LostContacts()
        lost.add(people(0..<60), of: Self.second, isOver: false)
        _ = lost.take(now: start)
        lost.add(people(0..<20), of: Self.second, isOver: true)
        #expect(lost.nextTurn(now: start) == start + LostContacts.pause)
        let parts = lost.take(now: start + LostContacts.pause)
        #expect(parts == people(0..<20).map { .init(person: $0, tag: Self.second, isOver: true) })
        lost.add(people(0..<20), of: Self.second, isOver: true)
        lost.add([], of: Self.second, isOver: true)
        #expect(lost.isEmpty)
    }
}
