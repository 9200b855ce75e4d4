import Cluster
import Testing

@Suite("What a node knows about all nodes")
struct NodeListTests {
    private static func tag(_ node: UInt16, _ life: UInt32) -> NodeTag { NodeTag(node: node, life: life)! }

    private static func record(_ tag: NodeTag, _ condition: String? = nil, _ state: NodeRecord.State = .serving)
        -> NodeRecord
    {
        var record = NodeRecord(
            tag: tag, url: "https://chat.example.org", socketAddress: "192.0.2.\(tag.node):8080", region: "",
            version: "1.0", letters: .init(speaks: 1, reads: 1...1))
        (record.condition, record.state) = (condition, state)
        return record
    }

    private static func alive(
        _ tag: NodeTag, milliseconds: Int = 2600, requested: NodeRecord.State? = nil
    ) -> LedgerView.Life {
        .init(tag: tag, state: .unfenced(expiresIn: .milliseconds(milliseconds)), epoch: 1, requested: requested)
    }

    private static func fenced(_ tag: NodeTag, heir: NodeTag, voidIn: Duration = .seconds(-9)) -> LedgerView.Life {
        .init(tag: tag, state: .fenced(heir: heir, voidIn: voidIn), epoch: 1)
    }

    /// The list of node 1, in its life 5.
    private static func list(
        _ lives: [LedgerView.Life]?, _ others: [NodeRecord] = [], own: NodeRecord? = nil, lease: Duration = .seconds(2)
    ) -> NodeList {
        let view = lives.map {
            LedgerView(clock: .seconds(1000), age: .seconds(60), lives: $0, epoch: nil, epochAge: .zero)
        }
        return NodeList(
            asked: own ?? record(tag(1, 5), "serving"), lease: lease, view: view, age: .milliseconds(300),
            others: others)
    }

    @Test("each node is listed once by number, in its newest life, also if that is over")
    func newest() {
        let (old, own, two, three) = (Self.tag(1, 2), Self.tag(1, 5), Self.tag(2, 4), Self.tag(3, 1))
        let lives = [
            Self.fenced(three, heir: own), Self.fenced(old, heir: own), Self.fenced(Self.tag(2, 3), heir: two),
            Self.alive(two), Self.alive(own),
        ]
        let list = Self.list(lives, [Self.record(two, "draining", .draining)])
        #expect(list.asked == own && list.age == .milliseconds(300))
        #expect(list.nodes.map(\.tag) == [own, two, three])
        #expect(list.nodes.map(\.condition) == [.serving, .draining, .fenced])
        #expect(list.nodes.map(\.lease) == [.seconds(2), .milliseconds(2600), nil])
        #expect(list.nodes.map(\.heir) == [nil, nil, own])
        #expect(list["n2"]?.record?.socketAddress == "192.0.2.2:8080")
        #expect(list["n4"] == nil && list["2"] == nil)
        #expect(list.counts == [.serving: 1, .draining: 1, .fenced: 1])
    }

    @Test("a node whose lease has expired waits, whatever it publishes, and one without a record is unknown")
    func leases() {
        let (late, silent) = (Self.tag(2, 6), Self.tag(3, 7))
        let lives = [Self.alive(late, milliseconds: -20), Self.alive(silent), Self.alive(Self.tag(1, 5))]
        let list = Self.list(lives, [Self.record(late, "serving")])
        #expect(list["n2"]?.condition == .waiting && list["n2"]?.lease == .zero)
        #expect(list["n3"]?.condition == .unknown && list["n3"]?.record == nil)
    }

    @Test("the record of an earlier life says nothing about the one that runs")
    func earlierRecord() {
        let list = Self.list([Self.alive(Self.tag(2, 9))], [Self.record(Self.tag(2, 6), "serving")])
        #expect(list["n2"]?.condition == .unknown && list["n2"]?.record == nil)
    }

    @Test("a release without conditions, or with other ones, serves or drains")
    func releases() {
        let (two, three) = (Self.tag(2, 6), Self.tag(3, 7))
        for condition in [nil, "asleep", ""] as [String?] {
            let list = Self.list(
                [Self.alive(two), Self.alive(three)],
                [Self.record(two, condition), Self.record(three, condition, .draining)])
            #expect(list.nodes.dropFirst().map(\.condition) == [.serving, .draining])
        }
        for condition in NodeCondition.allCases {
            let list = Self.list([Self.alive(two)], [Self.record(two, condition.rawValue)])
            #expect(list["n2"]?.condition == condition)
        }
    }

    @Test("the node that is asked knows itself without the ledger, and says what it does now")
    func alone() {
        let own = Self.record(Self.tag(1, 5), "waiting", .draining)
        let list = Self.list(nil, own: own, lease: .zero)
        #expect(list.nodes.map(\.tag) == [own.tag] && list.age == nil)
        #expect(list.nodes.first?.condition == .waiting && list.nodes.first?.lease == .zero)
        // What the ledger says of its lease is older.
        let seen = Self.list([Self.alive(own.tag)], own: own, lease: .zero)
        #expect(seen.nodes == list.nodes && seen.age == .milliseconds(300))
    }

    @Test("the relays of the asked node are listed with each other node that lives, also if there are none")
    func relays() {
        let (own, two, three, four) = (Self.record(Self.tag(1, 5)), Self.tag(2, 6), Self.tag(3, 7), Self.tag(4, 8))
        let view = LedgerView(
            clock: .seconds(1000), age: .seconds(60),
            lives: [Self.alive(own.tag), Self.alive(two), Self.alive(three), Self.fenced(four, heir: own.tag)],
            epoch: nil, epochAge: .zero)
        var states = RelayStates()
        states.connected = 2
        func listed(_ relays: [NodeTag: RelayStates]?) -> [RelayStates?] {
            NodeList(asked: own, lease: .seconds(2), view: view, age: .zero, others: [], relays: relays)
                .nodes.map(\.relays)
        }
        #expect(listed(nil) == [nil, nil, nil, nil])
        #expect(listed([two: states, four: states]) == [nil, states, RelayStates(), nil])
        // Those to an earlier life do not count.
        #expect(listed([Self.tag(2, 4): states]) == [nil, RelayStates(), RelayStates(), nil])
    }

    @Test("a request is listed until the node has carried it out, and that of an earlier life is not")
    func requests() {
        let lives = [Self.alive(Self.tag(2, 6), requested: .draining), Self.alive(Self.tag(1, 5), requested: .serving)]
        #expect(Self.list(lives).nodes.map(\.requested) == [.serving, .draining])
        let earlier = Self.list([Self.alive(Self.tag(1, 4), requested: .draining)])
        #expect(earlier.nodes.map(\.requested) == [nil])
    }
}

@Suite("Requests to take a node out of service")
struct ServiceRequestsTests {
    @Test("a request is carried out once, and noted until the ledger no longer has it")
    func once() {
        var requests = ServiceRequests()
        #expect(requests.looked(nil) == [])
        #expect(requests.looked(.draining) == [.change(.draining), .note(.draining)])
        #expect(requests.looked(.draining) == [.note(.draining)])
        #expect(requests.looked(nil) == [])
        #expect(requests.looked(.draining) == [.change(.draining), .note(.draining)])
        // Another request replaces it.
        #expect(requests.looked(.serving) == [.change(.serving), .note(.serving)])
    }
}

@Suite("The time for which a node waits")
struct FrozenTimeTests {
    private func at(_ milliseconds: Int) -> Instant { Instant(.milliseconds(milliseconds)) }

    @Test("it counts from when the node froze until it thaws, and not before the node acted")
    func counts() {
        var frozen = FrozenTime()
        #expect(frozen.total(at: at(900)) == .zero)
        frozen.thawed(at: at(1000))
        #expect(frozen.total(at: at(2000)) == .zero)
        frozen.froze(at: at(5000))
        frozen.froze(at: at(5500))
        #expect(frozen.total(at: at(6000)) == .seconds(1))
        frozen.thawed(at: at(7000))
        frozen.froze(at: at(9000))
        #expect(frozen.total(at: at(9250)) == .milliseconds(2250))
    }
}
