import Cluster
import Synchronization
import Wire

@testable import Server

/// The nodes of a cluster as node 1 sees them, without PostgreSQL and Redis. Node 1 is the test server, node 2 serves, and node 3 was
/// fenced by node 1. Node 1 has relays.
final class TestNodes: ClusterNodes {
    static let first = NodeTag(node: 1, life: 7)!
    static let second = NodeTag(node: 2, life: 6)!
    static let third = NodeTag(node: 3, life: 5)!

    /// Keeps requests to other nodes. Nobody carries them out.
    final class Requests: NodeRequests {
        private let kept = Mutex<[NodeTag: NodeRecord.State]>([:])
        private let isAway = Mutex(false)

        var all: [NodeTag: NodeRecord.State] { kept.withLock { $0 } }
        /// Makes the ledger answer nothing any more.
        func goAway() { isAway.withLock { $0 = true } }

        func request(_ state: NodeRecord.State, of tag: NodeTag) async throws(LedgerError) -> Bool {
            if isAway.withLock({ $0 }) { throw LedgerError(.unreachable, "away") }
            kept.withLock { $0[tag] = state }
            return true
        }

        func noteCarriedOut(_ state: NodeRecord.State, by tag: NodeTag) async throws(LedgerError) {}
    }

    private unowned let gateway: Gateway
    private let kept: Requests
    var requests: any NodeRequests { kept }

    init(_ gateway: Gateway, _ requests: Requests) {
        self.gateway = gateway
        kept = requests
    }

    var list: NodeList {
        var own = Self.record(Self.first)
        own.condition = gateway.condition.rawValue
        own.isOutOfService = gateway.requestedCondition != .serving
        own.disconnectsInMs = gateway.drainLeft?.wholeMilliseconds
        let view = LedgerView(
            clock: .seconds(1000), age: .seconds(60),
            lives: [
                .init(tag: Self.third, state: .fenced(heir: Self.first, voidIn: .seconds(-60)), epoch: 1),
                .init(
                    tag: Self.second, state: .unfenced(expiresIn: .milliseconds(2600)), epoch: 1,
                    requested: kept.all[Self.second]),
            ], epoch: nil, epochAge: .zero)
        return NodeList(
            asked: own, lease: .seconds(2), view: view, age: .milliseconds(300), others: [Self.record(Self.second)],
            relays: [Self.second: Self.relays])
    }

    /// Of two relays from node 1 to node 2, one does not connect.
    private static var relays: RelayStates {
        var states = RelayStates()
        (states.connected, states.connecting, states.fault) = (1, 1, .unreachable)
        return states
    }

    private static func record(_ tag: NodeTag) -> NodeRecord {
        var record = NodeRecord(
            tag: tag, url: "https://chat.example.org", socketAddress: "192.0.2.\(tag.node):8080", region: "",
            version: "1.0", letters: .init(speaks: 1, reads: 1...1))
        record.condition = NodeCondition.serving.rawValue
        record.load = .init(rules: 0.123, media: 0.05, packetsPerSecond: 10, sockets: 57)
        record.places = 40
        return record
    }
}

extension TestServerNodes {
    /// Makes ``TestNodes``.
    static func fake(_ requests: TestNodes.Requests = .init()) -> Self { Self { TestNodes($0, requests) } }
}
