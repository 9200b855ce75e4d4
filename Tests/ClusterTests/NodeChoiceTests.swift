import Cluster
import TestSupport
import Testing

@Suite("Choosing a node")
struct NodeChoiceTests {
    private func node(_ number: UInt16, _ load: Double, _ state: NodeRecord.State = .serving, in region: String = "")
        -> NodeRecord
    {
        var record = NodeRecord(
            tag: NodeTag(node: number, life: 1)!, url: "https://n\(number).example",
            socketAddress: "10.0.0.\(number):8080",
            region: region, version: "1.0", letters: NodeRecord.Letters(speaks: 2, reads: 1...2))
        (record.load.rules, record.state) = (load, state)
        return record
    }

    /// How often each node is chosen in 1000 choices.
    private func choices(_ records: [NodeRecord], region: String = "") -> [UInt16: Int] {
        var random = SeededGenerator(seed: 1)
        return (0..<1000).reduce(into: [:]) { counts, _ in
            guard let tag = NodeChoice.choose(from: records, region: region, using: &random) else { return }
            counts[tag.node, default: 0] += 1
        }
    }

    @Test("the less loaded of two random nodes is chosen, so that the most loaded of all never is")
    func lessLoaded() {
        let counts = choices([node(1, 0.1), node(2, 0.2), node(3, 0.3)])
        #expect(counts[3] == nil)
        #expect(counts[1, default: 0] > counts[2, default: 0])
        #expect(counts[2, default: 0] > 200)
    }

    @Test("nodes that drain, are in another region or have 70 % load are not chosen")
    func notChosen() {
        let records = [node(1, 0.6), node(2, 0, .draining), node(3, 0, in: "eu"), node(4, 0.7), node(5, .nan)]
        #expect(choices(records) == [1: 1000])
        #expect(choices(records, region: "eu") == [3: 1000])
        #expect(choices(records, region: "us") == [:])
    }

    @Test("if all have 70 % load, the less loaded of two is chosen, because a person waits")
    func allAreFull() {
        #expect(choices([node(1, 0.9), node(2, 0.8)]) == [2: 1000])
    }

    @Test("two nodes write in the newest version that both understand, or not at all")
    func letters() {
        let new = NodeRecord.Letters(speaks: 3, reads: 2...3)
        #expect(new.version(to: NodeRecord.Letters(speaks: 2, reads: 1...2)) == 2)
        #expect(new.version(to: new) == 3)
        #expect(NodeRecord.Letters(speaks: 2, reads: 1...2).version(to: new) == 2)
        #expect(new.version(to: NodeRecord.Letters(speaks: 1, reads: 0...1)) == nil)
        #expect(new.version(to: NodeRecord.Letters(speaks: 5, reads: 4...5)) == nil)
    }
}
