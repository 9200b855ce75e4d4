#if canImport(Glibc)
import Glibc
#endif

/// The resource usage of a server that `run` started, as the kernel reports it.
struct ServerProcess {
    let name: String
    let port: Int
    let id: Int

    /// Returns the CPU time of all threads in user and kernel mode, in seconds.
    func processorSeconds() -> Double {
        // The second field is the process name in parentheses, which may contain any characters. Fields 14 and 15 are utime and
        // stime.
        let fields = file("stat").split(separator: ")").last.map { $0.split(separator: " ") } ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return .nan }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    func residentBytes() -> Double {
        let fields = file("statm").split(separator: " ")
        guard fields.count > 1, let pages = Double(fields[1]) else { return .nan }
        return pages * Double(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Returns the maximum of the resident memory since the process started.
    func peakBytes() -> Double {
        // The file has one field per line, such as "VmHWM:     12345 kB".
        let line = lines("status").first { $0.hasPrefix("VmHWM:") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }.map { $0 * 1024 }
            ?? .nan
    }

    private func lines(_ name: String) -> [String] {
        guard let file = fopen("/proc/\(id)/\(name)", "r") else { return [] }
        defer { fclose(file) }
        var (lines, line) = ([String](), [CChar](repeating: 0, count: 1024))
        while fgets(&line, Int32(line.count), file) != nil { lines.append(Self.text(line)) }
        return lines
    }

    private static func text(_ line: [CChar]) -> String {
        String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func file(_ name: String) -> String { lines(name).first ?? "" }
}
