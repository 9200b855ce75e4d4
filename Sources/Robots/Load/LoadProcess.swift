import Foundation

/// Resource usage of a process, as the kernel reports it.
struct LoadProcess {
    let id: Int32

    /// Returns the CPU time of all threads in user and kernel mode, in seconds; NaN if the kernel reports nothing
    /// about the process.
    ///
    /// The file `schedstat` contains it in nanoseconds. Without that file, the sum of `utime` and `stime` in the file
    /// `stat` is used, which is in clock ticks.
    func processorSeconds() -> Double {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/task")) ?? []
        var nanoseconds = 0.0
        for task in tasks {
            let fields = Self.fields("/proc/\(id)/task/\(task)/schedstat")
            guard let first = fields.first, let value = Double(first) else { return ticks() }
            nanoseconds += value
        }
        return tasks.isEmpty ? .nan : nanoseconds / 1e9
    }

    /// Returns the CPU time in seconds from `utime` + `stime`, which include threads that have ended; NaN if the file
    /// cannot be read.
    func ticks() -> Double {
        // The second field is the process name in parentheses, which may contain any characters. Fields 14 and 15 are utime and
        // stime.
        let text = (try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)) ?? ""
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return .nan }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    func residentBytes() -> Double {
        let fields = Self.fields("/proc/\(id)/statm")
        guard fields.count > 1, let pages = Double(fields[1]) else { return .nan }
        return pages * Double(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static func fields(_ path: String) -> [Substring] {
        ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split { $0 == " " || $0 == "\n" }
    }

    /// Whether the process is running.
    var isRunning: Bool { kill(id, 0) == 0 }

    /// Returns the ports of the process's UDP sockets.
    func datagramPorts() -> Set<UInt16> {
        let folder = "/proc/\(id)/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let sockets = Set(
            names.compactMap { name -> String? in
                guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)"),
                    target.hasPrefix("socket:[")
                else { return nil }
                return String(target.dropFirst(8).dropLast())
            })
        return Set(DatagramDrops.rows().filter { sockets.contains($0.inode) }.map(\.port))
    }
}

/// Reads how many datagrams the kernel has dropped: at each UDP socket, because its process did not read them in time
/// (`rows`), and before they reached a socket (`backlog`).
enum DatagramDrops {
    static func rows() -> [(port: UInt16, inode: String, drops: UInt64)] {
        ["/proc/net/udp", "/proc/net/udp6"].flatMap { path in
            ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").dropFirst()
                .compactMap { line in
                    let fields = line.split(separator: " ")
                    guard fields.count > 12, let port = fields[1].split(separator: ":").last,
                        let number = UInt16(port, radix: 16), let drops = UInt64(fields[12])
                    else { return nil }
                    return (number, String(fields[9]), drops)
                }
        }
    }

    /// Returns the number of packets that the kernel dropped before they reached a socket, because more than
    /// `net.core.netdev_max_backlog` were queued. This happens over loopback too. Several segments sent as one datagram (GSO)
    /// count as one.
    static func backlog() -> UInt64 {
        // The file has one line per CPU. The second field is the CPU's drop count in hexadecimal.
        let text = (try? String(contentsOfFile: "/proc/net/softnet_stat", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").reduce(0) { sum, line in
            let fields = line.split(separator: " ")
            return sum &+ (fields.count > 1 ? UInt64(fields[1], radix: 16) ?? 0 : 0)
        }
    }
}
