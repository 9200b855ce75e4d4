import Cluster
import Testing
import Wire

@testable import Signaling

/// Requests that another node has not answered.
@Suite struct PostedRequestsTests {
    private let node = NodeTag(node: 2, life: 1)!
    private let client = ConnectionID(high: 1, low: 1)
    private let start = Timestamp(milliseconds: 0)
    private var requests = PostedRequests<Int>()

    private mutating func fail(at time: Timestamp) -> [UInt64] {
        requests.fail(now: time, lookAgainAt: time + .seconds(10)) { _ in false }.map(\.asked.re)
    }

    @Test mutating func aNodeThatNeverAnswersDoesNotMakeTheListGrow() {
        let limit = PostedRequests<Int>.maxFailed
        for re in 1...UInt64(3 * limit) {
            let time = start + .seconds(Int(re))
            requests.insert(Request(client, re), .init(node: node, content: 0, until: time))
            let failed = fail(at: time)
            #expect(failed == [re])
        }
        #expect(requests.posted(by: client).count == limit)
        let forgotten = requests.remove(client, re: UInt64(2 * limit), from: node)
        let kept = requests.remove(client, re: UInt64(2 * limit + 1), from: node)
        #expect(forgotten == nil && kept?.hasFailed == true)
    }

    @Test mutating func requestsThatHaveNotFailedAreAllKept() {
        let count = 2 * PostedRequests<Int>.maxFailed
        for re in 1...UInt64(count) {
            requests.insert(Request(client, re), .init(node: node, content: 0, until: start + .seconds(5)))
        }
        let early = fail(at: start)
        #expect(early.isEmpty && requests.posted(by: client).count == count)
        let failed = fail(at: start + .seconds(5))
        #expect(failed == Array(1...UInt64(count)), "each request is answered")
    }
}
