import Foundation

/// Prints one row per attack, so a test run prints a table.
struct AttackReport {
    /// - Parameter others: the report on the clients who must not be disturbed.
    static func print(
        case number: Int, name: String, sent: String, cameBack: String, peakMemory: Int, grewBy: Int, others: String
    ) {
        func cell(_ text: String, _ width: Int) -> String {
            text.padding(toLength: max(width, text.count), withPad: " ", startingAt: 0)
        }
        let memory = "peak \(mebibytes(peakMemory)), grew \(mebibytes(grewBy))"
        let cells = [
            cell("hostile \(number)", 10), cell(name, 30), cell(sent, 44), cell(cameBack, 44), cell(memory, 34), others,
        ]
        Swift.print(cells.joined(separator: " | "))
    }
}
