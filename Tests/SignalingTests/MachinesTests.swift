import TestSupport
import Testing
import Wire

@testable import Signaling

/// A machine that adds numbers until it gets 0.
private struct Adder: Machine {
    typealias ID = Int

    var sum = 0
    var isOver = false

    static func make(_ id: Int, for event: Int, _ context: inout Context) -> Adder? { event == -1 ? nil : Adder() }

    mutating func handle(_ event: Int, _ context: inout Context) {
        sum += event
        isOver = event == 0
    }
}

@Suite("State machines of one kind")
struct MachinesTests {
    @Test("each machine gets its own events, whatever others come and go")
    func model() {
        var context = Context(HubSettings(rules: Rules(), project: Stage.project), generator: SeededGenerator(seed: 1))
        var random = SeededGenerator(seed: 7)
        var machines = Machines<Adder>()
        var model: [Int: Int] = [:]
        // At first more come than go, and later more go than come.
        for step in 0..<20_000 {
            let id = Int.random(in: 0..<500, using: &random)
            let ends = Int.random(in: 0..<20_000, using: &random) < step
            let event = ends ? 0 : Int.random(in: 1...9, using: &random)
            let delivered = machines.deliver(event, to: id, &context)
            #expect(delivered.ended?.sum == (ends ? model[id, default: 0] : nil))
            model[id] = ends ? nil : model[id, default: 0] + event
            #expect(machines.count == model.count && machines.read(id, \.sum) == model[id])
            guard step % 1000 == 500 else { continue }
            #expect(Set(machines.ids { $0.sum > 9 }) == Set(model.filter { $0.value > 9 }.keys))
            #expect(machines.count { $0.sum > 9 } == model.count { $0.value > 9 })
        }
        #expect(!model.isEmpty)
        var sums: [Int] = []
        machines.forEach { sums.append($0.sum) }
        #expect(sums.sorted() == model.values.sorted())
        for id in model.keys { _ = machines.with(id) { $0.isOver = true } }
        #expect(machines.isEmpty && machines.insert(Adder(sum: 3), 1) == nil && machines.read(1, \.sum) == 3)
        #expect(machines.deliver(-1, to: 2, &context).ended == nil && !machines.contains(2))
    }

    @Test("a copy does not change with the original")
    func copies() {
        var context = Context(HubSettings(rules: Rules(), project: Stage.project), generator: SeededGenerator(seed: 1))
        var machines = Machines<Adder>()
        for id in 0..<100 { _ = machines.deliver(1, to: id, &context) }
        let copy = machines
        for id in 0..<100 { _ = machines.deliver(id % 2, to: id, &context) }
        #expect(machines.count == 50 && copy.count == 100 && copy.read(99, \.sum) == 1)
    }
}
