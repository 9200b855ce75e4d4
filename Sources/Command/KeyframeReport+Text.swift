import Foundation
import Robots

extension KeyframeReport {
    /// The benchmark's results as text.
    var text: String {
        var lines = [
            "\(target): a room of two, alone and beside keyframes of \(keyframePackets) packets for \(crowd) subscribers",
            "crowd              \(keyframes) keyframes in \(figure(seconds, 1)) s; it received \(received) of "
                + "\(expected) packets",
            "CPU of the server  \(figure(alone.serverLoad * 100, 1)) % of a core alone, "
                + "\(figure(beside.serverLoad * 100, 1)) % beside the crowd",
            "", "delay, in packets",
        ]
        let bands = bounds.map { "<\($0) ms" } + ["≥\(bounds.last ?? 0) ms"]
        for (name, delays) in [("alone", alone), ("beside the crowd", beside)] {
            lines.append(Self.histogram(name, bands, delays.counts))
            lines.append(
                Self.aligned("") + "median \(figure(delays.median, 2)) ms, 99th percentile "
                    + "\(figure(delays.late, 2)) ms, maximum \(figure(delays.most, 2)) ms; lost \(delays.lost)")
        }
        if !serverBounds.isEmpty {
            lines += ["", "measured by the server: delay of the oldest packet in each wake-up"]
            let limits = serverBounds.map { "≤\(Self.milliseconds($0)) ms" } + ["more"]
            lines.append(Self.histogram("alone", limits, alone.serverCounts))
            lines.append(Self.histogram("beside the crowd", limits, beside.serverCounts))
        }
        if pauses > 0 { lines.append("The load generator was late \(pauses) times: this machine is too busy.") }
        if broken > 0 { lines.append("\(broken) connections were lost.") }
        return lines.joined(separator: "\n")
    }

    private func figure(_ value: Double, _ digits: Int) -> String {
        value.isFinite ? String(format: "%.\(digits)f", value) : "unknown"
    }

    private static func milliseconds(_ seconds: Double) -> String { String(format: "%g", seconds * 1000) }

    private static func aligned(_ text: String) -> String { text.padding(toLength: 19, withPad: " ", startingAt: 0) }

    private static func histogram(_ name: String, _ bands: [String], _ counts: [Int64]) -> String {
        aligned(name) + zip(bands, counts).map { "\($0): \($1)" }.joined(separator: "  ")
    }
}
