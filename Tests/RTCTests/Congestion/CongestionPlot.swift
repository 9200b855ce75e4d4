import Foundation

/// Draws a simulation as an SVG: bitrates on the left axis, the delay of the queue on the right one. `make plots` writes the
/// files; other test runs write none.
struct CongestionPlot {
    private static let (width, height, margin) = (900.0, 360.0, 48.0)

    let name: String
    let samples: [SimulatedPath.Sample]

    /// Writes the plot into the folder that the variable `CONFAB_PLOTS` names, if it is set.
    func write() throws {
        guard let folder = ProcessInfo.processInfo.environment["CONFAB_PLOTS"], !folder.isEmpty else { return }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try svg.write(toFile: "\(folder)/\(name).svg", atomically: true, encoding: .utf8)
    }

    private var svg: String {
        let rate = max(100, samples.map { max($0.link, $0.arrived + $0.tcp, $0.estimate) }.max() ?? 0)
        let delay = max(200, samples.map(\.delay).max() ?? 0)
        let lines = [
            line(\.link, of: rate, "#999", "link, kbit/s", 0), line(\.estimate, of: rate, "#15c", "estimate", 1),
            line(\.arrived, of: rate, "#083", "received", 2), line(\.tcp, of: rate, "#c60", "TCP-like flow", 3),
            line(\.delay, of: delay, "#c03", "queue, ms (right axis)", 4),
        ]
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" \
            font-family="sans-serif" font-size="12">
            <rect width="100%" height="100%" fill="#fff"/>
            <text x="\(Self.margin)" y="18" font-size="14">\(name)</text>
            \(axes(rate, delay))
            \(lines.joined(separator: "\n"))
            </svg>

            """
    }

    private func x(_ seconds: Double) -> Double {
        Self.margin + seconds / max(1, samples.last?.at ?? 1) * (Self.width - 2 * Self.margin)
    }
    private func y(_ value: Double, of most: Double) -> Double {
        Self.height - Self.margin - value / most * (Self.height - 2.5 * Self.margin)
    }

    private func axes(_ rate: Double, _ delay: Double) -> String {
        var parts: [String] = []
        for part in 0...4 {
            let share = Double(part) / 4
            let at = y(share, of: 1)
            parts.append(
                "<path d=\"M\(Self.margin) \(at)H\(Self.width - Self.margin)\" stroke=\"#ddd\"/>"
                    + "<text x=\"\(Self.margin - 4)\" y=\"\(at)\" text-anchor=\"end\">\(Int(rate * share))</text>"
                    + "<text x=\"\(Self.width - Self.margin + 4)\" y=\"\(at)\">\(Int(delay * share))</text>")
        }
        for second in stride(from: 0, through: Int(samples.last?.at ?? 0), by: 10) {
            parts.append(
                "<text x=\"\(x(Double(second)))\" y=\"\(Self.height - Self.margin + 16)\" text-anchor=\"middle\">"
                    + "\(second) s</text>")
        }
        return parts.joined(separator: "\n")
    }

    private func line(
        _ value: (SimulatedPath.Sample) -> Double, of most: Double, _ color: String, _ label: String, _ place: Int
    ) -> String {
        let points = samples.map { String(format: "%.1f,%.1f", x($0.at), y(value($0), of: most)) }
        return "<polyline points=\"\(points.joined(separator: " "))\" fill=\"none\" stroke=\"\(color)\"/>"
            + "<text x=\"\(Self.margin + Double(place) * 150)\" y=\"\(Self.height - 8)\" fill=\"\(color)\">\(label)</text>"
    }
}
