import Cluster
import Testing

@Suite("The relays between two nodes")
struct NodeRelaysTests {
    private static let first = NodeTag(node: 3, life: 9)!
    private static let second = NodeTag(node: 7, life: 2)!

    private func node(_ name: String, loops: Int, versions: ClosedRange<Int> = 1...1) -> NodeRelays {
        NodeRelays(
            fingerprint: "00", loops: (0..<loops).map { ["\(name):\($0)", "\(name)-public:\($0)"] }, versions: versions)
    }

    @Test("both nodes plan the same ones, and each media loop has one with its number")
    func agreement() {
        for here in 1...5 {
            for there in 1...5 {
                let (one, other) = (node("a", loops: here), node("b", loops: there))
                let near = one.plan(from: Self.first, to: Self.second, other)
                let far = other.plan(from: Self.second, to: Self.first, one)
                #expect(near.map(\.index) == Array(0..<max(here, there)) && far.map(\.index) == near.map(\.index))
                for (near, far) in zip(near, far) {
                    #expect(near.addresses == other.loops[far.loop] && far.addresses == one.loops[near.loop])
                    #expect(near.isController && !far.isController)
                    if near.index < here { #expect(near.loop == near.index) }
                    if far.index < there { #expect(far.loop == far.index) }
                }
                #expect(Set(near.map(\.addresses).enumerated().map { "\(near[$0].loop) \($1)" }).count == near.count)
            }
        }
    }

    @Test("both nodes write in the newest version that both have")
    func versions() {
        let (old, new) = (node("a", loops: 1, versions: 1...2), node("b", loops: 1, versions: 2...4))
        #expect(old.plan(from: Self.first, to: Self.second, new).map(\.version) == [2])
        #expect(new.plan(from: Self.second, to: Self.first, old).map(\.version) == [2])
        let newer = node("b", loops: 1, versions: 3...4)
        #expect(old.plan(from: Self.first, to: Self.second, newer).isEmpty)
        #expect(newer.plan(from: Self.second, to: Self.first, old).isEmpty)
    }

    @Test("there are none to a node without media, or to another life of the same node")
    func none() throws {
        let node = node("a", loops: 2)
        #expect(node.plan(from: Self.first, to: Self.second, self.node("b", loops: 0)).isEmpty)
        let earlier = try #require(NodeTag(node: 3, life: 8))
        #expect(node.plan(from: Self.first, to: earlier, node).isEmpty)
    }

    @Test("more media loops than a node can have do not count")
    func limit() {
        let plan = node("a", loops: 1).plan(from: Self.first, to: Self.second, node("b", loops: 1000))
        #expect(plan.count == NodeRelays.maxLoops)
    }
}
