import Logging
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A log handler that writes to standard error, as text or JSON. Every event is exactly one line.
///
/// ```
/// 2026-02-03T04:05:06.789Z info  gateway  socket opened address=192.0.2.1 sockets=3
/// {"time":"2026-02-03T04:05:06.789Z","level":"info","label":"gateway","message":"socket opened","address":"192.0.2.1"}
/// ```
///
/// It redacts values that look secret. Untrusted text cannot forge a line or control the terminal.
public struct ServerLogHandler: LogHandler {
    /// The level that was set for this logger; otherwise the level of the settings.
    public var logLevel: Logger.Level {
        get { ownLevel ?? settings.level }
        set { ownLevel = newValue }
    }
    public var metadata: Logger.Metadata = [:]
    public var metadataProvider: Logger.MetadataProvider?

    private let label: String
    private let format: LogFormat
    private let settings: LogSettings
    private let output: LogOutput
    private var ownLevel: Logger.Level?

    private var scrubber: Scrubber { settings.scrubber }

    public init(
        label: String, level: Logger.Level, format: LogFormat, scrubber: Scrubber = Scrubber(),
        output: LogOutput = .standardError
    ) {
        self.init(label: label, format: format, settings: LogSettings(level, scrubber), output: output)
    }

    /// - Parameter settings: shared by all handlers, so that a change reaches all of them.
    public init(label: String, format: LogFormat, settings: LogSettings, output: LogOutput = .standardError) {
        (self.label, self.format, self.settings, self.output) = (label, format, settings, output)
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var fields = metadata
        if let request = RequestTrace.current { fields["request"] = "\(request)" }
        if let provided = metadataProvider?.get() { fields.merge(provided) { $1 } }
        if let given = event.metadata { fields.merge(given) { $1 } }
        if let error = event.error { fields["error"] = "\(error)" }
        let time = LogTime.text(millisecondsSince1970: output.now())
        let message = scrubber.scrubbed(event.message.description)
        var line: String
        switch format {
        case .text:
            let level = event.level.rawValue
            let column = level + String(repeating: " ", count: max(0, 5 - level.count))
            line = "\(time) \(column) \(LogText.escaped(label))  \(LogText.escaped(message))"
            for (key, value) in sorted(fields) { line += " \(LogText.value(key))=\(text(value, key: key))" }
        case .json:
            line = "{\"time\":\"\(time)\",\"level\":\"\(event.level.rawValue)\",\"label\":\(LogText.json(label)),"
            line += "\"message\":\(LogText.json(message))"
            for (key, value) in sorted(fields) { line += ",\(jsonKey(key)):\(json(value, key: key))" }
            line += "}"
        }
        output.write(line + "\n")
    }

    /// The maximum nesting depth of metadata. Deeper values are logged as "…".
    private static let maxDepth = 4

    private func sorted(_ fields: Logger.Metadata) -> [(key: String, value: Logger.MetadataValue)] {
        fields.sorted { $0.key < $1.key }
    }

    /// Returns the key as JSON. Adds `_` to keys that clash with the standard fields.
    private func jsonKey(_ key: String) -> String {
        LogText.json(["time", "level", "label", "message"].contains(key) ? key + "_" : key)
    }

    private func text(_ value: Logger.MetadataValue, key: String, depth: Int = 0) -> String {
        if scrubber.isSecret(key: key) { return Scrubber.redacted }
        switch value {
        case .dictionary(let fields) where depth < Self.maxDepth:
            let parts = sorted(fields).map {
                "\(LogText.value($0.key))=\(text($0.value, key: $0.key, depth: depth + 1))"
            }
            return "{" + parts.joined(separator: " ") + "}"
        case .array(let values) where depth < Self.maxDepth:
            return "[" + values.map { text($0, key: "", depth: depth + 1) }.joined(separator: " ") + "]"
        case .dictionary, .array: return "…"
        case .string(let text): return LogText.value(scrubber.scrubbed(text))
        case .stringConvertible(let value): return LogText.value(scrubber.scrubbed(value.description))
        }
    }

    private func json(_ value: Logger.MetadataValue, key: String, depth: Int = 0) -> String {
        if scrubber.isSecret(key: key) { return LogText.json(Scrubber.redacted) }
        switch value {
        case .dictionary(let fields) where depth < Self.maxDepth:
            let parts = sorted(fields).map {
                LogText.json($0.key) + ":" + json($0.value, key: $0.key, depth: depth + 1)
            }
            return "{" + parts.joined(separator: ",") + "}"
        case .array(let values) where depth < Self.maxDepth:
            return "[" + values.map { json($0, key: "", depth: depth + 1) }.joined(separator: ",") + "]"
        case .dictionary, .array: return "\"…\""
        case .string(let text): return LogText.json(scrubber.scrubbed(text))
        case .stringConvertible(let value): return LogText.json(scrubber.scrubbed(value.description))
        }
    }
}

/// The destination of log lines and the clock for their timestamps.
public struct LogOutput: Sendable {
    let write: @Sendable (String) -> Void
    let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - now: Returns milliseconds since 1970.
    ///   - write: Receives whole lines with their line feed. Called from any thread.
    public init(now: @escaping @Sendable () -> Int64, write: @escaping @Sendable (String) -> Void) {
        self.now = now
        self.write = write
    }

    public static let standardError = LogOutput(now: LogTime.now) { line in
        // One call per line keeps lines intact. The lock does the same for lines that the kernel accepts only in parts.
        Self.lock.withLock { _ in
            var bytes = Array(line.utf8)[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes { systemWrite($0) }
                if count < 0, errno == EINTR { continue }
                // Ignore errors: if standard error is closed, the server must not stop.
                if count <= 0 { return }
                bytes = bytes.dropFirst(count)
            }
        }
    }

    private static let lock = Mutex(())
}

private func systemWrite(_ bytes: UnsafeRawBufferPointer) -> Int {
    write(STDERR_FILENO, bytes.baseAddress, bytes.count)
}

/// Formats timestamps without Foundation's formatters, which would take longer than formatting the rest of the line.
enum LogTime {
    static func now() -> Int64 {
        Int64(Date().timeIntervalSince1970 * 1000)
    }

    /// Formats a time as in RFC 3339, in UTC with milliseconds.
    static func text(millisecondsSince1970 time: Int64) -> String {
        let (days, rest) = floorDivide(time, by: 86_400_000)
        let (year, month, day) = date(daysSince1970: days)
        let second = rest / 1000
        let clock = "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
        return "\(padded(year, 4))-\(two(month))-\(two(day))T\(clock).\(padded(rest % 1000, 3))Z"
    }

    /// Converts days since 1970 to a date with Howard Hinnant's `civil_from_days`. It uses years that start in March,
    /// so that the leap day is the last day.
    private static func date(daysSince1970 days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivide(days + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let year = yearOfEra + era * 400 + (month < 10 ? 0 : 1)
        return (year, month < 10 ? month + 3 : month - 9, day)
    }

    private static func floorDivide(_ value: Int64, by divisor: Int64) -> (Int64, Int64) {
        let remainder = ((value % divisor) + divisor) % divisor
        return ((value - remainder) / divisor, remainder)
    }

    private static func two(_ value: Int64) -> String { padded(value, 2) }

    private static func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
