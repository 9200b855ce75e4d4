@testable import Server

extension FuzzTarget {
    /// Fuzzes the header `traceparent`, which any client can send.
    static let traceParents = FuzzTarget("trace-parents", longestInput: 600) { input throws(BrokenProperty) in
        guard let parent = TraceParent(parsing: String(decoding: input, as: UTF8.self)) else { return }
        try require(parent.trace.high | parent.trace.low != 0, "the trace has no id")
        try require(parent.text.utf8.count == 55, "\(parent.text) has another length")
        try require(TraceParent(parsing: parent.text) == parent, "\(parent.text) is read back differently")
    }
}
