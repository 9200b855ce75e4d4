import NIOConcurrencyHelpers
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Taking over the calls of a node whose life is over") struct CallTakeoverTests {
    /// Calls in storage, by the life that has them.
    private struct Shelf {
        var calls: [UInt32: [StoredCall]]
        /// Whether the answer to the next change is lost.
        var losesAnswer = false
    }

    private struct Lost: Error {}

    private func call(_ number: UInt64) -> StoredCall {
        let now = Timestamp(milliseconds: 1_790_000_000_000)
        return StoredCall(
            id: CallID(high: 9, low: number), session: .unset, caller: IdentityID(high: 1, low: number),
            callee: IdentityID(high: 2, low: number), callerName: "Caller", calleeName: "Callee", video: false,
            placedAt: now, ringsUntil: now)
    }

    /// This node's life is 9.
    private func takeover(_ shelf: NIOLockedValueBox<Shelf>) -> CallTakeover {
        CallTakeover(
            openCalls: { life in shelf.withLockedValue { $0.calls[life, default: []] } },
            restoring: { $0.map { .restored($0, caller: PersonRecord(), callee: PersonRecord()) } },
            takeOver: { life in
                try shelf.withLockedValue { shelf in
                    shelf.calls[9, default: []] += shelf.calls.removeValue(forKey: life) ?? []
                    if shelf.losesAnswer {
                        shelf.losesAnswer = false
                        throw Lost()
                    }
                    return shelf.calls[9, default: []]
                }
            })
    }

    private func ids(_ inputs: [Input]) -> [UInt64] {
        inputs.compactMap { if case .restored(let call, _, _) = $0 { call.id.low } else { nil } }
    }

    @Test("calls whose new owner was stored, but not reported, are restored by the next attempt, and only once")
    func lostAnswer() async throws {
        let shelf = NIOLockedValueBox(Shelf(calls: [3: [call(1), call(2)], 9: [call(5)]], losesAnswer: true))
        let takeover = takeover(shelf)
        await #expect(throws: Lost.self) { try await takeover.inputs(of: 3) }
        #expect(ids(try await takeover.inputs(of: 3)) == [1, 2])
        #expect(try await takeover.inputs(of: 3).isEmpty)
    }

    @Test("calls that another node has taken over are not restored here")
    func anotherNode() async throws {
        let shelf = NIOLockedValueBox(Shelf(calls: [3: [call(1), call(2)]], losesAnswer: true))
        let takeover = takeover(shelf)
        await #expect(throws: Lost.self) { try await takeover.inputs(of: 3) }
        shelf.withLockedValue { $0.calls[9]?.removeAll { $0.id.low == 1 } }
        #expect(ids(try await takeover.inputs(of: 3)) == [2])
    }
}
