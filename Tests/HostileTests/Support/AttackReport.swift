import Foundation

/// One line for each attack, so that a run of the tests shows a table.
struct AttackReport {
    static func print(
        case number: Int, name: String, sent: String, cameBack: String, peakMemory: Int, grewBy: Int, pair: PairReport
    ) {
        func cell(_ text: String, _ width: Int) -> String {
            text.padding(toLength: max(width, text.count), withPad: " ", startingAt: 0)
        }
        let memory = "peak \(mebibytes(peakMemory)), grew \(mebibytes(grewBy))"
        let others =
            "pair \(pair.messages) messages, p50 \(pair.p50.text), p99 \(pair.p99.text), "
            + "longest \(pair.longest.text)"
        let cells = [
            cell("hostile \(number)", 10), cell(name, 30), cell(sent, 44), cell(cameBack, 44), cell(memory, 34), others,
        ]
        Swift.print(cells.joined(separator: " | "))
    }
}
