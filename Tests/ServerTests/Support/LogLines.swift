import Logging
import Synchronization

@testable import Server

/// Stores what is logged.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])
    let settings: LogSettings

    init(level: Logger.Level = .info, _ scrubber: Scrubber = Scrubber()) { settings = LogSettings(level, scrubber) }

    var all: [String] { lines.withLock { $0 } }
    func contains(_ text: String) -> Bool { all.contains { $0.contains(text) } }

    var logger: Logger {
        let output = LogOutput(now: { 0 }) { line in self.lines.withLock { $0.append(line) } }
        return Logger(label: "test") { label in
            ServerLogHandler(label: label, format: .text, settings: self.settings, output: output)
        }
    }
}
