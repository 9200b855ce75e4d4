#if os(Linux)
import CSockets
import Foundation
import NIOCore

/// The kernel's figures for this process, in seconds and bytes.
struct ProcessFigures: Equatable, Sendable {
    var cpuSeconds: Double
    var residentBytes: Int
    /// When the process started, in seconds since 1970.
    var startedAt: Double
    var openDescriptors: Int
    /// The soft limit on open descriptors. Nil if there is none or it cannot be read.
    var maxDescriptors: Int?

    /// Reads the current figures. Returns nil if `/proc/self/stat` cannot be read or parsed.
    static func read() -> ProcessFigures? {
        guard let text = contents("/proc/self/stat"), let stat = ProcessStat(text) else { return nil }
        let ticksPerSecond = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
        return ProcessFigures(
            cpuSeconds: Double(stat.cpuTicks) / ticksPerSecond,
            residentBytes: stat.residentPages * Int(max(1, sysconf(Int32(_SC_PAGESIZE)))),
            startedAt: bootTime + Double(stat.startTicks) / ticksPerSecond,
            // Subtract the descriptor that listing the directory uses.
            openDescriptors: max(0, descriptors - 1), maxDescriptors: maxDescriptors)
    }

    /// The boot time in seconds since 1970. Computed once, so that a later change to the wall clock does not move the
    /// start time. It is not read from `/proc/stat`, because `ProcSubset=pid` in the systemd unit hides that file. If
    /// the machine slept after it booted, the start time is too late by the time that it slept.
    private static let bootTime = Date().timeIntervalSince1970 - Double(NIODeadline.now().uptimeNanoseconds) / 1e9

    private static var maxDescriptors: Int? {
        let limit = confab_descriptor_limit(0)
        return limit >= 0 && limit < .max ? Int(limit) : nil
    }

    private static func contents(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The fields of `/proc/self/stat` that are exported. See proc_pid_stat(5).
struct ProcessStat: Equatable, Sendable {
    var cpuTicks: Int
    /// When the process started, in ticks since the machine started.
    var startTicks: Int
    var residentPages: Int

    /// Parses the text of the file. Returns nil if the format is unexpected.
    init?(_ text: String) {
        // The second field is the name in parentheses, which may contain spaces and parentheses itself.
        guard let name = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: name)...].split(separator: " ")
        // The manual counts fields from 1, and the first field after the name is the third.
        func field(_ number: Int) -> Int? { fields.count > number - 3 ? Int(fields[number - 3]) : nil }
        guard let user = field(14), let system = field(15), let start = field(22), let pages = field(24),
            case let (ticks, false) = user.addingReportingOverflow(system)
        else { return nil }
        (cpuTicks, startTicks, residentPages) = (ticks, start, pages)
    }
}
#endif
